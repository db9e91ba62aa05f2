package sinktest

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// tolerance of scores: stores compute in float32, and some compress.
const tolerance = 1e-3

// cosine of two vectors.
func cosine(a, b []float32) float64 {
	var dot, aa, bb float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(aa*bb)
}

// at is a vector with the given cosine to q, which has length 1.
func (m *maker) at(q []float32, cos float64) []float32 {
	u := m.vector()
	along := cosine(u, q)
	for i := range u {
		u[i] -= float32(along) * q[i]
	}
	normalize(u)
	out := make([]float32, len(q))
	for i := range out {
		out[i] = float32(cos)*q[i] + float32(math.Sqrt(1-cos*cos))*u[i]
	}
	return out
}

func testSearchByVector(t *testing.T, h Harness) {
	m := newMaker(h)
	objects := slices.Concat(m.objects("d", v(1), 60), m.objects("e", v(4), 60))
	for i := range objects { // lengths do not matter
		for j := range objects[i].Vector {
			objects[i].Vector[j] *= float32(1 + i%7)
		}
	}
	upsert(t, h.Store, objects, nil)
	for range 5 {
		q := m.vector()
		want := slices.Clone(objects)
		slices.SortFunc(want, func(a, b sinks.Object) int { return cmp.Compare(cosine(q, b.Vector), cosine(q, a.Vector)) })
		for _, k := range []int{1, 10, 120, sinks.MaxK} {
			hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeVector, Vector: q, Text: "chunk", K: k})
			wantIDs(t, "nearest", hits, want[:min(k, len(want))]...)
			for i, hit := range hits {
				if c := cosine(q, want[i].Vector); math.Abs(hit.Score-c) > tolerance {
					t.Errorf("hit %d has the score %v, want its cosine %v", i, hit.Score, c)
				}
			}
		}
	}
}

func testSearchByText(t *testing.T, h Harness) {
	m := newMaker(h)
	texts := []string{
		"The wombat digs its burrow in the evening.",
		"A wombat and another wombat: the wombat family.",
		"What the fox says to the hen is of no matter to the rest of us.",
		"See example.com/path, don't panic, snake_case and C3PO; it costs 1,000.50.",
		"",
		"NEAR OR AND NOT \"quoted* (brackets) col:umn ^ - +",
	}
	objects := m.objects("d", v(1), len(texts)+30)
	for i, s := range texts {
		objects[i] = withText(objects[i], s)
	}
	objects[10].Chunk.Title = "Echidnas"
	objects[11].Chunk.Heading = "Life > Platypus"
	upsert(t, h.Store, objects, nil)
	for _, c := range []struct {
		text string
		want []int
	}{
		{"wombat", []int{1, 0}},
		{"WOMBAT?", []int{1, 0}},
		{"What is the wombat to us", []int{1, 0}}, // stop words find nothing
		{"burrow", []int{0}},
		{"nothingness", nil},
		{"", nil},
		{"…!?", nil},
		{"example.com", []int{3}},
		{"example", []int{3}},
		{"don’t panic", []int{3}},
		{"snake", []int{3}},
		{"1,000.50", []int{3}},
		{"quoted", []int{5}},
		{`"quoted* AND (`, []int{5}},
		{`near" OR "x`, []int{5}},
		{"echidnas", []int{10}},
		{"platypus", []int{11}},
		{strings.Repeat("unheard ", 3) + "fox", []int{2}},
	} {
		var want []sinks.Object
		for _, i := range c.want {
			want = append(want, objects[i])
		}
		hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: c.text, K: 20})
		wantIDs(t, "text "+c.text, hits, want...)
		for _, hit := range hits {
			if hit.Score <= 0 {
				t.Errorf("text %q: the score of a match is %v", c.text, hit.Score)
			}
		}
	}
	// A question of stop words only is better answered than not.
	if hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "what is the", K: 20}); len(hits) == 0 {
		t.Error("a question of stop words alone finds nothing")
	}
}

// testSearchScripts asks for words as people type them, and wants the text back as it was written.
func testSearchScripts(t *testing.T, h Harness) {
	m := newMaker(h)
	cases := []struct{ text, query string }{
		{"国家图书馆位于北京市海淀区", "图书馆"},
		{"国会議事堂は東京都千代田区にある", "東京"},
		{"吾輩は猫である。名前はまだ無い", "猫"},
		{"データベースの設計", "データ"},
		{"ｶﾞｲﾄﾞﾌﾞｯｸ", "ガイド"},
		{"โรงเรียนของเราอยู่ใกล้แม่น้ำ", "แม่น้ำ"},
		{"한국어를 배웁니다", "한국어"},
		{"The ﬁnancial oﬃce", "financial"},
		{"a co\u00adope\u00adra\u00adtive farm", "cooperative"},
		{"Crème brûlée au cafe\u0301", "café"},
		{"Straße und Fuß", "STRASSE"},
		{"Ёлка стоит во дворе", "елка"},
		{"ΟΔΥΣΣΕΥΣ", "οδυσσευς"},
		{"ʻOkina and naïveté", "naivete"},
		{"Ⅷ chapters", "viii"},
		{"مرحبا بالعالم", "بالعالم"},
		{"שלום עולם", "שלום"},
		{"हिन्दी में पाठ", "हिन्दी"},
	}
	objects := m.objects("d", v(1), len(cases))
	for i, c := range cases {
		objects[i] = withText(objects[i], c.text)
	}
	upsert(t, h.Store, objects, nil)
	for i, c := range cases {
		hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: c.query, K: 5})
		if len(hits) == 0 || hits[0].Chunk.Text != objects[i].Chunk.Text {
			t.Errorf("%q does not find %q first, but %d hits", c.query, c.text, len(hits))
		}
	}
	wantHolds(t, h.Store, objects...)
}

// The score is the cosine plus a share of the text score, and a chunk that only its text brought up has its true cosine.
func testSearchHybrid(t *testing.T, h Harness) {
	m := newMaker(h)
	q := m.vector()
	filler := m.objects("filler", v(1), 80)
	for i := range filler {
		filler[i].Vector = m.at(q, 0.3-0.002*float64(i))
	}
	objects := m.objects("d", v(1), 5)
	for i, o := range []struct {
		cos  float64
		text string
	}{{0.9, "alpha"}, {0.85, "beta"}, {0.84, "gamma needle"}, {0.8, "delta"}, {-0.5, "unlike needle"}} {
		objects[i] = withText(objects[i], o.text)
		objects[i].Vector = m.at(q, o.cos)
	}
	upsert(t, h.Store, slices.Concat(filler, objects), nil)
	ask := func(text string, k int) []sinks.Hit {
		return search(t, h.Store, sinks.Query{Mode: sinks.ModeHybrid, Vector: q, Text: text, K: k})
	}
	hits := ask("where is the needle", 2)
	wantIDs(t, "hybrid, 2", hits, objects[2], objects[0])
	wantScores(t, hits, 0.84+sinks.TextWeight, 0.9)
	hits = ask("needle", 4)
	wantIDs(t, "hybrid, 4", hits, objects[2], objects[0], objects[1], objects[3])
	wantScores(t, hits, 0.84+sinks.TextWeight, 0.9, 0.85, 0.8)
	wantIDs(t, "hybrid without a match", ask("unheard", 3), objects[0], objects[1], objects[2])
	wantIDs(t, "hybrid without text", ask("", 3), objects[0], objects[1], objects[2])
	hits = ask("needle", sinks.MaxK)
	if len(hits) != len(filler)+len(objects) || hits[len(hits)-1].ID != objects[4].ID {
		t.Fatalf("hybrid over everything gives %d hits, want %d with the opposite last", len(hits), len(filler)+len(objects))
	}
	wantScores(t, hits[len(hits)-1:], -0.5+sinks.TextWeight)
}

func wantScores(t *testing.T, hits []sinks.Hit, want ...float64) {
	t.Helper()
	for i := range min(len(hits), len(want)) {
		if math.Abs(hits[i].Score-want[i]) > tolerance {
			t.Errorf("the score of hit %d is %v, want %v", i, hits[i].Score, want[i])
		}
	}
}

// Chunks that are not served cost no place, however many there are and however near they stand.
func testSearchServed(t *testing.T, h Harness) {
	m := newMaker(h)
	q := m.vector()
	var stale []sinks.Object
	for version := range int64(6) {
		stale = append(stale, m.objects("d", v(version+1), 60)...)
	}
	stale = append(stale, m.objects("unfinished", v(1), 60)...)
	for i := range stale {
		stale[i] = withText(stale[i], "needle needle "+stale[i].Chunk.Text)
		stale[i].Vector = m.near(q, 0.1)
	}
	served := m.objects("d", rag.Revision{Version: 6, Generation: 1}, 12)
	for i := range served {
		served[i] = withText(served[i], served[i].Chunk.Text+strings.Repeat(" and", i)+" needle")
		served[i].Vector = m.at(q, 0.9-(sinks.TextWeight+0.01)*float64(i)) // the order by vector is that of hybrid search
	}
	upsert(t, h.Store, slices.Concat(stale, served), nil)
	isServed := func(document string, rev rag.Revision) bool {
		return document == "d" && rev == rag.Revision{Version: 6, Generation: 1}
	}
	for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
		for _, k := range []int{1, 5, 12, 100} {
			query := sinks.Query{Mode: mode, Vector: q, Text: "needle", K: k, Served: isServed}
			for _, query.DocumentID = range []string{"", "d"} {
				hits := search(t, h.Store, query)
				if mode != sinks.ModeText {
					wantIDs(t, string(mode)+" served", hits, served[:min(k, len(served))]...)
					continue
				}
				// A term that every chunk holds tells stores little: which of the served come first is theirs to say.
				if len(hits) != min(k, len(served)) {
					t.Errorf("text served: %d hits, want %d", len(hits), min(k, len(served)))
				}
				for _, hit := range hits {
					if !isServed(hit.Chunk.DocumentID, hit.Chunk.Revision) {
						t.Errorf("text served: %s of %s is not", hit.Chunk.Revision, hit.Chunk.DocumentID)
					}
				}
			}
		}
		none := sinks.Query{Mode: mode, Vector: q, Text: "needle", K: 5, Served: func(string, rag.Revision) bool { return false }}
		wantIDs(t, string(mode)+" with nothing served", search(t, h.Store, none))
	}
}

func testSearchMetadata(t *testing.T, h Harness) {
	m := newMaker(h)
	pairs := []rag.Metadata{
		{"lang=en", "year=2026"}, {"lang=en", "year=2025"}, {"lang=de", "year=2026"}, {"lang=EN"}, {"lang=en-US"},
		nil, {"lang=", "x=lang=en"}, {"sprache=日本語"}, {"lang=e n"},
	}
	objects := m.objects("d", v(1), len(pairs))
	q := m.vector()
	for i := range objects {
		objects[i] = withText(objects[i], "needle"+strings.Repeat(" more", i))
		objects[i].Vector = m.at(q, 0.9-0.05*float64(i))
		objects[i].Chunk.Metadata = pairs[i]
	}
	other := m.object("e", v(1), 0)
	other.Chunk.Metadata = pairs[0]
	other.Vector = m.at(q, -0.9)
	upsert(t, h.Store, append(objects, other), nil)
	for _, c := range []struct {
		filter []string
		want   []int
	}{
		{[]string{"lang=en"}, []int{0, 1}},
		{[]string{"lang=en", "year=2026"}, []int{0}},
		{[]string{"year=2026"}, []int{0, 2}},
		{[]string{"lang=en", "lang=de"}, nil},
		{[]string{"lang=EN"}, []int{3}},
		{[]string{"lang="}, []int{6}},
		{[]string{"x=lang=en"}, []int{6}},
		{[]string{"sprache=日本語"}, []int{7}},
		{[]string{"lang=e n"}, []int{8}},
		{[]string{"lang=e"}, nil},
		{[]string{"lang=en' OR 1=1"}, nil},
	} {
		var want []sinks.Object
		for _, i := range c.want {
			want = append(want, objects[i])
		}
		for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
			query := sinks.Query{Mode: mode, Vector: q, Text: "needle", K: 20, Metadata: c.filter, DocumentID: "d"}
			wantIDs(t, string(mode)+" "+strings.Join(c.filter, ","), search(t, h.Store, query), want...)
		}
	}
	query := sinks.Query{Mode: sinks.ModeVector, Vector: q, K: 20, Metadata: []string{"lang=en"}}
	wantIDs(t, "in every document", search(t, h.Store, query), objects[0], objects[1], other)
}

// With a large K, a search in one document gives all of its chunks, best first.
func testSearchDocument(t *testing.T, h Harness) {
	m := newMaker(h)
	q := m.vector()
	objects := m.objects("d", v(1), 150)
	for i := range objects {
		objects[i].Vector = m.at(q, 0.9-0.01*float64(i))
	}
	crowd := m.objects("crowd", v(1), 400)
	for i := range crowd {
		crowd[i].Vector = m.near(q, 0.05)
	}
	upsert(t, h.Store, slices.Concat(crowd, objects), nil)
	for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeHybrid} {
		for _, k := range []int{3, 150, sinks.MaxK} {
			query := sinks.Query{Mode: mode, Vector: q, Text: "unheard", K: k, DocumentID: "d"}
			wantIDs(t, string(mode), search(t, h.Store, query), objects[:min(k, len(objects))]...)
		}
	}
	hits := search(t, h.Store, sinks.Query{Mode: sinks.ModeText, Text: "chunk", K: sinks.MaxK, DocumentID: "d"})
	if len(hits) != len(objects) {
		t.Errorf("text search in a document of %d matching chunks gives %d", len(objects), len(hits))
	}
}

func testSearchRefuses(t *testing.T, h Harness) {
	m := newMaker(h)
	upsert(t, h.Store, m.objects("d", v(1), 3), nil)
	nan := m.vector()
	nan[0] = float32(math.NaN())
	for _, c := range []struct {
		field string
		query sinks.Query
	}{
		{"k", sinks.Query{Mode: sinks.ModeVector, Vector: m.vector()}},
		{"k", sinks.Query{Mode: sinks.ModeVector, Vector: m.vector(), K: -1}},
		{"k", sinks.Query{Mode: sinks.ModeText, Text: "chunk", K: sinks.MaxK + 1}},
		{"mode", sinks.Query{Mode: "fuzzy", Vector: m.vector(), K: 1}},
		{"mode", sinks.Query{Vector: m.vector(), K: 1}},
		{"vector", sinks.Query{Mode: sinks.ModeVector, K: 1}},
		{"vector", sinks.Query{Mode: sinks.ModeHybrid, Text: "chunk", Vector: m.vector()[1:], K: 1}},
		{"vector", sinks.Query{Mode: sinks.ModeVector, Vector: make([]float32, h.Dimensions), K: 1}},
		{"vector", sinks.Query{Mode: sinks.ModeVector, Vector: nan, K: 1}},
		{"metadata", sinks.Query{Mode: sinks.ModeText, Text: "chunk", K: 1, Metadata: []string{"lang"}}},
		{"metadata", sinks.Query{Mode: sinks.ModeText, Text: "chunk", K: 1, Metadata: slices.Repeat([]string{"a=b"}, rag.MaxMetadata+1)}},
	} {
		hits, err := h.Store.Search(context.Background(), c.query)
		var queryError *sinks.QueryError
		if !errors.As(err, &queryError) || queryError.Field != c.field || len(hits) > 0 {
			t.Errorf("%s %q, k %d: %d hits, error %v, want a QueryError of %s", c.query.Mode, c.query.Text, c.query.K, len(hits), err, c.field)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Store.Search(ctx, sinks.Query{Mode: sinks.ModeText, Text: "chunk", K: 1}); err == nil {
		t.Error("a search with its context done gives no error")
	}
}

func testSearchEmpty(t *testing.T, h Harness) {
	for _, mode := range []sinks.Mode{sinks.ModeVector, sinks.ModeText, sinks.ModeHybrid} {
		wantIDs(t, string(mode), search(t, h.Store, sinks.Query{Mode: mode, Vector: newMaker(h).vector(), Text: "x", K: 5}))
	}
	wantHolds(t, h.Store)
}
