// Package datadir holds the folder of a process's local state: at most one process has it at a time.
package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	lockName = "waymark.lock"
	pidName  = "waymark.pid"
	// pidWait is how long Open waits for the holder to write its pid, which it does right after it took the lock.
	pidWait = time.Second
)

// LockedError says that another process holds the folder.
type LockedError struct {
	Path string
	PID  int // 0 if it cannot be told
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("the data folder %s is in use by another process", e.Path)
	}
	return fmt.Sprintf("the data folder %s is in use by the process %d", e.Path, e.PID)
}

// Dir is a data folder that this process holds until Close, or until it dies in whatever way: the lock is the operating
// system's, so that nothing has to be cleaned up after a kill.
type Dir struct {
	path string
	lock *flock.Flock
}

// Open makes the folder where it is missing and takes it. A *LockedError says who has it.
func Open(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock := flock.New(filepath.Join(path, lockName), flock.SetPermissions(0o600))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the data folder %s: %w", path, err)
	}
	if !locked {
		return nil, &LockedError{Path: path, PID: holder(path)}
	}
	d := &Dir{path: path, lock: lock}
	if err := os.WriteFile(d.file(pidName), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("name the holder of the data folder: %w", err), d.Close())
	}
	return d, nil
}

// Path of the folder, as given to Open.
func (d *Dir) Path() string { return d.path }

// Close gives the folder back. The lock's file stays: removing it would let two processes lock two files of one name.
func (d *Dir) Close() error {
	err := os.Remove(d.file(pidName))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, d.lock.Unlock())
}

func (d *Dir) file(name string) string { return filepath.Join(d.path, name) }

// holder reads the pid of the process that has the lock. Between the death of one holder and the first moment of the
// next, the file names the dead one: such a pid is not believed.
func holder(path string) int {
	for deadline := time.Now().Add(pidWait); ; <-time.After(pidWait / 20) {
		text, err := os.ReadFile(filepath.Join(path, pidName))
		if err == nil {
			if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && alive(pid) {
				return pid
			}
		}
		if time.Now().After(deadline) {
			return 0
		}
	}
}
