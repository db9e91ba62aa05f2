package datadir_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/datadir"
)

const holdVariable = "DATADIR_TEST_HOLD"

// TestMain turns the test binary into a process that holds a folder until its standard input ends.
func TestMain(m *testing.M) {
	if path := os.Getenv(holdVariable); path != "" {
		if _, err := datadir.Open(path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // without Close, as in a crash
	}
	os.Exit(m.Run())
}

// hold starts a process that holds the folder, and returns it once it does.
func hold(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdVariable+"="+path)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("the holder said %q, %v", line, err)
	}
	return cmd
}

func TestASecondProcessIsRefusedWithThePID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	first := hold(t, path)
	_, err := datadir.Open(path)
	var locked *datadir.LockedError
	if !errors.As(err, &locked) {
		t.Fatalf("got %v, want a LockedError", err)
	}
	if locked.PID != first.Process.Pid {
		t.Errorf("pid %d, want %d", locked.PID, first.Process.Pid)
	}
	want := fmt.Sprintf("the data folder %s is in use by the process %d", path, first.Process.Pid)
	if err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func TestAKilledHolderLeavesTheFolderFree(t *testing.T) {
	path := t.TempDir()
	for range 3 {
		first := hold(t, path)
		if err := first.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = first.Wait() // killed: always an error
	}
	dir, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if dir.Path() != path {
		t.Errorf("path %q, want %q", dir.Path(), path)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestCloseGivesTheFolderBack(t *testing.T) {
	path := t.TempDir()
	for range 2 {
		dir, err := datadir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := datadir.Open(path); err == nil {
			t.Fatal("the folder was given twice within one process")
		}
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Open(path); err == nil {
		t.Fatal("a file was taken for a folder")
	}
}
