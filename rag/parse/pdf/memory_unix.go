//go:build unix

package pdf

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// memory is that of one instance.
type memory struct {
	all       []byte
	exhausted atomic.Bool
}

func (m *memory) reserve(size uint64) {
	all, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil { // otherwise Reallocate says that there is none
		m.all = all
	}
}

// release gives the memory back. Nothing may run in it any more.
func (m *memory) release() {
	if m == nil || m.all == nil {
		return
	}
	_ = unix.Munmap(m.all) // fails only for what was not mapped
	m.all = nil
}
