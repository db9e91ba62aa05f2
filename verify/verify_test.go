package verify_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/sinks/sinktest"
	"github.com/waymarkhq/waymark/verify"
)

const dimensions = 3

// world is a store with rows and a log beside it.
type world struct {
	t         *testing.T
	store     *sinktest.Memory
	rows      map[string]*ledger.DocumentRow
	log       []rag.Vector // oldest first
	embedded  int
	unsettled error
	pauses    []time.Duration
	// during runs at a moment of the comparison: "walked" before the log is read, "fresh" before rows are read anew, "paused"
	// in the pause before the last look.
	during map[string]func()
}

func newWorld(t *testing.T) *world {
	return &world{t: t, store: sinktest.NewMemory(dimensions), rows: map[string]*ledger.DocumentRow{}, during: map[string]func(){}}
}

// at is a moment of the comparison. What runs then runs once.
func (w *world) at(moment string) {
	if f := w.during[moment]; f != nil {
		delete(w.during, moment)
		f()
	}
}

func (w *world) Each(_ context.Context, do func(string, *ledger.DocumentRow) error) error {
	for _, id := range slices.Sorted(maps.Keys(w.rows)) {
		if err := do(id, w.rows[id]); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) Get(_ context.Context, id string) (*ledger.DocumentRow, error) {
	return w.rows[id], nil
}

func (w *world) Fresh(context.Context) error {
	w.at("fresh")
	return nil
}

func (w *world) Vectors(_ context.Context, do func(rag.Vector) error) error {
	w.at("walked")
	for _, v := range slices.Backward(w.log) {
		if err := do(v); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) Embed(_ context.Context, texts []string) ([][]float32, error) {
	w.embedded += len(texts)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = vectorOf(t)
	}
	return out, nil
}

func (w *world) Settled(context.Context) error { return w.unsettled }

func (w *world) after(d time.Duration) <-chan time.Time {
	w.pauses = append(w.pauses, d)
	if d > time.Minute {
		w.at("paused")
	}
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

func (w *world) run(repair bool) verify.Report {
	w.t.Helper()
	v := w.verifier()
	report, err := v.Run(w.t.Context(), repair)
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

func (w *world) verifier() *verify.Verifier {
	return &verify.Verifier{Rows: w, Store: w.store, Log: w, Embedder: w, Pipeline: w, Tenant: "t", RemovalDelay: time.Minute,
		Settle: time.Second, After: w.after}
}

func vectorOf(text string) []float32 {
	return []float32{1, float32(len(text)), float32(text[len(text)-1])}
}

func chunk(id string, rev rag.Revision, index, count int) rag.Chunk {
	return rag.Chunk{Subject: rag.Subject{DocumentID: id, Revision: rev}, Index: index, Count: count, Text: fmt.Sprintf("%s %s %d", id, rev, index)}
}

func object(c rag.Chunk) sinks.Object {
	return sinks.Object{ID: rag.ChunkID("t", c.DocumentID, c.Revision, c.Index).String(), Chunk: c, Vector: vectorOf(c.Text)}
}

func v(n int) rag.Revision { return rag.Revision{Version: rag.Version(n)} }

// put writes chunks of a revision into the store.
func (w *world) put(id string, rev rag.Revision, count int, indexes ...int) {
	w.t.Helper()
	for _, i := range indexes {
		w.write(object(chunk(id, rev, i, count)))
	}
}

func (w *world) write(o sinks.Object) {
	w.t.Helper()
	if r := w.store.Upsert(w.t.Context(), []sinks.Object{o}, nil)[0]; r.Err != nil {
		w.t.Fatal(r.Err)
	}
}

// serve is a document with all its chunks in the store and in the log.
func (w *world) serve(id string, rev rag.Revision, count int) *ledger.DocumentRow {
	w.t.Helper()
	for i := range count {
		w.put(id, rev, count, i)
		w.log = append(w.log, rag.Vector{Chunk: chunk(id, rev, i, count), Values: vectorOf(chunk(id, rev, i, count).Text)})
	}
	row := &ledger.DocumentRow{Applied: 1, Fence: rev.Version, Served: ledger.Served{Revision: rev, Count: count}}
	w.rows[id] = row
	return row
}

// lose takes an object out of the store.
func (w *world) lose(id string, rev rag.Revision, index int) {
	w.t.Helper()
	keep := w.store.Objects()
	w.remove(id, rev)
	lost := 0
	for _, o := range keep {
		if o.Chunk.DocumentID == id && o.Chunk.Revision == rev {
			if o.ID == object(chunk(id, rev, index, 0)).ID {
				lost++
				continue
			}
			w.write(o)
		}
	}
	if lost != 1 {
		w.t.Fatalf("%s %s has no chunk %d", id, rev, index)
	}
}

func (w *world) remove(id string, rev rag.Revision) {
	w.t.Helper()
	if r := w.store.Remove(w.t.Context(), id, rag.Removal{Exact: true, Revision: rev}); r.Err != nil {
		w.t.Fatal(r.Err)
	}
}

// unsearchable takes a chunk out of the index.
func (w *world) unsearchable(id string, rev rag.Revision, index int) {
	w.store.LoseVectors(object(chunk(id, rev, index, 0)).ID)
}

// holds compares the store with chunks written as "id revision index".
func (w *world) holds(want ...string) {
	w.t.Helper()
	var got []string
	for _, o := range w.store.Objects() {
		got = append(got, fmt.Sprintf("%s %s %d", o.Chunk.DocumentID, o.Chunk.Revision, o.Chunk.Index))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.t.Errorf("the store holds %q, want %q", got, want)
	}
}

// wants compares findings written as "kind id revision indexes objects/repaired".
func wants(t *testing.T, r verify.Report, want ...string) {
	t.Helper()
	var got []string
	for _, f := range r.Findings {
		var indexes []string
		for i := range 100 {
			if f.Chunks.Has(i) {
				indexes = append(indexes, fmt.Sprint(i))
			}
		}
		got = append(got, fmt.Sprintf("%s %s %s %s %d/%d", f.Kind, f.DocumentID, f.Revision, strings.Join(indexes, ","), f.Objects, f.Repaired))
		if repaired := f.Left() == 0; repaired && f.Note != "" {
			t.Errorf("%s is repaired, and says %q", got[len(got)-1], f.Note)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestNothingDiffers(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(3), 250)
	w.serve("b", v(4), 1)
	w.rows["deleted"] = &ledger.DocumentRow{Applied: 1, Fence: 9, Served: ledger.Served{Revision: v(9)}}
	r := w.run(true)
	if wants(t, r); !r.Clean() || r.Documents != 3 || r.Chunks != 251 || r.Objects != 251 {
		t.Errorf("report %+v", r)
	}
	if w.embedded != 0 || len(w.pauses) != 0 {
		t.Errorf("%d texts were embedded, it paused %v", w.embedded, w.pauses)
	}
}

func TestLostChunksComeBack(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(3), 3)
	w.serve("b", v(4), 2)
	before := w.store.Objects()
	w.lose("a", v(3), 1)
	w.unsearchable("a", v(3), 2)
	w.unsearchable("b", v(4), 0)
	want := []string{"missing a v3.0 1 1/0", "unsearchable a v3.0 2 1/0", "unsearchable b v4.0 0 1/0"}
	for range 2 { // looking changes nothing
		r := w.run(false)
		if wants(t, r, want...); r.Clean() || r.Left() != 3 {
			t.Errorf("report %+v", r)
		}
	}
	r := w.run(true)
	wants(t, r, "missing a v3.0 1 1/1", "unsearchable a v3.0 2 1/1", "unsearchable b v4.0 0 1/1")
	if !r.Clean() {
		t.Error("something is left")
	}
	after := w.store.Objects()
	if missing, err := w.store.Missing(t.Context(), before); err != nil || len(missing) > 0 || len(after) != len(before) {
		t.Errorf("%d objects, missing %v, %v", len(after), missing, err)
	}
	for i := range before {
		if before[i].ID != after[i].ID || before[i].Chunk.Text != after[i].Chunk.Text {
			t.Errorf("%+v has become %+v", before[i], after[i])
		}
	}
}

// Of what the log no longer has, the store's own text is embedded again; what the store has not is told.
func TestChunksOlderThanTheLog(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(3), 4)
	w.log = w.log[3:]
	w.lose("a", v(3), 0)
	w.unsearchable("a", v(3), 1)
	r := w.run(true)
	wants(t, r, "missing a v3.0 0 1/0", "unsearchable a v3.0 1 1/1")
	if w.embedded != 2 || r.Clean() || !strings.Contains(r.Findings[0].Note, "submit") {
		t.Errorf("%d texts were embedded, note %q", w.embedded, r.Findings[0].Note)
	}
	w.holds("a v3.0 1", "a v3.0 2", "a v3.0 3")
}

// A chunk may be in the log more than once, with vectors that differ a little: the last one was written last.
func TestTheLastVectorOfTheLogCounts(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(3), 1)
	earlier := w.log[0]
	earlier.Values = []float32{0, 0, 1}
	w.log = []rag.Vector{earlier, w.log[0]}
	wants(t, w.run(false))
}

func TestStaleRevisions(t *testing.T) {
	w := newWorld(t)
	row := w.serve("a", v(5), 1)
	row.Work = map[rag.Revision]ledger.Work{v(7): {}}
	row.Due = map[rag.Removal]time.Time{{Exact: true, Revision: v(4)}: {}, {Revision: v(3)}: {}}
	w.put("a", v(1), 1, 0)                                                      // due: below 3
	w.put("a", v(3), 2, 0, 1)                                                   // stale
	w.put("a", v(4), 1, 0)                                                      // due
	w.put("a", rag.Revision{Version: 4, Generation: 1}, 1, 0)                   // stale
	w.put("a", v(7), 1, 0)                                                      // in work
	w.put("a", v(9), 1, 0)                                                      // above what is served
	w.put("nobody", v(2), 2, 0, 1)                                              // no row
	w.rows["gone"] = &ledger.DocumentRow{Served: ledger.Served{Revision: v(8)}} // deleted at 8
	w.put("gone", v(6), 1, 0)
	want := []string{"stale a v3.0 0,1 2/0", "stale a v4.1 0 1/0", "stale a v9.0 0 1/0", "stale gone v6.0 0 1/0", "stale nobody v2.0 0,1 2/0"}
	wants(t, w.run(false), want...)
	if len(w.pauses) != 1 || w.pauses[0] <= time.Minute {
		t.Errorf("it paused %v", w.pauses)
	}
	r := w.run(true)
	wants(t, r, "stale a v3.0 0,1 2/2", "stale a v4.1 0 1/1", "stale a v9.0 0 1/0", "stale gone v6.0 0 1/1", "stale nobody v2.0 0,1 2/2")
	if r.Left() != 1 || !strings.Contains(r.Findings[2].Note, "above") {
		t.Errorf("report %+v", r)
	}
	w.holds("a v5.0 0", "a v1.0 0", "a v4.0 0", "a v7.0 0", "a v9.0 0")
}

// Where it cannot be told what the pipeline is at work on, only what lies below a served revision is judged.
func TestAPipelineThatIsBehind(t *testing.T) {
	w := newWorld(t)
	w.unsettled = errors.New("it is behind")
	w.serve("a", v(5), 1)
	w.put("a", v(3), 1, 0)
	w.put("a", v(9), 2, 0, 1)
	w.put("new", v(2), 1, 0)
	r := w.run(true)
	wants(t, r, "stale a v3.0 0 1/1")
	if r.Undecided != 3 || r.Clean() {
		t.Errorf("report %+v", r)
	}
	w.holds("a v5.0 0", "a v9.0 0", "a v9.0 1", "new v2.0 0")
}

func TestDoubledChunks(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 2)
	double := object(chunk("a", v(5), 1, 2))
	double.ID = uuid.NewSHA1(uuid.Nil, []byte("another")).String()
	w.write(double)
	w.put("a", v(5), 2, 7) // beyond the last
	wants(t, w.run(false), "doubled a v5.0 1 1/0", "stale a v5.0 7 1/0")
	r := w.run(true)
	wants(t, r, "doubled a v5.0 1 1/1", "stale a v5.0 7 1/1")
	w.holds("a v5.0 0", "a v5.0 1")
	if o := w.store.Objects(); o[1].ID == double.ID {
		t.Error("the chunk itself was removed")
	}
	wants(t, w.run(false))
}

// What changes between the looks is no difference.
func TestTrafficIsNoDifference(t *testing.T) {
	for name, during := range map[string]struct {
		moment string
		do     func(w *world)
	}{
		"the version served is replaced and removed": {"walked", func(w *world) {
			w.serve("a", v(6), 1)
			w.remove("a", v(5))
		}},
		"the document is deleted": {"walked", func(w *world) {
			w.rows["a"] = &ledger.DocumentRow{Fence: 6, Served: ledger.Served{Revision: v(6)}}
			w.remove("a", v(5))
		}},
		"it is replaced just before the rows are read anew": {"fresh", func(w *world) { w.serve("a", v(6), 1) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.serve("a", v(5), 3)
			w.unsearchable("a", v(5), 1)
			w.during[during.moment] = func() { during.do(w) }
			r := w.run(true)
			if wants(t, r); !r.Clean() {
				t.Errorf("report %+v", r)
			}
			if during.moment == "fresh" {
				w.holds("a v5.0 0", "a v5.0 1", "a v5.0 2", "a v6.0 0")
			}
		})
	}
}

func TestWhatIsServedRemovedOrTakenUpInThePauseIsNotStale(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 1)
	w.put("a", v(3), 1, 0) // removed in the pause
	w.put("a", v(7), 1, 0) // served after the pause
	w.put("new", v(2), 2, 0)
	w.put("dead", v(2), 1, 0)
	w.during["paused"] = func() {
		w.remove("a", v(3))
		w.serve("a", v(7), 1).Due = map[rag.Removal]time.Time{{Revision: v(7)}: {}}
		w.rows["new"] = &ledger.DocumentRow{Work: map[rag.Revision]ledger.Work{v(2): {}}}
		w.rows["dead"] = &ledger.DocumentRow{Due: map[rag.Removal]time.Time{{Exact: true, Revision: v(2)}: {}}}
	}
	wants(t, w.run(true))
	w.holds("a v5.0 0", "a v7.0 0", "new v2.0 0", "dead v2.0 0")
}

// Objects that come in the pause were not there at the first look.
func TestWhatComesInThePauseIsNotJudged(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 1)
	w.put("a", v(3), 1, 0)
	w.during["paused"] = func() { w.put("a", v(4), 1, 0) }
	wants(t, w.run(true), "stale a v3.0 0 1/1")
	w.holds("a v5.0 0", "a v4.0 0")
}

// A chunk that was written again although its document has moved on does not stay.
func TestARepairThatCameTooLateIsUndone(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 2)
	w.lose("a", v(5), 1)
	w.store.SetIntercept(func([]sinks.Object, map[int]bool) []sinks.Result {
		w.store.SetIntercept(nil)
		w.remove("a", v(5))
		w.serve("a", v(6), 1)
		return nil
	})
	r := w.run(true)
	if !r.Clean() {
		t.Errorf("report %+v", r)
	}
	w.holds("a v6.0 0")
}

func TestAWriteWithoutAnAnswerIsRepeated(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 2)
	w.lose("a", v(5), 1)
	w.store.Arm(sinktest.Fault{Kind: sinktest.LostAfter})
	wants(t, w.run(true), "missing a v5.0 1 1/1")
	if len(w.pauses) != 1 || w.pauses[0] != time.Second {
		t.Errorf("it paused %v", w.pauses)
	}
}

func TestAStoreThatRefusesLeavesTheDifference(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 2)
	w.lose("a", v(5), 1)
	w.put("a", v(3), 1, 0)
	for range 2 {
		w.store.Arm(sinktest.Fault{Kind: sinktest.FailAll})
	}
	r := w.run(true)
	wants(t, r, "stale a v3.0 0 1/0", "missing a v5.0 1 1/0")
	for _, f := range r.Findings {
		if !strings.Contains(f.Note, "outage") {
			t.Errorf("note %q", f.Note)
		}
	}
	w.store.SetAway(true)
	if _, err := w.verifier().Run(t.Context(), false); !errors.Is(err, sinktest.ErrAway) {
		t.Errorf("error %v", err)
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	w.serve("a", v(5), 1)
	w.put("a", v(3), 1, 0)
	ctx, cancel := context.WithCancel(t.Context())
	verifier := w.verifier()
	verifier.After = func(time.Duration) <-chan time.Time { cancel(); return nil }
	if _, err := verifier.Run(ctx, true); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	w.holds("a v5.0 0", "a v3.0 0")
}
