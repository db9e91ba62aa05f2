package sinktest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// maker makes objects; the same seed makes the same ones.
type maker struct {
	random     *rand.Rand
	dimensions int
}

func newMaker(h Harness) *maker {
	return &maker{random: rand.New(rand.NewPCG(7, 11)), dimensions: h.Dimensions}
}

// vector is a random one of length 1.
func (m *maker) vector() []float32 {
	v := make([]float32, m.dimensions)
	for i := range v {
		v[i] = float32(m.random.NormFloat64())
	}
	return normalize(v)
}

// near is a vector close to v; the smaller the distance the closer.
func (m *maker) near(v []float32, distance float64) []float32 {
	out := make([]float32, len(v))
	for i, x := range m.vector() {
		out[i] = v[i] + float32(distance)*x
	}
	return normalize(out)
}

func normalize(v []float32) []float32 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / math.Sqrt(sum))
	}
	return v
}

// object is a chunk of a document with a vector and words of its own.
func (m *maker) object(document string, rev rag.Revision, index int) sinks.Object {
	text := fmt.Sprintf("chunk %d of %s at %s", index, document, rev)
	return sinks.Object{
		ID:     rag.ChunkID("test", document, rev, index).String(),
		Vector: m.vector(),
		Chunk: rag.Chunk{
			Subject: rag.Subject{DocumentID: document, Revision: rev},
			Index:   index, Count: index + 1, Text: text, Start: index * 100, End: index*100 + len(text),
		},
	}
}

// objects are n chunks of a document.
func (m *maker) objects(document string, rev rag.Revision, n int) []sinks.Object {
	out := make([]sinks.Object, n)
	for i := range out {
		out[i] = m.object(document, rev, i)
		out[i].Chunk.Count = n
	}
	return out
}

// withText sets the text of an object.
func withText(o sinks.Object, text string) sinks.Object {
	o.Chunk.Text = text
	o.Chunk.End = o.Chunk.Start + len(text)
	return o
}

func v(version int64) rag.Revision { return rag.Revision{Version: rag.Version(version)} }

// upsert writes objects and fails the test unless all are done.
func upsert(t testing.TB, s sinks.Sink, objects []sinks.Object, repair map[int]bool) {
	t.Helper()
	results := s.Upsert(context.Background(), objects, repair)
	if len(results) != len(objects) {
		t.Fatalf("%d results for %d objects", len(results), len(objects))
	}
	for i, r := range results {
		if r.Outcome != sinks.Done || r.Err != nil {
			t.Fatalf("object %d (%s): %s: %v", i, objects[i].ID, r.Outcome, r.Err)
		}
	}
}

// remove removes chunks and fails the test unless that is done.
func remove(t testing.TB, s sinks.Sink, document string, r rag.Removal) {
	t.Helper()
	if res := s.Remove(context.Background(), document, r); res.Outcome != sinks.Done || res.Err != nil {
		t.Fatalf("remove %+v of %q: %s: %v", r, document, res.Outcome, res.Err)
	}
}

// search asks and fails the test on an error.
func search(t testing.TB, s sinks.Searcher, q sinks.Query) []sinks.Hit {
	t.Helper()
	hits, err := s.Search(context.Background(), q)
	if err != nil {
		t.Fatalf("search %s %q: %v", q.Mode, q.Text, err)
	}
	for i := 1; i < len(hits); i++ {
		if hits[i].Score > hits[i-1].Score {
			t.Fatalf("hit %d has a higher score than the one before: %v", i, hits)
		}
	}
	return hits
}

// wantIDs compares the ids of hits with those of objects, in order.
func wantIDs(t testing.TB, what string, hits []sinks.Hit, want ...sinks.Object) {
	t.Helper()
	got := make([]string, 0, len(hits))
	for _, h := range hits {
		got = append(got, h.Chunk.Text)
	}
	wanted := make([]string, 0, len(want))
	for _, o := range want {
		wanted = append(wanted, o.Chunk.Text)
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("%s:\n got %q\nwant %q", what, got, wanted)
	}
}

// scan reads the objects of a document or of all, and fails the test on an error.
func scan(t testing.TB, s sinks.Scanner, document string) []sinks.Object {
	t.Helper()
	var out []sinks.Object
	err := s.Scan(context.Background(), document, func(o sinks.Object) error {
		out = append(out, o)
		return nil
	})
	if err != nil {
		t.Fatalf("scan %q: %v", document, err)
	}
	return out
}

// wantHolds fails the test unless the store holds exactly these objects, each as it was written, counted once, and
// found by its vector.
func wantHolds(t testing.TB, s Store, want ...sinks.Object) {
	t.Helper()
	wanted := slices.Clone(want)
	slices.SortFunc(wanted, byPlace)
	got := scan(t, s, "")
	slices.SortFunc(got, byPlace)
	if len(got) != len(wanted) {
		t.Errorf("the store holds %d objects, want %d", len(got), len(wanted))
	}
	for i := range min(len(got), len(wanted)) {
		wantSame(t, got[i], wanted[i])
	}
	count, err := s.Count(context.Background())
	if err != nil || count != int64(len(wanted)) {
		t.Errorf("Count = %d, %v, want %d", count, err, len(wanted))
	}
	if missing, err := s.Missing(context.Background(), wanted); err != nil || len(missing) > 0 {
		t.Errorf("Missing = %v, %v, want none", missing, err)
	}
	for _, o := range wanted[:min(len(wanted), 20)] {
		hits := search(t, s, sinks.Query{Mode: sinks.ModeVector, Vector: o.Vector, K: 3})
		if !slices.ContainsFunc(hits, func(h sinks.Hit) bool { return h.ID == o.ID }) {
			t.Errorf("object %s is not found by its vector", o.ID)
		}
	}
}

// byPlace orders objects by document, revision and index.
func byPlace(a, b sinks.Object) int {
	x, y := &a.Chunk, &b.Chunk
	return cmp.Or(cmp.Compare(x.DocumentID, y.DocumentID), cmp.Compare(x.Revision.Version, y.Revision.Version),
		cmp.Compare(x.Revision.Generation, y.Revision.Generation), cmp.Compare(x.Index, y.Index), cmp.Compare(a.ID, b.ID))
}

// wantSame compares an object that was read with the one that was written; vectors are not read.
func wantSame(t testing.TB, got, want sinks.Object) {
	t.Helper()
	w := want.Chunk
	w.Subject = rag.Subject{DocumentID: w.DocumentID, Revision: w.Revision} // all that stores keep of it
	if got.ID != want.ID || !reflect.DeepEqual(got.Chunk, w) {
		t.Errorf("stored object differs:\n got %s %s\nwant %s %s", got.ID, short(got.Chunk), want.ID, short(w))
	}
}

func short(c rag.Chunk) string {
	s := fmt.Sprintf("%+q", fmt.Sprintf("%+v", c))
	return s[:min(len(s), 600)]
}
