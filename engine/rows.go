package engine

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/stage"
)

// rowStore is the table of one partition while this process owns it. Every write is merged with what stands there, goes
// to the local store first and to the table's topic next, in the same order for one key. It never moves the local offset
// on its own writes: only what was read back from the topic counts as known, so that a stranger's row between two of
// ours is never skipped (see follow).
type rowStore struct {
	p     *partition
	table *table
	topic string

	// write is held from reading the current row to handing the record over: local order and log order stay one.
	writing sync.Mutex
	st      storage.Storage
	// writes are how many rows were written to st, plus one: where it has not changed, what was read still stands.
	writes atomic.Uint64

	mu  sync.Mutex
	own map[string]*ownWrites
	// again are keys whose row the follower has to send again.
	again keyQueue
}

// ownWrites are this process's writes of a key that the follower has not read back yet.
type ownWrites struct {
	flying     int
	lastOffset int64
	// stranger is the offset of the last differing record that was read while writes were flying; -1 if none.
	stranger int64
}

func newRowStore(p *partition, st storage.Storage) *rowStore {
	s := &rowStore{p: p, table: p.r.group.table, topic: p.r.group.TableTopic(), st: st, own: map[string]*ownWrites{}, again: newKeyQueue()}
	s.writes.Store(1)
	return s
}

// encodedRow is a row as it is to be written, with what it was derived from.
type encodedRow struct {
	row  any
	out  stage.Output
	base basis
}

// basis is what stood in the store when a row was read: its bytes (nil: there was none), and how many writes there had been
// before. The zero value says nothing.
type basis struct {
	raw    []byte
	writes uint64
}

// load returns the row of a key, nil if it has none, and what it was read from. A row that cannot be decoded counts as none and
// is rebuilt; one in a newer format is an error (an outage of this pod).
func (s *rowStore) load(key string) (row any, base basis, err error) {
	base.writes = s.writes.Load() // first: a write during the read is one more
	if base.raw, err = s.raw(key); err != nil {
		return nil, basis{}, err
	}
	row, err = s.decode(key, base.raw)
	return row, base, err
}

// current is the stored row of a key, which base was read from. The caller holds writing.
func (s *rowStore) current(key string, base basis) ([]byte, error) {
	if base.writes == s.writes.Load() {
		return base.raw, nil
	}
	return s.raw(key)
}

// store puts a row into the local store. The caller holds writing.
func (s *rowStore) store(key string, row []byte) error {
	defer s.writes.Add(1) // after the write, and also where it failed: nobody knows what stands there then
	return s.st.Set(key, row)
}

// raw is the stored row of a key; nil if it has none.
func (s *rowStore) raw(key string) ([]byte, error) {
	b, err := s.st.Get(key)
	if err != nil {
		return nil, stage.Outage("local_store", 0, fmt.Errorf("reading the row of %q: %w", key, err))
	}
	return b, nil
}

func (s *rowStore) read(key string) (any, error) {
	row, _, err := s.load(key)
	return row, err
}

func (s *rowStore) decode(key string, b []byte) (any, error) {
	if b == nil {
		return nil, nil
	}
	row, err := s.table.decode(b)
	if errors.Is(err, stage.ErrNewerFormat) {
		return nil, stage.Outage("newer_format", 0, fmt.Errorf("row of %q in %s: %w", key, s.topic, err))
	}
	if err != nil {
		s.p.r.env.Metrics.undecodable.WithLabelValues(s.p.r.env.Stage, s.topic).Inc()
		s.p.log.Warn("a row cannot be decoded and is rebuilt", "topic", s.topic, "key", key, "error", err)
		return nil, nil
	}
	return row, nil
}

// output encodes a row as its record, for a check of its size and for sending.
func (s *rowStore) output(key string, row any) (stage.Output, error) {
	b, err := s.table.encode(row)
	if err != nil {
		return stage.Output{}, stage.Reject("row_not_encodable", "the row of %q: %w", key, err)
	}
	return stage.Output{Topic: s.topic, Key: []byte(key), Value: b}, nil
}

// write stores the row and sends it; where somebody has written since it was derived, the two are merged first. ack gets
// the outcome.
func (s *rowStore) write(r encodedRow, ack func(int64, error)) {
	key := string(r.out.Key)
	s.writing.Lock()
	defer s.writing.Unlock()
	raw, err := s.current(key, r.base)
	if err != nil {
		ack(0, err)
		return
	}
	if mutant.Active == mutant.RowNotWrittenAgain && raw != nil && s.table.same(raw, r.out.Value) {
		ack(0, nil)
		return
	}
	if !bytes.Equal(raw, r.base.raw) { // the usual row is not decoded a second time
		current, err := s.decode(key, raw)
		if err != nil {
			ack(0, err)
			return
		}
		if current != nil {
			r.row = s.table.merge(current, r.row)
			if r.out, err = s.output(key, r.row); err != nil {
				ack(0, err)
				return
			}
		}
	}
	s.put(key, r.row, r.out, ack)
}

// put stores and sends an encoded row; the caller holds writing.
func (s *rowStore) put(key string, row any, out stage.Output, ack func(int64, error)) {
	fault.Hit(fault.BeforeLocalRow)
	if err := s.store(key, out.Value); err != nil {
		ack(0, fmt.Errorf("storing the row of %q: %w", key, err))
		return
	}
	fault.Hit(fault.BeforeTableSend)
	s.takeOff(key)
	s.p.send(s.p.work, out, func(offset int64, err error) {
		rewrite := s.landed(key, offset, err)
		if err == nil && s.p.timers != nil {
			s.p.timers.acknowledged(key, row)
		}
		ack(offset, err)
		if rewrite {
			s.again.add(key)
		}
	})
	fault.Hit(fault.AfterTableSend)
}

func (s *rowStore) takeOff(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.own[key]
	if o == nil {
		o = &ownWrites{lastOffset: -1, stranger: -1}
		s.own[key] = o
	}
	o.flying++
}

// settled reads a row, unless the one that stands there is on its way to Kafka and not acknowledged yet.
func (s *rowStore) settled(key string) (row any, onItsWay bool, err error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	o := s.own[key]
	onItsWay = o != nil && o.flying > 0
	s.mu.Unlock()
	if onItsWay {
		return nil, true, nil
	}
	row, err = s.read(key)
	return row, false, err
}

// landed notes the outcome of one own write; it reports whether the last record of the key differs from the row.
func (s *rowStore) landed(key string, offset int64, err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.own[key]
	o.flying--
	if err == nil {
		o.lastOffset = max(o.lastOffset, offset)
	}
	if o.flying > 0 || o.stranger < 0 {
		return false
	}
	behind := o.stranger >= o.lastOffset // the same: our own, read back before it was acknowledged
	o.stranger = -1
	return behind
}

// differing is asked by the follower about a record of the key that is not what the local store holds: must the row be
// written again? Not while an own write is, or may be, behind that record. Our own last one differs where a stranger's stands
// before it that it knows nothing of: it was on its way when that was read.
func (s *rowStore) differing(key string, offset int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.own[key]
	switch {
	case o == nil:
		return true
	case o.flying > 0:
		o.stranger = offset
		return false
	default:
		return offset >= o.lastOffset
	}
}

// passed forgets the own writes of a key that the follower has read back.
func (s *rowStore) passed(key string, offset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.own[key]; o != nil && o.flying == 0 && o.lastOffset <= offset {
		delete(s.own, key)
	}
}

// rewrite sends the local row of a key again: what stands last in the topic must be the merged row.
func (s *rowStore) rewrite(key string) {
	s.writing.Lock()
	defer s.writing.Unlock()
	row, err := s.read(key)
	if err != nil || row == nil {
		return
	}
	out, err := s.output(key, row)
	if err != nil {
		s.p.log.Error("a row cannot be written again", "key", key, "error", err)
		return
	}
	s.p.r.env.Metrics.rewritten.WithLabelValues(s.p.r.env.Stage).Inc()
	s.put(key, row, out, func(_ int64, err error) {
		if err != nil {
			s.p.log.Warn("a row could not be written again; it is tried at the next recovery", "error", err)
		}
	})
}

// mergeUpdate is goka's update callback while a table or a joined table is recovered or followed by goka: it merges
// instead of overwriting, and remembers the group's own rows whose record is not what the merge gave.
func (r *runner) mergeUpdate(u goka.UpdateContext, st storage.Storage, key string, value []byte) error {
	t := r.tableOf(string(u.Topic()))
	if t == nil || value == nil {
		return nil // nobody writes tombstones into these tables; expiry is by time, in every copy alike
	}
	current, err := st.Get(key)
	if err != nil {
		return fmt.Errorf("reading the row of %q: %w", key, err)
	}
	merged, differs, err := mergeValues(t, current, value)
	if err != nil {
		return fmt.Errorf("row of %q in %s: %w", key, u.Topic(), err)
	}
	if string(u.Topic()) == r.group.TableTopic() {
		r.dirty.note(u.Partition(), key, differs)
	}
	if bytes.Equal(merged, current) {
		return nil
	}
	return st.Set(key, merged)
}

// mergeValues merges two encoded rows. differs: the result is not what the record says. What cannot be decoded loses.
func mergeValues(t *table, current, record []byte) (merged []byte, differs bool, err error) {
	if current == nil || bytes.Equal(current, record) || mutant.Active == mutant.RowsOverwritten {
		return record, false, nil
	}
	theirs, err := t.decode(record)
	if errors.Is(err, stage.ErrNewerFormat) {
		return nil, false, err
	}
	ours, ownErr := t.decode(current)
	if errors.Is(ownErr, stage.ErrNewerFormat) {
		return nil, false, ownErr
	}
	switch {
	case err != nil && ownErr != nil:
		return current, false, nil
	case err != nil:
		return current, true, nil
	case ownErr != nil:
		return record, false, nil
	}
	row := t.merge(ours, theirs)
	if row == theirs { // the usual record is a later row, which needs no encoding to be told from ours
		return record, false, nil
	}
	if merged, err = t.encode(row); err != nil {
		return nil, false, err
	}
	again, err := t.encode(theirs)
	if err != nil {
		return nil, false, err
	}
	own, err := t.encode(ours)
	if err != nil {
		return nil, false, err
	}
	switch {
	case t.same(merged, again):
		return record, false, nil
	case t.same(merged, own):
		return current, true, nil
	}
	return merged, true, nil
}

// dirtyKeys are the keys of recovered rows whose last record in the topic is behind the local row.
type dirtyKeys struct {
	mu   sync.Mutex
	keys map[int32]map[string]struct{}
}

func (d *dirtyKeys) note(partition int32, key string, differs bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !differs {
		delete(d.keys[partition], key)
		return
	}
	if d.keys == nil {
		d.keys = map[int32]map[string]struct{}{}
	}
	if d.keys[partition] == nil {
		d.keys[partition] = map[string]struct{}{}
	}
	d.keys[partition][key] = struct{}{}
}

func (d *dirtyKeys) take(partition int32) map[string]struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := d.keys[partition]
	delete(d.keys, partition)
	return keys
}
