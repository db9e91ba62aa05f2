package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"github.com/google/uuid"
)

// DataDirError says why the data folder of a process cannot be used.
type DataDirError struct {
	Dir string
	Err error
}

func (e *DataDirError) Error() string { return fmt.Sprintf("data folder %s: %v", e.Dir, e.Err) }
func (e *DataDirError) Unwrap() error { return e.Err }

// ErrDataDirInUse is the cause where another process has the data folder.
var ErrDataDirInUse = errors.New("in use by another process")

// dataDir is the folder of one process. The operating system lets go of it when the process ends in any way.
type dataDir struct {
	path string
	lock *flock.Flock
}

func openDataDir(path string) (*dataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, &DataDirError{path, err}
	}
	d := &dataDir{path: path, lock: flock.New(filepath.Join(path, "engine.lock"))}
	ok, err := d.lock.TryLock()
	if err == nil && !ok {
		err = ErrDataDirInUse
	}
	if err != nil {
		return nil, &DataDirError{path, err}
	}
	return d, nil
}

func (d *dataDir) close() error { return d.lock.Unlock() }

// instanceID names the folder for static membership; it is made once.
func (d *dataDir) instanceID() (string, error) {
	const name = "instance-id"
	b, err := d.read(name)
	if err != nil {
		return "", err
	}
	if id := strings.TrimSpace(string(b)); id != "" {
		return id, nil
	}
	id := uuid.NewString()
	return id, d.write(name, []byte(id+"\n"))
}

// journal is the file in which a group remembers what it is working on, in a folder of the group's own.
func (d *dataDir) journal(group string) (string, error) {
	folder := filepath.Join(d.path, "journal", group)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", &DataDirError{d.path, err}
	}
	return filepath.Join(folder, "running"), nil
}

// identities are the topics whose offsets, and the tables whose rows, this folder has worked with.
type identities struct {
	Epoch  int               `json:"epoch"`
	Topics map[string]string `json:"topics"` // ids by name
}

const identitiesFile = "topics.json"

func (d *dataDir) identities() (known identities, err error) {
	b, err := d.read(identitiesFile)
	if err != nil || b == nil {
		return known, err
	}
	if err := json.Unmarshal(b, &known); err != nil {
		return known, &DataDirError{d.path, fmt.Errorf("%s: %w", identitiesFile, err)}
	}
	return known, nil
}

func (d *dataDir) setIdentities(i identities) error {
	b, err := json.Marshal(i)
	if err != nil {
		return &DataDirError{d.path, err}
	}
	return d.write(identitiesFile, b)
}

// read returns nil for a file that is not there.
func (d *dataDir) read(name string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(d.path, name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, &DataDirError{d.path, err}
	}
	return b, nil
}

// write replaces a file as a whole: what is there is never half of it.
func (d *dataDir) write(name string, b []byte) error {
	path := filepath.Join(d.path, name)
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return &DataDirError{d.path, err}
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return &DataDirError{d.path, err}
	}
	return nil
}
