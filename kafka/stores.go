package kafka

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lovoo/goka/storage"
	"github.com/syndtr/goleveldb/leveldb"
	ldberrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/opt"
)

// One process opens a store for each partition of each table, some hundred of them: the library's defaults would take
// 4 MiB and 500 files each.
const (
	storeWriteBuffer = 512 << 10
	storeBlockCache  = 256 << 10
	storeOpenFiles   = 16

	// sweepInterval is the pause between two looks for expired rows.
	sweepInterval = 15 * time.Minute
	// sweepRows bounds one look: what is left waits for the next one, and is hidden from readers in the meantime.
	sweepRows = 100_000
)

// Expiry says when a row is over. Writers, readers, views and recoveries see the same expiry, because its clock is in
// the value; Kafka forgets the record by the same clock later (compact,delete).
type Expiry struct {
	// After is how long a row lives.
	After time.Duration
	// WrittenAt reads from a value when it was written; false: it never expires. It must not keep the value.
	WrittenAt func(value []byte) (time.Time, bool)
}

// StoreOptions of NewStores.
type StoreOptions struct {
	// Dir is the folder for the stores of one group, or of the views of one process. No two Stores may share one.
	Dir string
	// Expiry by topic; others keep their rows.
	Expiry map[string]Expiry
	// TopicIDs (see the function) lets a store notice that its topic was made anew: it is emptied then, because what it
	// holds belongs to the topic that is gone. Topics that are missing here are not checked.
	TopicIDs map[string]string
	// MaxOffline empties a store that was not open for longer: it may hold keys whose deletion Kafka has forgotten by now
	// (delete.retention.ms). 0: never.
	MaxOffline time.Duration
	Log        *slog.Logger     // slog.Default() if nil
	Now        func() time.Time // time.Now if nil
}

// Stores builds the LevelDB stores below goka's tables and views, in <Dir>/<topic>.<partition>, and knows which of them
// are open. Everything in a store can be rebuilt from Kafka: one that cannot be opened because its files are damaged is
// moved aside, loudly, and one that turns out to be damaged while it runs is moved aside at the next opening.
type Stores struct {
	o StoreOptions

	mu   sync.Mutex
	open map[storeKey]*store
}

type storeKey struct {
	topic     string
	partition int32
}

// NewStores opens nothing yet.
func NewStores(o StoreOptions) *Stores {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Stores{o: o, open: make(map[storeKey]*store)}
}

// Builder is for goka's WithStorageBuilder and WithViewStorageBuilder. goka opens and closes what it builds.
func (s *Stores) Builder() storage.Builder {
	return func(topic string, partition int32) (storage.Storage, error) { return s.build(topic, partition) }
}

// Get returns the store of a partition while it is open. The caller must expect errors from it as soon as the partition
// is lost: goka closes it then.
func (s *Stores) Get(topic string, partition int32) (storage.Storage, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	st, ok := s.open[storeKey{topic, partition}]
	if !ok {
		return nil, false
	}
	return st, true
}

func (s *Stores) build(topic string, partition int32) (*store, error) {
	dir := filepath.Join(s.o.Dir, fmt.Sprintf("%s.%d", topic, partition))
	if err := os.MkdirAll(s.o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("folder for local stores: %w", err)
	}
	m := marker{path: dir + ".json"}
	if why := s.useless(dir, m, topic); why != "" {
		s.o.Log.Error("local store is emptied and will be rebuilt from Kafka", "topic", topic, "partition", partition, "why", why, "dir", dir)
		if err := errors.Join(os.RemoveAll(dir), removeIfThere(m.path)); err != nil {
			return nil, fmt.Errorf("remove local store: %w", err)
		}
	}
	db, err := s.openDB(dir, topic, partition)
	if err != nil {
		return nil, err
	}
	st := &store{
		db: db, log: s.o.Log.With("topic", topic, "partition", partition), now: s.o.Now, marker: m, topicID: s.o.TopicIDs[topic],
		closed: func(st *store) { s.forget(topic, partition, st) },
		stop:   make(chan struct{}),
	}
	if e, ok := s.o.Expiry[topic]; ok {
		st.expiry = &e
	}
	s.mu.Lock()
	s.open[storeKey{topic, partition}] = st
	s.mu.Unlock()
	return st, nil
}

func (s *Stores) forget(topic string, partition int32, st *store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// After a quick rebalance the partition may have been opened again already.
	if s.open[storeKey{topic, partition}] == st {
		delete(s.open, storeKey{topic, partition})
	}
}

// useless says why what is in the folder must not be used; "" if it may.
func (s *Stores) useless(dir string, m marker, topic string) string {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	was := m.read()
	id := s.o.TopicIDs[topic]
	switch {
	case was.Damaged != "":
		return "its files are damaged: " + was.Damaged
	case id != "" && was.TopicID != "" && was.TopicID != id:
		return "its topic was made anew"
	case s.o.MaxOffline > 0 && !was.Touched.IsZero() && s.o.Now().Sub(was.Touched) > s.o.MaxOffline:
		return fmt.Sprintf("it was last open at %s", was.Touched.Format(time.RFC3339))
	}
	return ""
}

// openDB opens the files; damaged ones are moved aside, and an empty store takes their place.
func (s *Stores) openDB(dir, topic string, partition int32) (*leveldb.DB, error) {
	options := &opt.Options{
		WriteBuffer:            storeWriteBuffer,
		BlockCacheCapacity:     storeBlockCache,
		OpenFilesCacheCapacity: storeOpenFiles,
		// By default a damaged piece of the journal is left out in silence: rows would be missing below the stored offset.
		Strict: opt.StrictAll,
	}
	db, err := leveldb.OpenFile(dir, options)
	if err == nil || !damaged(err) {
		return db, wrapOpen(dir, err)
	}
	aside := dir + ".damaged"
	s.o.Log.Error("local store is damaged; it is moved aside and will be rebuilt from Kafka",
		"topic", topic, "partition", partition, "error", err, "moved_to", aside)
	// The one before it has to go: the disk must not fill up with evidence.
	if err := errors.Join(os.RemoveAll(aside), os.Rename(dir, aside)); err != nil {
		return nil, fmt.Errorf("move damaged local store aside: %w", err)
	}
	db, err = leveldb.OpenFile(dir, options)
	return db, wrapOpen(dir, err)
}

func wrapOpen(dir string, err error) error {
	if err != nil {
		return fmt.Errorf("open local store %s: %w", dir, err)
	}
	return nil
}

// damaged reports whether err says that the files hold something else than was written. A full disk or missing rights
// do not: there, starting anew would not help.
func damaged(err error) bool {
	return ldberrors.IsCorrupted(err) || errors.Is(err, io.ErrUnexpectedEOF)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// marker is the file beside a store's folder that says whose rows it holds.
type marker struct{ path string }

type markerContent struct {
	TopicID string    `json:"topic_id,omitempty"`
	Touched time.Time `json:"touched"` // when the store was open last
	Damaged string    `json:"damaged,omitempty"`
}

// read returns the zero content where there is no marker, or none that can be read: nothing is known then.
func (m marker) read() markerContent {
	var c markerContent
	b, err := os.ReadFile(m.path)
	if err != nil || json.Unmarshal(b, &c) != nil {
		return markerContent{}
	}
	return c
}

func (m marker) write(c markerContent) error {
	b, err := json.Marshal(c)
	if err != nil {
		return err
	}
	tmp := m.path + ".tmp"
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("note about local store: %w", err)
	}
	if err := os.Rename(tmp, m.path); err != nil {
		return fmt.Errorf("note about local store: %w", err)
	}
	return nil
}
