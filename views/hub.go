package views

import "sync"

// hub wakes those who wait for a change of a key, or for any change.
type hub struct {
	mu   sync.Mutex
	keys map[string]map[chan struct{}]bool
	any  chan struct{} // closed at the next change; nil while nobody waits
}

// watch gives a channel that has something in it after each change of the key, until stop is called.
func (h *hub) watch(key string) (changed <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.keys == nil {
		h.keys = make(map[string]map[chan struct{}]bool)
	}
	if h.keys[key] == nil {
		h.keys[key] = make(map[chan struct{}]bool)
	}
	h.keys[key][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.keys[key], c)
		if len(h.keys[key]) == 0 {
			delete(h.keys, key)
		}
	}
}

// next is closed at the next change of anything.
func (h *hub) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.any == nil {
		h.any = make(chan struct{})
	}
	return h.any
}

// wake tells those who wait for the key.
func (h *hub) wake(key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.keys[key] {
		select {
		case c <- struct{}{}:
		default: // it has not looked since the last change
		}
	}
}

// wakeAll tells those who wait for anything.
func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.any != nil {
		close(h.any)
		h.any = nil
	}
}
