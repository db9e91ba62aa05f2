//go:build !unix

package pdf

import "sync/atomic"

// memory is that of one instance.
type memory struct {
	all       []byte
	exhausted atomic.Bool
}

func (m *memory) reserve(size uint64) { m.all = make([]byte, size) }

// release gives the memory back. Nothing may run in it any more.
func (m *memory) release() {
	if m != nil {
		m.all = nil
	}
}
