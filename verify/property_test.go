package verify_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// revisions are few, so that they meet.
func revisions() *rapid.Generator[rag.Revision] {
	return rapid.Custom(func(t *rapid.T) rag.Revision {
		return rag.Revision{Version: rag.Version(rapid.IntRange(1, 5).Draw(t, "version")), Generation: rapid.IntRange(0, 1).Draw(t, "generation")}
	})
}

// Whatever the store holds and whatever happens between the looks: a repair never takes away a chunk that somebody accounts
// for, or that is above what is served; and where nothing happens, what it leaves are the differences that it told.
func TestRepairsTakeNothingThatIsAccountedFor(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		documents := []string{"a", "b", "c"}
		for _, id := range documents {
			if rapid.IntRange(0, 4).Draw(rt, "row of "+id) > 0 {
				w.rows[id] = w.draw(rt, id)
			}
			for range rapid.IntRange(0, 6).Draw(rt, "objects of "+id) {
				w.put(id, revisions().Draw(rt, "revision"), 4, rapid.IntRange(0, 4).Draw(rt, "index"))
			}
		}
		if rapid.Bool().Draw(rt, "a double") {
			o := object(chunk("a", revisions().Draw(rt, "revision"), rapid.IntRange(0, 3).Draw(rt, "index"), 4))
			o.ID = uuid.NewSHA1(uuid.Nil, []byte("double")).String()
			w.write(o)
		}
		for _, o := range w.store.Objects() {
			if rapid.IntRange(0, 3).Draw(rt, "lost") == 0 {
				w.store.LoseVectors(o.ID)
			}
		}
		before := w.store.Objects()
		moment := rapid.SampledFrom([]string{"never", "walked", "fresh", "paused"}).Draw(rt, "moment")
		w.during[moment] = func() {
			id := rapid.SampledFrom(documents).Draw(rt, "document that changes")
			w.rows[id] = w.draw(rt, id)
		}
		report := w.run(true)
		after := map[string]bool{}
		for _, o := range w.store.Objects() {
			after[o.ID] = true
		}
		for _, o := range before {
			if w.rightful(o) && !after[o.ID] {
				rt.Fatalf("%s %s %d was taken away; its row is %+v", o.Chunk.DocumentID, o.Chunk.Revision, o.Chunk.Index, w.rows[o.Chunk.DocumentID])
			}
		}
		if moment == "never" || w.during[moment] != nil {
			if again := w.run(false); again.Left() != report.Left() {
				rt.Fatalf("%d objects are left, and then %d: %+v", report.Left(), again.Left(), again.Findings)
			}
		}
	})
}

// draw makes a row that serves up to three chunks, all of which are in the log and some in the store.
func (w *world) draw(t *rapid.T, id string) *ledger.DocumentRow {
	rev, count := revisions().Draw(t, "served"), rapid.IntRange(0, 3).Draw(t, "count")
	row := &ledger.DocumentRow{Fence: rev.Version, Served: ledger.Served{Revision: rev, Count: count},
		Work: map[rag.Revision]ledger.Work{}, Due: map[rag.Removal]time.Time{}}
	for i := range count {
		c := chunk(id, rev, i, count)
		if rapid.Bool().Draw(t, fmt.Sprintf("chunk %d", i)) {
			w.put(id, rev, count, i)
		}
		if rapid.IntRange(0, 4).Draw(t, fmt.Sprintf("log of %d", i)) > 0 {
			w.log = append(w.log, rag.Vector{Chunk: c, Values: vectorOf(c.Text)})
		}
	}
	if rapid.Bool().Draw(t, "works") {
		if r := revisions().Draw(t, "in work"); rev.Less(r) {
			row.Work[r] = ledger.Work{}
		}
	}
	if rapid.Bool().Draw(t, "removes") {
		row.Due[rag.Removal{Exact: rapid.Bool().Draw(t, "exact"), Revision: revisions().Draw(t, "due")}] = time.Time{}
	}
	return row
}

// rightful reports whether an object must stay, by the rows as they are in the end.
func (w *world) rightful(o sinks.Object) bool {
	c, row := o.Chunk, w.rows[o.Chunk.DocumentID]
	if row == nil {
		return false
	}
	_, working := row.Work[c.Revision]
	served := row.Served.Revision == c.Revision && c.Index < row.Served.Count && o.ID == object(c).ID
	return working || served || row.Served.Revision.Less(c.Revision)
}
