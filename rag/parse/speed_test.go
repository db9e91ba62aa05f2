//go:build unix

package parse

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// usage is what a process has used: seconds of CPU, and memory at its peak in MB.
type usage struct{ cpu, peak float64 }

func measure(t *testing.T, name string, args ...string) usage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = io.Discard, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, peak := make(chan struct{}), make(chan float64)
	go func() { peak <- highWater(cmd.Process.Pid, ended) }()
	err := cmd.Wait()
	close(ended)
	u := usage{peak: <-peak}
	if err != nil {
		t.Fatalf("%s %v: %v\n%.500s", name, args, err, out.String())
	}
	u.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	return u
}

// highWater is the most memory that a process has held, as Linux says again and again until it ends. What wait4 reports counts the
// process that has forked it too.
func highWater(pid int, ended <-chan struct{}) float64 {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	most := 0.0
	for {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if _, rest, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
			var kB float64
			if _, err := fmt.Sscan(rest, &kB); err == nil {
				most = max(most, kB/1024)
			}
		}
		select {
		case <-ended:
			return most
		case <-tick.C:
		}
	}
}

// cpuTime is that of this process.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestSpeedBesideTools writes a table for docs/performance.md: what `waymark parse` and the usual tool of each format use for the
// same large file, one after the other. CPU time tells on a machine that does other things too; the last column is without the
// start of a process.
func TestSpeedBesideTools(t *testing.T) {
	pattern := os.Getenv("PARSE_SPEED") // of the files' names
	if pattern == "" {
		t.Skip("NOT RUN: PARSE_SPEED is not set; `make parse-speed` sets it")
	}
	dir := t.TempDir()
	binary := filepath.Join(dir, "waymark")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "../../cmd/waymark").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	files := large(t)
	patient, err := New(Limits{Time: 15 * time.Minute}, CacheDir(pdfiumCache))
	if err != nil {
		t.Fatal(err)
	}
	defer patient.Close()
	var table strings.Builder
	table.WriteString("| file | MB | waymark parse: CPU s | peak MB | tool | CPU s | peak MB | in a process that runs: MB/s of CPU |\n|---|---|---|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if ok, err := filepath.Match(pattern, name); err != nil {
			t.Fatal(err)
		} else if !ok {
			continue
		}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, files[name], 0o600); err != nil {
			t.Fatal(err)
		}
		in := Input{Content: files[name], Name: name}
		if _, err := patient.Parse(context.Background(), in); err != nil { // PDFium is ready behind it
			t.Fatal(err)
		}
		before := cpuTime(t)
		if _, err := patient.Parse(context.Background(), in); err != nil {
			t.Fatal(err)
		}
		mb := float64(len(files[name])) / 1e6
		speed := mb / (cpuTime(t) - before).Seconds()
		ours := measure(t, binary, "parse", "--text", "--limits.parse_time=15m", path)
		tool, theirs := "", usage{}
		switch filepath.Ext(name) {
		case ".pdf":
			tool, theirs = "pdftotext", measure(t, "pdftotext", path, filepath.Join(dir, "out.txt"))
		case ".docx", ".epub", ".html", ".rtf":
			tool, theirs = "pandoc", measure(t, "pandoc", "-t", "plain", "-o", filepath.Join(dir, "out.txt"), path)
		case ".xlsx":
			tool, theirs = "LibreOffice", measure(t, "soffice", "--headless", "-env:UserInstallation=file://"+filepath.Join(dir, "profile"), "--convert-to", "csv", "--outdir", dir, path)
		case ".pptx": // for which it writes no plain text
			tool, theirs = "LibreOffice, to PDF", measure(t, "soffice", "--headless", "-env:UserInstallation=file://"+filepath.Join(dir, "profile"), "--convert-to", "pdf", "--outdir", dir, path)
		}
		row := fmt.Sprintf("| %s | %.1f | %.2f | %.0f |", name, mb, ours.cpu, ours.peak)
		if tool == "" {
			row += " | | |"
		} else if strings.HasPrefix(tool, "LibreOffice") { // its peak is that of a child
			row += fmt.Sprintf(" %s | %.2f | |", tool, theirs.cpu)
		} else {
			row += fmt.Sprintf(" %s | %.2f | %.0f |", tool, theirs.cpu, theirs.peak)
		}
		table.WriteString(fmt.Sprintf("%s %.1f |\n", row, speed))
	}
	fmt.Print(table.String())
}
