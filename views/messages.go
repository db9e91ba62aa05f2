package views

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/tidwall/btree"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// MaxFound bounds the rows that Messages.Find returns: a message id that so many documents have used names none of them.
const MaxFound = 100

// Messages is the view of the tracker's table: one row, its timeline, for each message id of each document. All methods
// but Run may be called concurrently, at any time; those that return rows fail with a *NotReadyError until the view is
// complete.
type Messages struct {
	*view[ledger.TrackerRow]
	index *messageIndex
}

// NewMessages makes a view that is empty until Run is called. merge must be commutative, associative and idempotent.
// Options.Expiry should be that of the table.
func NewMessages(o Options, table stage.Topic[ledger.TrackerRow], merge func(a, b *ledger.TrackerRow) *ledger.TrackerRow) *Messages {
	ix := newMessageIndex()
	return &Messages{view: newView[ledger.TrackerRow](o, table, merge, ix), index: ix}
}

// Get returns the timeline of a submission; nil without an error if nothing is known of it (yet).
func (m *Messages) Get(_ context.Context, documentID, messageID string) (*ledger.TrackerRow, error) {
	return m.get(rag.EventKey(documentID, messageID))
}

// Find returns the timelines of all documents that used a message id, by document id, MaxFound of them at most.
func (m *Messages) Find(_ context.Context, messageID string) ([]*ledger.TrackerRow, error) {
	if err := m.Ready(); err != nil {
		return nil, err
	}
	var out []*ledger.TrackerRow
	for _, key := range m.index.find(messageID, MaxFound) {
		row, err := m.get(key)
		if err != nil {
			return nil, err
		}
		if row != nil { // it may have expired
			out = append(out, row)
		}
	}
	return out, nil
}

// Wait is Find, or Get where documentID is not "", as soon as until is true for what it gives (which may be nothing).
// When ctx ends first it returns what is there then, with ctx's error.
func (m *Messages) Wait(ctx context.Context, documentID, messageID string, until func([]*ledger.TrackerRow) bool) ([]*ledger.TrackerRow, error) {
	return wait(ctx, &m.hub, messageID, func() ([]*ledger.TrackerRow, error) {
		if documentID == "" {
			return m.Find(ctx, messageID)
		}
		row, err := m.Get(ctx, documentID, messageID)
		if err != nil || row == nil {
			return nil, err
		}
		return []*ledger.TrackerRow{row}, nil
	}, until)
}

// messageIndex knows which documents have used a message id. An entry points into its key and holds nothing else.
type messageIndex struct {
	mu     sync.RWMutex
	tree   *btree.BTreeG[messageEntry]
	cursor messageEntry // where some goes on
}

type messageEntry struct {
	key       string // of the row
	message   string // the part of key that is the message id
	partition int32
}

func newMessageIndex() *messageIndex {
	return &messageIndex{tree: btree.NewBTreeGOptions(func(a, b messageEntry) bool {
		if c := strings.Compare(a.message, b.message); c != 0 {
			return c < 0
		}
		return a.key < b.key
	}, btree.Options{NoLocks: true})}
}

func (x *messageIndex) put(partition int32, key string, _ *ledger.TrackerRow) []string {
	_, message, err := rag.ParseEventKey(key)
	if err != nil {
		return nil // no such key is ever asked for
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.tree.Set(messageEntry{key: key, message: message, partition: partition})
	return []string{message}
}

func (x *messageIndex) remove(key string, gone func() bool) []string {
	_, message, err := rag.ParseEventKey(key)
	if err != nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if gone() {
		x.tree.Delete(messageEntry{key: key, message: message})
	}
	return []string{message}
}

func (x *messageIndex) reset(partition int32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	var mine []messageEntry
	x.tree.Scan(func(e messageEntry) bool {
		if e.partition == partition {
			mine = append(mine, e)
		}
		return true
	})
	for _, e := range mine {
		x.tree.Delete(e)
	}
}

func (x *messageIndex) find(message string, limit int) []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var keys []string
	x.tree.Ascend(messageEntry{message: message}, func(e messageEntry) bool {
		if e.message != message || len(keys) == limit {
			return false
		}
		keys = append(keys, e.key)
		return true
	})
	slices.Sort(keys)
	return keys
}

func (x *messageIndex) some(n int) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var keys []string
	x.tree.Ascend(x.cursor, func(e messageEntry) bool {
		if e != x.cursor {
			keys = append(keys, e.key)
			x.cursor = e
		}
		return len(keys) < n
	})
	if len(keys) < n {
		x.cursor = messageEntry{} // the next call begins anew
	}
	return keys
}
