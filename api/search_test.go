package api_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// allIndexed says of every message that it has ended.
type allIndexed struct{}

func (allIndexed) Get(_ context.Context, messageID, documentID string) ([]*ledger.TrackerRow, error) {
	return []*ledger.TrackerRow{{DocumentID: documentID, MessageID: messageID, Status: rag.StatusIndexed}}, nil
}

func TestSearchGivesTheChunks(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("a", apitest.Version(6), time.Unix(1, 0), "ice on the harbour", "the ferry waits")
	c := &world.Searcher.Hits[1].Chunk
	c.Heading, c.Page, c.Source, c.Metadata = "Winter", 3, "https://example.org", rag.Metadata{"formula=e=mc2", "lang=en"}
	c.Parent = rag.Parent{Start: 0, End: 33, Text: "ice on the harbour the ferry waits"}
	s := start(t, api.Config{}, world)
	var r api.SearchResult
	s.get("/v1/search?q=ice+%22ferry%22&filter=lang:en&filter=formula:e%3Dmc2&document_id=a").wants(http.StatusOK).decode(&r)
	if len(r.Hits) != 2 {
		t.Fatalf("hits %+v", r.Hits)
	}
	h := r.Hits[1]
	if h.DocumentID != "a" || h.ChunkID != world.Searcher.Hits[1].ID || h.ChunkIndex != 1 || h.Version != 7 || h.Text != "the ferry waits" ||
		h.Title != "About a" || h.Source != "https://example.org" || h.Start != 18 || h.End != 33 || h.Heading != "Winter" || h.Page != 3 ||
		h.Score <= 0 || h.Metadata["formula"] != "e=mc2" || h.Metadata["lang"] != "en" {
		t.Errorf("hit %+v", h)
	}
	if p := h.Parent; r.Hits[0].Parent != nil || p == nil || *p != (api.Parent{Text: "ice on the harbour the ferry waits", End: 33}) {
		t.Errorf("the parents are %+v and %+v", r.Hits[0].Parent, p)
	}
	q := world.Searcher.Last()
	if q.Text != `ice "ferry"` || q.K != 10 || q.Mode != sinks.ModeHybrid || q.DocumentID != "a" || len(q.Vector) == 0 ||
		!slices.Equal(q.Metadata, []string{"lang=en", "formula=e=mc2"}) {
		t.Errorf("query %+v", q)
	}
	s.get("/v1/search?q=ice&mode=text&k=1000").wants(http.StatusOK)
	if q := world.Searcher.Last(); q.Vector != nil || q.K != 1000 || q.Mode != sinks.ModeText {
		t.Errorf("a text search asks %+v", q)
	}
}

// An answer grows with what is asked for, not with the size of parents.
func TestSearchBoundsTheTextOfParents(t *testing.T) {
	world := apitest.NewWorld()
	texts := make([]string, 12)
	for i := range texts {
		texts[i] = "ice on the harbour"
	}
	world.AddIndexed("a", apitest.Version(1), time.Unix(1, 0), texts...)
	const parentBytes = 1 << 20
	for i := range world.Searcher.Hits {
		world.Searcher.Hits[i].Chunk.Parent = rag.Parent{End: parentBytes, Text: strings.Repeat("x", parentBytes)}
	}
	s := start(t, api.Config{}, world)
	for query, want := range map[string]int{"": api.MaxParentBytes / parentBytes, "&parents=text": api.MaxParentBytes / parentBytes, "&parents=borders": 0} {
		var r api.SearchResult
		s.get("/v1/search?q=ice&k=12" + query).wants(http.StatusOK).decode(&r)
		if len(r.Hits) != len(texts) {
			t.Fatalf("%d hits", len(r.Hits))
		}
		for i, h := range r.Hits {
			if h.Parent == nil || h.Parent.End != parentBytes || (h.Parent.Text != "") != (i < want) {
				t.Errorf("%q: hit %d has a parent with %d bytes: %v", query, i, len(h.Parent.Text), h.Parent != nil)
			}
		}
	}
	s.get("/v1/search?q=ice&parents=all").wants(http.StatusUnprocessableEntity)
}

func TestSearchShowsTheServedVersionOnly(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("a", apitest.Version(1), time.Unix(1, 0), "old")
	world.AddIndexed("a", apitest.Version(2), time.Unix(2, 0), "new")
	world.AddIndexed("gone", apitest.Version(1), time.Unix(1, 0), "deleted")
	world.Documents.Put("gone", &ledger.DocumentRow{Served: ledger.Served{Revision: rag.Revision{Version: 9}}})
	world.AddIndexed("orphan", apitest.Version(1), time.Unix(1, 0), "orphan")
	world.Documents.Put("orphan", nil)
	s := start(t, api.Config{}, world)
	var r api.SearchResult
	s.get("/v1/search?q=x").wants(http.StatusOK).decode(&r)
	if len(r.Hits) != 1 || r.Hits[0].Text != "new" {
		t.Errorf("hits %+v", r.Hits)
	}
}

// A version that becomes served while the store looks was found in part only, or not at all: the answer is what was served
// before.
func TestASearchNeverMixesTwoVersions(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("a", apitest.Version(1), time.Unix(1, 0), "old 0", "old 1")
	found := slices.Clone(world.Searcher.Hits)
	deps := world.Dependencies()
	deps.Searcher = overtaken{world.Searcher, func() {
		world.AddIndexed("a", apitest.Version(2), time.Unix(2, 0), "new 0", "new 1")
		world.Searcher.Hits = append(found, world.Searcher.Hits[len(world.Searcher.Hits)-1])
	}}
	s := startWith(t, api.Config{}, world, deps)
	var r api.SearchResult
	s.get("/v1/search?q=x").wants(http.StatusOK).decode(&r)
	if len(r.Hits) != 2 || r.Hits[0].Text != "old 0" || r.Hits[1].Text != "old 1" {
		t.Errorf("hits %+v", r.Hits)
	}
}

// overtaken lets something happen once a search has begun.
type overtaken struct {
	sinks.Searcher
	meanwhile func()
}

func (o overtaken) Search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	o.meanwhile()
	return o.Searcher.Search(ctx, q)
}

func TestSearchIsRefusedWhenItCannotBeTrue(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken func(*apitest.World)
		kind   string
		reason string
	}{
		{"stale view", func(w *apitest.World) { w.Freshness.Behind = 11 * time.Second }, "stale-view", ""},
		{"unknown lag", func(w *apitest.World) { w.Freshness.Err = &api.Unavailable{Reason: "views_recovering"} }, "unavailable", "views_recovering"},
		{"store away", func(w *apitest.World) { w.Searcher.Err = errors.New("refused") }, "unavailable", "store_unavailable"},
		{"embedder away", func(w *apitest.World) { w.Embedder.Err = errors.New("refused") }, "unavailable", "embedder_unavailable"},
		{"wrong vector", func(w *apitest.World) { w.Searcher.Err = &sinks.QueryError{Field: "vector", Problem: "is short"} }, "unavailable", "embedder_unavailable"},
		{"view away in the middle", func(w *apitest.World) { w.Documents.Err = &api.Unavailable{Reason: "views_recovering"} }, "unavailable", "views_recovering"},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := apitest.NewWorld()
			world.AddIndexed("a", apitest.Version(1), time.Unix(1, 0), "x")
			c.broken(world)
			s := start(t, api.Config{}, world)
			a := s.get("/v1/search?q=x")
			p := a.problem(503, c.kind)
			if p.Reason != c.reason || a.header.Get("Retry-After") == "" {
				t.Errorf("reason %q, Retry-After %q", p.Reason, a.header.Get("Retry-After"))
			}
		})
	}
	world := apitest.NewWorld()
	world.Embedder.Err = errors.New("refused")
	s := start(t, api.Config{}, world)
	s.get("/v1/search?q=x&mode=text").wants(http.StatusOK) // needs no embedder
	world.Searcher.Err = &sinks.QueryError{Field: "metadata", Problem: "is odd"}
	blames(t, s.get("/v1/search?q=x&mode=text&filter=a:b").problem(422, "invalid-parameter"), "query", "filter")
}

func TestASearchThatTakesTooLongIs503(t *testing.T) {
	world := apitest.NewWorld()
	deps := world.Dependencies()
	deps.Searcher = hanging{}
	s := startWith(t, api.Config{ReadTimeout: 10 * time.Millisecond}, world, deps)
	if p := s.get("/v1/search?q=x").problem(503, "unavailable"); p.Reason != "timeout" {
		t.Errorf("reason %q", p.Reason)
	}
}

// A search that has taken longer than what it takes for served stays in the store may have found a part of it: whatever the
// store has answered, it is refused.
func TestASearchThatOutlivesWhatWasServedIsRefused(t *testing.T) {
	world := apitest.NewWorld()
	world.AddIndexed("a", apitest.Version(1), time.Unix(1, 0), "x")
	deps := world.Dependencies()
	deps.Searcher = late{deps.Searcher}
	s := startWith(t, api.Config{SearchTimeout: 10 * time.Millisecond}, world, deps)
	if p := s.get("/v1/search?q=x").problem(503, "unavailable"); p.Reason != "timeout" {
		t.Errorf("reason %q", p.Reason)
	}
}

// late answers when the search has been given up.
type late struct{ sinks.Searcher }

func (l late) Search(ctx context.Context, q sinks.Query) ([]sinks.Hit, error) {
	<-ctx.Done()
	return l.Searcher.Search(ctx, q)
}

// hanging waits until it is given up; entered, where it is set, is told.
type hanging struct{ entered chan struct{} }

func (h hanging) Search(ctx context.Context, _ sinks.Query) ([]sinks.Hit, error) {
	if h.entered != nil {
		close(h.entered)
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestTooManySearchesAre429(t *testing.T) {
	world := apitest.NewWorld()
	deps := world.Dependencies()
	entered := make(chan struct{})
	deps.Searcher = hanging{entered}
	s := startWith(t, api.Config{MaxSearches: 1, AdmissionWait: time.Millisecond, ReadTimeout: 300 * time.Millisecond}, world, deps)
	first := make(chan answer, 1)
	go func() { first <- s.get("/v1/search?q=x") }()
	receive(t, "the first search", entered)
	limits(t, s.get("/v1/search?q=x").problem(429, "overloaded"), "searches", 1)
	receive(t, "its answer", first).problem(503, "unavailable")
}
