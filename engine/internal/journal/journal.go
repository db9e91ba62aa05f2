// Package journal remembers, over the death of its process, which messages were being worked on. Entries are written to
// memory that is mapped to a file: the kernel keeps it when the process is killed, and a note costs no system call. It
// says nothing after a crash of the machine, which no message causes.
package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
)

// Entry is a message that was being worked on.
type Entry struct {
	Input     int // index of the input in the group's topology
	Partition int32
	Offset    int64
	// Alone says that nothing else was worked on: if the process died, this message is to blame.
	Alone bool
}

const (
	slotSize = 32
	// Slots bounds how many messages are remembered at once; what is above it is worked on without a note.
	Slots    = 8192
	fileSize = slotSize * Slots

	stateFree  = 0
	stateTaken = 1
	stateAlone = 2
)

// Journal is open in one process.
type Journal struct {
	mem   []byte
	close func() error
	mu    sync.Mutex
	free  []int
}

// Open reads what the process before left, and starts anew. Where memory cannot be mapped to files it returns a journal
// that remembers nothing.
func Open(path string) (j *Journal, left []Entry, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the journal: %w", err)
	}
	if err := f.Truncate(fileSize); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("making the journal: %w", err), f.Close())
	}
	mem, unmap, err := mapFile(f, fileSize)
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("mapping the journal: %w", err), f.Close())
	}
	j = &Journal{mem: mem, close: func() error { return errors.Join(unmap(), f.Close()) }}
	for i := Slots - 1; i >= 0; i-- {
		if s := j.slot(i); s != nil && s[0] != stateFree {
			left = append(left, Entry{Alone: s[0] == stateAlone, Input: int(binary.LittleEndian.Uint32(s[4:])),
				Partition: int32(binary.LittleEndian.Uint32(s[8:])), Offset: int64(binary.LittleEndian.Uint64(s[16:]))})
			s[0] = stateFree
		}
		j.free = append(j.free, i)
	}
	return j, left, nil
}

func (j *Journal) slot(i int) []byte {
	if j.mem == nil {
		return nil
	}
	return j.mem[i*slotSize : (i+1)*slotSize]
}

// Begin notes that a message is being worked on; the returned function takes the note back.
func (j *Journal) Begin(e Entry) (end func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.mem == nil || len(j.free) == 0 {
		return func() {}
	}
	i := j.free[len(j.free)-1]
	j.free = j.free[:len(j.free)-1]
	s := j.slot(i)
	binary.LittleEndian.PutUint32(s[4:], uint32(e.Input))
	binary.LittleEndian.PutUint32(s[8:], uint32(e.Partition))
	binary.LittleEndian.PutUint64(s[16:], uint64(e.Offset))
	s[0] = stateTaken // last: a half-written entry must not be one
	if e.Alone {
		s[0] = stateAlone
	}
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		if j.mem == nil {
			return
		}
		s[0] = stateFree
		j.free = append(j.free, i)
	}
}

// Close ends the journal. Entries that were not taken back stay.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.close == nil {
		return nil
	}
	err := j.close()
	j.mem, j.close = nil, nil
	return err
}
