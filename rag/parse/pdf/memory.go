package pdf

import "github.com/tetratelabs/wazero/experimental"

// allocator gives each instance its memory outside of Go's heap: as large as it may become, which costs nothing until it is
// touched, and gone when the instance is. Go's heap would keep what the memory was before each time that it grew.
type allocator struct{ last *memory }

// Allocate is called while an instance is made. A memory that cannot be had makes that fail.
func (a *allocator) Allocate(_, most uint64) experimental.LinearMemory {
	a.last = &memory{}
	a.last.reserve(min(most, memoryPages<<16))
	return a.last
}

// take is the memory allocated last, nil if there is none.
func (a *allocator) take() *memory {
	m := a.last
	a.last = nil
	return m
}

// Reallocate is called when the instance grows, and when it is made. It returns nil where there is no more.
func (m *memory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.all)) {
		m.exhausted.Store(true)
		return nil
	}
	m.exhausted.Store(false) // it may have asked for more than it needed, and taken less
	return m.all[:size]
}

// ranOut reports whether the instance has asked for more than there is.
func (m *memory) ranOut() bool { return m != nil && m.exhausted.Load() }

// Free is called when the module is closed, which may be while it still runs: release comes later.
func (m *memory) Free() {}
