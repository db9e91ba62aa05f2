package views

import "errors"

// IndexedMessages is the number of entries in memory.
func IndexedMessages(m *Messages) int {
	m.index.mu.RLock()
	defer m.index.mu.RUnlock()
	return m.index.tree.Len()
}

// CloseStores makes the stores of a view fail from now on, as a full disk does.
func CloseStores(d *Documents) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	var err error
	for _, p := range d.parts {
		err = errors.Join(err, p.Storage.Close())
	}
	return err
}
