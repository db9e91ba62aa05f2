package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gofrs/flock"
)

// LockedError says that another process uses the folder.
type LockedError struct {
	Dir string
	PID int // 0 if the other process has not said it yet
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("folder %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("folder %s is in use by process %d", e.Dir, e.PID)
}

// Lock holds a folder for this process. The operating system lets go of it when the process ends in any way, so there is
// nothing to clean up after kill -9.
type Lock struct {
	file *flock.Flock
	pid  string
}

// AcquireLock takes a folder, making it if it is missing, or fails at once with a *LockedError.
func AcquireLock(dir string) (*Lock, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock folder: %w", err)
	}
	l := &Lock{file: flock.New(filepath.Join(dir, "lock")), pid: filepath.Join(dir, "pid")}
	ok, err := l.file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock folder %s: %w", dir, err)
	}
	if !ok {
		return nil, &LockedError{Dir: dir, PID: readPID(l.pid)}
	}
	if err := os.WriteFile(l.pid, []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("lock folder %s: %w", dir, err), l.Release())
	}
	return l, nil
}

// Release lets go of the folder.
func (l *Lock) Release() error {
	if err := l.file.Unlock(); err != nil {
		return fmt.Errorf("release folder: %w", err)
	}
	return nil
}

func readPID(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0
	}
	return pid
}
