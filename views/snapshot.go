package views

import "github.com/waymarkhq/waymark/rag"

// Snapshot is what the documents serve at one moment. A search that begins after that moment finds all chunks of what it says:
// a revision that becomes served while a search runs may have been found in part only. It must be closed, and may be used by
// several goroutines until then.
type Snapshot struct {
	documents *Documents
	seq       uint64 // changes up to this one are in it
	resets    uint64
}

// Snapshot fixes what is served now. It fails with a *NotReadyError until the view is complete.
func (d *Documents) Snapshot() (*Snapshot, error) {
	if err := d.Ready(); err != nil {
		return nil, err
	}
	s := &Snapshot{documents: d}
	d.index.open(s)
	if err := d.Ready(); err != nil { // it may have been built anew meanwhile
		s.Close()
		return nil, err
	}
	return s, nil
}

// Served is the revision of a document that readers saw at the moment of the snapshot; false: none.
func (s *Snapshot) Served(id string) (rag.Revision, bool) { return s.documents.index.servedAt(s, id) }

// Err is a *NotReadyError if the view has been built anew since the snapshot: what it said may be wrong.
func (s *Snapshot) Err() error {
	x := s.documents.index
	x.mu.RLock()
	reset := s.resets != x.history.resets
	x.mu.RUnlock()
	if reset {
		return s.documents.notReady(nil)
	}
	return s.documents.Ready()
}

// Close lets go of what the snapshot keeps. It may be called more than once.
func (s *Snapshot) Close() { s.documents.index.close(s) }

// servedHistory keeps what was served before each change, for as long as a snapshot from before it is open. It is guarded by
// the lock of its index.
type servedHistory struct {
	seq    uint64
	resets uint64 // how often a part of the view was emptied
	open   map[*Snapshot]struct{}
	before map[string][]servedBefore // by document, the oldest change first
	order  []changeOf                // all of them
}

type servedBefore struct {
	seq    uint64
	served rag.Revision
	serves bool
}

type changeOf struct {
	seq      uint64
	document string
}

func (h *servedHistory) begin(s *Snapshot) {
	if h.open == nil {
		h.open, h.before = map[*Snapshot]struct{}{}, map[string][]servedBefore{}
	}
	s.seq, s.resets = h.seq, h.resets
	h.open[s] = struct{}{}
}

// changed notes what a document has served until now.
func (h *servedHistory) changed(document string, served rag.Revision, serves bool) {
	if len(h.open) == 0 {
		return
	}
	h.seq++
	h.before[document] = append(h.before[document], servedBefore{h.seq, served, serves})
	h.order = append(h.order, changeOf{h.seq, document})
}

// at is what a document served at the moment of a snapshot, where that has changed since.
func (h *servedHistory) at(s *Snapshot, document string) (was servedBefore, changed bool) {
	for _, b := range h.before[document] {
		if b.seq > s.seq {
			return b, true
		}
	}
	return servedBefore{}, false
}

func (h *servedHistory) end(s *Snapshot) {
	delete(h.open, s)
	oldest := h.seq
	for open := range h.open {
		oldest = min(oldest, open.seq)
	}
	n := 0
	for ; n < len(h.order) && h.order[n].seq <= oldest; n++ {
		document := h.order[n].document
		if h.before[document] = h.before[document][1:]; len(h.before[document]) == 0 {
			delete(h.before, document)
		}
	}
	if h.order = h.order[n:]; len(h.order) == 0 {
		h.order = nil
	}
}
