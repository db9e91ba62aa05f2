package processors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/stage"
)

// forgetful is a store that is interrupted when a test says so.
type forgetful struct {
	*sinktest.Memory
	interrupted atomic.Pointer[error]
	looks       atomic.Int32
	written     func(id string) // nil, or called for each object that is written
	refuses     string          // the id of an object that is not written
	deaf        int             // how many looks for torn objects fail
}

func (f *forgetful) Upsert(ctx context.Context, objects []sinks.Object, repair map[int]bool) []sinks.Result {
	results := f.Memory.Upsert(ctx, objects, repair)
	for i := range objects {
		switch {
		case objects[i].ID == f.refuses:
			f.LoseVectors(f.refuses)
			results[i] = sinks.Result{Outcome: sinks.Transient, Err: errDied}
		case f.written != nil:
			f.written(objects[i].ID)
		}
	}
	return results
}

// Torn is what the store has and does not find.
func (f *forgetful) Torn(ctx context.Context, objects []sinks.Object) ([]int, error) {
	if f.deaf > 0 {
		f.deaf--
		return nil, errDied
	}
	missing, err := f.Missing(ctx, objects)
	all := f.Objects()
	return slices.DeleteFunc(missing, func(i int) bool {
		return !slices.ContainsFunc(all, func(o sinks.Object) bool { return o.ID == objects[i].ID })
	}), err
}

func (f *forgetful) Interrupted(context.Context) error {
	f.looks.Add(1)
	if err := f.interrupted.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *forgetful) setInterrupted(err error) {
	if err == nil {
		f.interrupted.Store(nil)
		return
	}
	f.interrupted.Store(&err)
}

// recordLog is one partition of some topics.
type recordLog struct {
	records map[string][]stage.Record
	highest map[string]int64 // offset that was read
}

func (l *recordLog) append(topic string, at time.Time, value []byte) {
	l.records[topic] = append(l.records[topic], stage.Record{Topic: topic, Offset: int64(len(l.records[topic])), Timestamp: at, Value: value})
}

func (l *recordLog) Offsets(_ context.Context, topic string, _ int32) (oldest, next int64, err error) {
	return 0, int64(len(l.records[topic])), nil
}

func (l *recordLog) OffsetAt(_ context.Context, topic string, _ int32, t time.Time) (int64, error) {
	for _, r := range l.records[topic] {
		if !r.Timestamp.Before(t) {
			return r.Offset, nil
		}
	}
	return int64(len(l.records[topic])), nil
}

func (l *recordLog) Range(_ context.Context, topic string, _ int32, from, to int64, do func(stage.Record) error) error {
	for _, r := range l.records[topic] {
		if r.Offset >= from && r.Offset < to {
			l.highest[topic] = max(l.highest[topic], r.Offset)
			if err := do(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// reading is a partition of the indexer whose store may forget.
type reading struct {
	*processors.ReadBack
	t         testing.TB
	store     *forgetful
	log       *recordLog
	rows      map[string]*ledger.DocumentRow
	delivered int64 // vectors; -1: all

	clock  time.Time
	waits  chan waiting
	ended  chan error
	cancel context.CancelFunc
}

type waiting struct {
	d    time.Duration
	over chan time.Time
}

func newReading(t testing.TB) *reading {
	r := &reading{t: t, store: &forgetful{Memory: sinktest.NewMemory(2)}, log: &recordLog{map[string][]stage.Record{}, map[string]int64{}}, clock: noon,
		rows: map[string]*ledger.DocumentRow{}, delivered: -1, waits: make(chan waiting)}
	r.ReadBack = &processors.ReadBack{Topics: topics, Store: r.store, Tenant: "tenant", Log: r.log, Now: func() time.Time { return r.clock },
		After: func(d time.Duration) <-chan time.Time {
			w := waiting{d, make(chan time.Time, 1)}
			r.waits <- w
			return w.over
		}}
	return r
}

func (r *reading) owned() stage.Owned[ledger.DocumentRow] {
	return stage.Owned[ledger.DocumentRow]{
		Row:   func(key string) *ledger.DocumentRow { return r.rows[key] },
		Valid: func() bool { return true },
		Delivered: func(topic string) (int64, bool) {
			if r.delivered >= 0 {
				return r.delivered, true
			}
			return int64(len(r.log.records[topic])), true
		},
		Alone: func(act func(context.Context)) { act(context.Background()) },
	}
}

// begin starts the work and returns once it waits for the next look, or has ended.
func (r *reading) begin() error {
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.Keep(ctx, r.owned()) }()
	return r.idle(nil)
}

// idle lets the work go on until it waits for the next look, or has ended.
func (r *reading) idle(last *waiting) error {
	if last != nil {
		last.over <- r.clock
	}
	for {
		select {
		case w := <-r.waits:
			if w.d == time.Second {
				go func() { r.waits <- w }() // for the next tick
				return nil
			}
			w.over <- r.clock
		case err := <-r.ended:
			return fmt.Errorf("ended: %w", err)
		}
	}
}

// tick is the next look, after d.
func (r *reading) tick(d time.Duration) error {
	r.clock = r.clock.Add(d)
	select {
	case w := <-r.waits:
		return r.idle(&w)
	case err := <-r.ended:
		return fmt.Errorf("ended: %w", err)
	}
}

func (r *reading) end() {
	r.cancel()
	<-r.waits // nobody waits any more
	if err := <-r.ended; err != nil {
		r.t.Errorf("the work ended with %v", err)
	}
}

// write is what the embedder and the indexer did: vectors in the log and in the store, a receipt, and the row.
func (r *reading) write(s rag.Subject, at time.Time, chunks int) (ids []string) {
	r.t.Helper()
	var objects []sinks.Object
	for i := range chunks {
		v := vector(s, i, chunks)
		r.put(topics.Vectors.Name, at, topics.Vectors.Record(s.DocumentID, v))
		objects = append(objects, sinks.Object{ID: rag.ChunkID("tenant", s.DocumentID, s.Revision, i).String(), Chunk: v.Chunk, Vector: v.Values})
		ids = append(ids, objects[i].ID)
	}
	for _, res := range r.store.Upsert(context.Background(), objects, nil) {
		check(r.t, res.Err)
	}
	r.put(topics.Progress.Name, at, topics.Progress.Record(s.DocumentID, rag.Progress{Kind: rag.ProgressReceipt, Subject: s, At: at,
		Confirmed: []rag.IndexRange{{From: 0, To: chunks}}}))
	r.rows[s.DocumentID] = &ledger.DocumentRow{Fence: s.Revision.Version, Served: ledger.Served{Revision: s.Revision, Count: chunks}}
	return ids
}

func (r *reading) put(topic string, at time.Time, out stage.Output) {
	r.t.Helper()
	check(r.t, out.Err)
	r.log.append(topic, at, out.Value)
}

func (r *reading) missing(ids ...string) []string {
	r.t.Helper()
	var lost []string
	all := r.store.Objects()
	indexes, err := r.store.Missing(context.Background(), all)
	check(r.t, err)
	for _, i := range indexes {
		if len(ids) == 0 || slices.Contains(ids, all[i].ID) {
			lost = append(lost, all[i].ID)
		}
	}
	return lost
}

var errDied = errors.New("the server died")

// A process that begins trusts nothing of the last ten minutes; what was lost is written again, the rest is not.
func TestReadBackAtTheBegin(t *testing.T) {
	r := newReading(t)
	a, b := subject("a", "1", 1), subject("b", "2", 2)
	lost := r.write(a, noon.Add(-9*time.Minute), 130)
	r.write(b, noon.Add(-time.Minute), 3)
	r.store.LoseVectors(lost[0], lost[77], lost[129])
	before := r.store.Stats()
	check(t, r.begin())
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	after := r.store.Stats()
	if n := after.Objects - before.Objects; n != 3 || after.Repaired != 3 {
		t.Errorf("%d objects were written, %d of them repaired, want the 3 that were lost", n, after.Repaired)
	}
	if len(r.store.Objects()) != 133 {
		t.Errorf("the store has %d objects", len(r.store.Objects()))
	}
	for range 5 {
		check(t, r.tick(time.Second))
	}
	if n := r.store.Stats().Objects - after.Objects; n != 0 {
		t.Errorf("%d objects were written although nothing has happened", n)
	}
	r.end()
}

// While the store is interrupted nothing is asked; when it is back, what was acknowledged before is looked after.
func TestReadBackAfterAnInterruption(t *testing.T) {
	r := newReading(t)
	check(t, r.begin())
	ids := r.write(subject("a", "1", 1), r.clock, 4)
	check(t, r.tick(time.Second))
	r.store.setInterrupted(errDied)
	r.store.LoseVectors(ids[3])
	asked := r.store.Stats().ReadBack
	for range 40 * 60 { // an outage that is longer than what came before it is remembered
		check(t, r.tick(time.Second))
	}
	if n := r.store.Stats().ReadBack - asked; n != 0 {
		t.Errorf("%d chunks were looked for while the store was away", n)
	}
	r.store.setInterrupted(nil)
	check(t, r.tick(time.Second))
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	r.end()
}

// What is written again changes the index: a chunk that was found before may not be found any more. Everything is looked for
// until all of it is found.
func TestWhatARepairHidesIsFoundAgain(t *testing.T) {
	r := newReading(t)
	ids := r.write(subject("a", "1", 1), noon.Add(-time.Minute), 5)
	r.store.LoseVectors(ids[0])
	hides := map[string]string{ids[0]: ids[3], ids[3]: ids[1]}
	r.store.written = func(id string) {
		if other, ok := hides[id]; ok {
			delete(hides, id)
			r.store.LoseVectors(other)
		}
	}
	check(t, r.begin())
	for range 4 {
		check(t, r.tick(time.Second))
	}
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	if len(hides) > 0 {
		t.Errorf("%d repairs were never made", len(hides))
	}
	r.end()
}

// A repair that fails has changed the index too: who has looked already looks once more.
func TestWhatAFailedRepairHidesIsFoundAgain(t *testing.T) {
	r := newReading(t)
	ids := r.write(subject("a", "1", 1), noon.Add(-time.Minute), 5)
	check(t, r.begin())
	r.store.LoseVectors(ids[0], ids[1])
	r.store.refuses = ids[1]
	r.store.written = func(id string) {
		if id == ids[0] {
			r.store.LoseVectors(ids[3])
		}
	}
	other := r.owned()
	other.Partition = 1
	if err := r.Keep(t.Context(), other); !errors.Is(err, errDied) {
		t.Fatalf("the other partition ends with %v", err)
	}
	r.store.refuses, r.store.written = "", nil
	check(t, r.tick(time.Second))
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	r.end()
}

// A minute after an interruption everything is looked for a second time, because others write to the same index.
func TestReadBackLooksTwice(t *testing.T) {
	r := newReading(t)
	ids := r.write(subject("a", "1", 1), noon.Add(-time.Minute), 5)
	check(t, r.begin())
	check(t, r.tick(time.Second))
	r.store.LoseVectors(ids[2]) // somebody else's repair
	asked := r.store.Stats().ReadBack
	for range 58 {
		check(t, r.tick(time.Second))
	}
	if n := r.store.Stats().ReadBack - asked; n != 0 {
		t.Errorf("%d chunks were looked for within the minute", n)
	}
	for range 3 {
		check(t, r.tick(time.Second))
	}
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	asked = r.store.Stats().ReadBack
	for range 300 {
		check(t, r.tick(time.Second))
	}
	if n := r.store.Stats().ReadBack - asked; n > 5 {
		t.Errorf("%d chunks were looked for although nothing has happened", n)
	}
	r.end()
}

// Nobody has looked for a while: the store may have died and come back.
func TestReadBackAfterAGap(t *testing.T) {
	r := newReading(t)
	check(t, r.begin())
	ids := r.write(subject("a", "1", 1), r.clock, 2)
	check(t, r.tick(time.Second))
	r.store.LoseVectors(ids...)
	check(t, r.tick(2*time.Second))
	if left := r.missing(); len(left) != 2 {
		t.Errorf("two seconds are no gap, and %d of 2 vectors were written again", 2-len(left))
	}
	check(t, r.tick(10*time.Second))
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still", len(left))
	}
	r.store.LoseVectors(ids...)
	check(t, r.tick(-time.Hour)) // the clock was put back
	if left := r.missing(); len(left) > 0 {
		t.Errorf("%d vectors are lost still after the clock was put back", len(left))
	}
	r.end()
}

// What was acknowledged long ago is not looked for, but the last receipts always are.
func TestReadBackIsBounded(t *testing.T) {
	r := newReading(t)
	var old, last, fresh []string
	for i := range 1300 {
		at, ids := noon.Add(-time.Hour), &old
		switch {
		case i >= 600:
			at, ids = noon.Add(-9*time.Minute), &fresh
		case i >= 500:
			ids = &last
		}
		*ids = append(*ids, r.write(subject(fmt.Sprint("d", i), fmt.Sprint(i), int64(i+1)), at, 1)...)
	}
	r.store.LoseVectors(slices.Concat(old, last, fresh)...)
	check(t, r.begin())
	if left := r.missing(fresh...); len(left) > 0 {
		t.Errorf("%d of 700 from the last ten minutes are lost still", len(left))
	}
	if left := r.missing(append(old, last...)...); len(left) != 600 {
		t.Errorf("%d chunks from an hour ago were looked for", 600-len(left))
	}
	r.end()

	r = newReading(t)
	for i := range 700 {
		r.write(subject(fmt.Sprint("d", i), fmt.Sprint(i), int64(i+1)), noon.Add(-time.Hour), 1)
	}
	before := r.store.Stats().ReadBack
	check(t, r.begin())
	if n := r.store.Stats().ReadBack - before; n != 500 {
		t.Errorf("%d chunks from an hour ago were looked for, want the last 500", n)
	}
	r.end()
}

// A chunk that is not served any more is not brought back, not even if it was superseded while it was looked for.
func TestReadBackBringsNothingBack(t *testing.T) {
	r := newReading(t)
	gone := subject("gone", "1", 1)
	ids := r.write(gone, noon, 2)
	for _, o := range r.store.Objects() {
		check(t, r.store.Remove(context.Background(), o.Chunk.DocumentID, rag.Removal{Exact: true, Revision: gone.Revision}).Err)
	}
	r.rows["gone"] = &ledger.DocumentRow{Fence: version(9), Served: ledger.Served{Revision: revision(9, 0)}}

	late := subject("late", "2", 2)
	lost := r.write(late, noon, 2)
	r.store.LoseVectors(lost...)
	p := r.owned()
	p.Alone = func(act func(context.Context)) { // the row changes while the work waits to be alone
		r.rows["late"] = &ledger.DocumentRow{Fence: version(9), Served: ledger.Served{Revision: revision(9, 0)}}
		act(context.Background())
	}
	before := r.store.Stats().Upserts
	ctx, cancel := context.WithCancel(context.Background())
	r.cancel, r.ended = cancel, make(chan error, 1)
	go func() { r.ended <- r.Keep(ctx, p) }()
	check(t, r.idle(nil))
	if n := r.store.Stats().Upserts - before; n != 0 {
		t.Errorf("%d writes of chunks that nobody is to see (%v)", n, ids)
	}
	r.end()
}

// Chunks that wait to be written are not looked for.
func TestReadBackLeavesOutWhatIsNotDelivered(t *testing.T) {
	r := newReading(t)
	r.write(subject("a", "1", 1), noon, 3)
	r.delivered = 3
	r.put(topics.Vectors.Name, noon, topics.Vectors.Record("b", vector(subject("b", "2", 2), 0, 1)))
	before := r.store.Stats().ReadBack
	check(t, r.begin())
	if n := r.store.Stats().ReadBack - before; n != 3 {
		t.Errorf("%d chunks were looked for, want 3", n)
	}
	if r.log.highest[topics.Vectors.Name] != 2 {
		t.Errorf("vectors were read up to offset %d, though only those below 3 were delivered", r.log.highest[topics.Vectors.Name])
	}
	r.end()
}

// A failure ends the work, which finds everything still to be done when it begins anew.
func TestReadBackFailsAndBeginsAnew(t *testing.T) {
	for name, fail := range map[string]func(*reading) (undo func()){
		"the store is away": func(r *reading) func() { r.store.SetAway(true); return func() { r.store.SetAway(false) } },
		"a write fails": func(r *reading) func() {
			r.store.SetIntercept(func(objects []sinks.Object, _ map[int]bool) []sinks.Result {
				return slices.Repeat([]sinks.Result{{Outcome: sinks.Transient, Err: errOdd}}, len(objects))
			})
			return func() { r.store.SetIntercept(nil) }
		},
		"nothing is delivered yet": func(r *reading) func() { return func() {} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newReading(t)
			ids := r.write(subject("a", "1", 1), noon, 5)
			r.store.LoseVectors(ids[2])
			undo := fail(r)
			p := r.owned()
			if name == "nothing is delivered yet" {
				p.Delivered = func(string) (int64, bool) { return 0, false }
			}
			if err := r.Keep(t.Context(), p); err == nil {
				t.Fatal("the work went on")
			}
			undo()
			r.clock = r.clock.Add(time.Second)
			check(t, r.begin())
			if left := r.missing(); len(left) > 0 {
				t.Errorf("%d vectors are lost still", len(left))
			}
			r.end()
		})
	}
}

// Whatever was written and lost in the window: what has to be there is found again afterwards, and nothing else has come.
func TestReadBackProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newReading(t)
		documents := rapid.IntRange(1, 8).Draw(rt, "documents")
		for i := range documents {
			s := subject(fmt.Sprint("d", i), fmt.Sprint("m", i), int64(i+1))
			ids := r.write(s, noon.Add(-time.Duration(rapid.IntRange(0, 9).Draw(rt, "minutes"))*time.Minute), rapid.IntRange(1, 120).Draw(rt, "chunks"))
			if rapid.Bool().Draw(rt, "redelivered") { // every record a second time
				for j := range ids {
					r.put(topics.Vectors.Name, noon, topics.Vectors.Record(s.DocumentID, vector(s, j, len(ids))))
				}
			}
			for _, id := range ids {
				if rapid.IntRange(0, 3).Draw(rt, "lost") == 0 {
					r.store.LoseVectors(id)
				}
			}
		}
		before := len(r.store.Objects())
		check(t, r.begin())
		if left := r.missing(); len(left) > 0 {
			rt.Errorf("%d vectors are lost still", len(left))
		}
		if after := len(r.store.Objects()); after != before {
			rt.Errorf("%d objects have become %d", before, after)
		}
		r.end()
	})
}

// A store in which every repair hides something else is not written to without end.
func TestRepairsThatHideEachOtherComeToAnEnd(t *testing.T) {
	r := newReading(t)
	ids := r.write(subject("a", "1", 1), noon.Add(-time.Minute), 2)
	r.store.LoseVectors(ids[0])
	other := map[string]string{ids[0]: ids[1], ids[1]: ids[0]}
	r.store.written = func(id string) { r.store.LoseVectors(other[id]) }
	repaired := func(ticks int) int {
		before := r.store.Stats().Repaired
		for range ticks {
			check(t, r.tick(time.Second))
		}
		return r.store.Stats().Repaired - before
	}
	check(t, r.begin())
	if n := repaired(300); n < 5 || n > 30 {
		t.Errorf("%d repairs in five minutes", n)
	}
	repaired(40 * 60)
	if n := repaired(300); n != 0 {
		t.Errorf("%d repairs in five minutes, three quarters of an hour later", n)
	}
	r.end()
}
