package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Row 12: the local state of a process is gone, damaged, or that of some time ago. It is rebuilt from Kafka, and what is
// written meanwhile comes to the same as ever; a second look at the same content changes nothing.
func TestFaultLocalStateLostDamagedOrOld(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 12})
	gateway := w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	w.watch()
	folders := []string{w.dir + "/worker", w.dir + "/api"}
	restart := func(what string, harm func(folder string) int) {
		worker.kill(syscall.SIGKILL)
		gateway.kill(syscall.SIGKILL)
		for _, folder := range folders {
			if n := harm(folder); n == 0 {
				t.Fatalf("%s: nothing was done to %s", what, folder)
			}
		}
		gateway.launch()
		worker.launch()
		w.api.waitReady()
		worker.waitReady()
	}
	change := func() {
		for range 15 {
			w.change(8)
		}
	}
	change()
	old := w.dir + "/old"
	restart("old", func(folder string) int { return copyFolder(t, folder, filepath.Join(old, filepath.Base(folder))) })
	change()
	w.settle()
	restart("old", func(folder string) int {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		return copyFolder(t, filepath.Join(old, filepath.Base(folder)), folder)
	})
	change()
	w.settle()
	restart("damaged", func(folder string) int { return w.damage(folder, true) })
	change()
	w.settle()
	for range map[bool]int{true: 4, false: 1}[inFull()] {
		restart("damaged data", func(folder string) int { return w.damage(folder, false) })
		change()
		w.settle()
	}
	restart("lost", func(folder string) int {
		n := len(filesIn(t, folder))
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
		return n
	})
	change()
	w.over()
	w.check()

	// What is known is still known: the same message again is a duplicate, and the paid vectors are not paid again.
	embedded := func() int { return w.embedder.Stats().Texts - w.embedder.Embedded("anything") }
	before := embedded()
	for _, s := range w.submissions[:10] {
		w.resend(s[0], s[1])
	}
	w.over()
	if r := w.check(); r.Duplicates < 10 {
		t.Errorf("%d duplicates", r.Duplicates)
	}
	if after := embedded(); after != before {
		t.Errorf("%d texts were embedded for submissions that are known", after-before)
	}
}

func filesIn(t testing.TB, folder string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func copyFolder(t *testing.T, from, to string) int {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return len(filesIn(t, to))
}

// damage flips bytes in the LevelDB files of a folder, or only in those with data, and counts the files.
func (w *world) damage(folder string, all bool) (n int) {
	w.t.Helper()
	for _, file := range filesIn(w.t, folder) {
		data := filepath.Ext(file) == ".ldb" || filepath.Ext(file) == ".log"
		if filepath.Base(file) == "instance-id" || !data && (!all || filepath.Ext(file) != "") || strings.Contains(file, ".damaged") {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		if len(b) == 0 {
			continue
		}
		for range 1 + len(b)/500 {
			b[w.intn(len(b))] ^= byte(1 + w.intn(255))
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
		n++
	}
	return n
}

// Row 12: the disk of the local state is full. The process says so and is not ready, nothing dies of it, and it goes on
// when there is room.
func TestFaultLocalStateFull(t *testing.T) {
	w := newWorld(t, worldOptions{seed: 13})
	folder := w.dir + "/worker"
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", folder).CombinedOutput(); err != nil {
		t.Skipf("NOT RUN: no file system of 16 MB can be mounted here, so that no disk can be full: %v %s", err, out)
	}
	defer func() {
		w.stopAll()
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	}()
	w.start("api", "api")
	worker := w.start("worker", workers...)
	w.api.waitReady()
	worker.waitReady()
	w.watch()
	for range 10 {
		w.change(8)
	}
	w.settle()
	filler := folder + "/filler"
	fill(t, filler)
	stop := w.changing(8, 50*time.Millisecond)
	eventually(t, "the process to say that its disk is full", func() error {
		if !worker.running() {
			return nil // it has failed loudly
		}
		if code, b, err := (api{t, "http://" + worker.monitor}).try("GET", "/readyz", nil, nil); err != nil || code == 200 {
			return errors.Join(fmt.Errorf("readyz is %d: %s", code, b), err)
		}
		return nil
	})
	stop()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if !worker.running() {
		t.Logf("it has ended with %d", worker.code())
		worker.launch()
	}
	w.over()
	if r := w.check(); r.Letters != 0 {
		t.Errorf("%d letters: a full disk is nobody's fault", r.Letters)
	}
}

// fill writes a file until the disk is full.
func fill(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// stopAll ends every process.
func (w *world) stopAll() {
	for _, p := range w.procs {
		p.kill(syscall.SIGKILL)
	}
}
