package views

// IndexedMessages is the number of entries in memory.
func IndexedMessages(m *Messages) int {
	m.index.mu.RLock()
	defer m.index.mu.RUnlock()
	return m.index.tree.Len()
}
