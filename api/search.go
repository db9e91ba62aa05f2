package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

type searchInput struct {
	Q          string   `query:"q" required:"true" doc:"What to look for; at most 4,096 bytes."`
	K          int      `query:"k" default:"10" minimum:"1" maximum:"1000" doc:"How many hits at most."`
	Mode       string   `query:"mode" default:"hybrid" enum:"hybrid,vector,text"`
	DocumentID string   `query:"document_id" doc:"Only this document; with a large k all of its chunks."`
	Parents    string   `query:"parents" default:"text" enum:"text,borders" doc:"Whether the parent of each hit is there with its text, or with its borders only."`
	Filter     []string `query:"filter,explode" doc:"key:value, equal to a pair of the metadata. May be repeated; all must be there."`
}

type searchOutput struct{ Body SearchResult }

// search answers the best chunks of what is served.
func (s *Server) search(ctx context.Context, in *searchInput) (*searchOutput, error) {
	q, p := in.query()
	if p != nil {
		return nil, p
	}
	if p := s.searches.enter(ctx, 1); p != nil {
		return nil, p
	}
	defer s.searches.leave(1)
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, s.cfg.SearchTimeout)
	defer cancel()
	if p := s.fresh(ctx); p != nil {
		return nil, p
	}
	if q.Mode != sinks.ModeText {
		var err error
		if q.Vector, err = s.deps.Embedder.EmbedQuery(ctx, q.Text); err != nil {
			return nil, s.awayProblem("embedding the query", "embedder_unavailable", err)
		}
	}
	// What becomes served while the store looks may have been found in part only.
	served, err := s.deps.Documents.Snapshot(ctx)
	if err != nil {
		return nil, s.readProblem("reading what is served", err)
	}
	defer served.Close()
	q.Served = func(documentID string, rev rag.Revision) bool {
		now, ok := served.Served(documentID)
		return ok && now == rev
	}
	hits, err := s.deps.Searcher.Search(ctx, q)
	if fault := served.Err(); fault != nil {
		return nil, s.readProblem("reading what is served", fault)
	}
	if err != nil {
		return nil, s.searchProblem(err)
	}
	if time.Since(began) > s.cfg.SearchTimeout { // what was served when it began may be in the course of removal
		return nil, s.readProblem("searching", context.DeadlineExceeded)
	}
	result := SearchResult{Hits: make([]Hit, 0, len(hits))}
	for _, h := range hits {
		result.Hits = append(result.Hits, hit(h))
	}
	room := MaxParentBytes
	if in.Parents == "borders" {
		room = 0
	}
	boundParents(result.Hits, room)
	return &searchOutput{Body: result}, nil
}

// query judges the parameters.
func (in *searchInput) query() (sinks.Query, *Problem) {
	refuse := func(field, format string, args ...any) (sinks.Query, *Problem) {
		return sinks.Query{}, problem(kindInvalidParameter, format, args...).at("query", field)
	}
	if strings.TrimSpace(in.Q) == "" {
		return refuse("q", "it is empty")
	}
	if len(in.Q) > MaxQueryBytes {
		_, p := refuse("q", "it has %d bytes, above the limit of %d", len(in.Q), MaxQueryBytes)
		return sinks.Query{}, p.over("query_bytes", MaxQueryBytes)
	}
	if in.DocumentID != "" {
		if p := checkDocumentID("query", "document_id", in.DocumentID); p != nil {
			return sinks.Query{}, p
		}
	}
	if len(in.Filter) > MaxFilters {
		_, p := refuse("filter", "it is there %d times, above the limit of %d", len(in.Filter), MaxFilters)
		return sinks.Query{}, p.over("filters", MaxFilters)
	}
	q := sinks.Query{Mode: sinks.Mode(in.Mode), Text: in.Q, K: in.K, DocumentID: in.DocumentID}
	for _, f := range in.Filter {
		key, value, ok := strings.Cut(f, ":")
		if !ok || key == "" {
			return refuse("filter", "%q is not key:value", printable(f, 64))
		}
		q.Metadata = append(q.Metadata, key+"="+value)
	}
	return q, nil
}

// searchProblem says what an error of the store means: a query that it cannot use, or that it is away.
func (s *Server) searchProblem(err error) *Problem {
	var q *sinks.QueryError
	if !errors.As(err, &q) {
		return s.awayProblem("searching", "store_unavailable", err)
	}
	switch q.Field {
	case "metadata":
		return problem(kindInvalidParameter, "%s", q.Problem).at("query", "filter")
	case "k", "mode":
		return problem(kindInvalidParameter, "%s", q.Problem).at("query", q.Field)
	}
	return s.awayProblem("searching", "embedder_unavailable", err) // the vector is not the caller's
}

// awayProblem is 503 for a service outside of this process: its errors are outages, whatever they look like.
func (s *Server) awayProblem(what, reason string, err error) *Problem {
	var u unavailability
	if s.killed.Err() != nil || errors.As(err, &u) || errors.Is(err, context.DeadlineExceeded) {
		return s.readProblem(what, err)
	}
	s.log.Warn("a service is away", "what", what, "error", err)
	return problem(kindUnavailable, "%s: %v", what, err).because(reason).after(sinks.RetryAfter(err))
}

// fresh refuses a search while the view of what is served is too old: chunks that it still takes for served may be
// removed already.
func (s *Server) fresh(ctx context.Context) *Problem {
	lag, err := s.deps.Freshness.Lag(ctx)
	if err != nil {
		return s.readProblem("reading the lag of the view", err)
	}
	if lag <= s.cfg.ViewLag {
		return nil
	}
	return problem(kindStaleView, "the view lags behind by %s, above the limit of %s", lag.Round(time.Millisecond), s.cfg.ViewLag).
		over("view_lag_seconds", int64(s.cfg.ViewLag.Seconds())).after(s.cfg.ViewLag)
}

// boundParents leaves the text of their parents to the first hits, as far as there is room: each hit has the whole parent, which
// may be many times as long as the chunk.
func boundParents(hits []Hit, room int) {
	for i := range hits {
		p := hits[i].Parent
		if p == nil {
			continue
		}
		if room -= len(p.Text); room < 0 {
			room, p.Text = 0, ""
		}
	}
}

func hit(h sinks.Hit) Hit {
	c := h.Chunk
	out := Hit{
		DocumentID: c.DocumentID, ChunkID: h.ID, ChunkIndex: c.Index, Version: c.Revision.Version, Text: c.Text,
		Title: c.Title, Source: c.Source, Score: h.Score, Metadata: make(map[string]string, len(c.Metadata)),
		Start: c.Start, End: c.End, Heading: c.Heading, Page: c.Page,
	}
	if p := c.Parent; p != (rag.Parent{}) {
		out.Parent = &Parent{Text: p.Text, Start: p.Start, End: p.End}
	}
	for _, m := range c.Metadata {
		key, value, _ := strings.Cut(m, "=")
		out.Metadata[key] = value
	}
	return out
}

func (s *Server) searchCall(api huma.API) {
	register(api, call{
		id: "search", method: http.MethodGet, path: "/v1/search", tag: "Search", status: http.StatusOK,
		summary: "Search what is served", scope: ScopeRead, problems: []kind{kindUnavailable, kindStaleView, kindOverloaded},
		description: "The best chunks, of the served version of each document only.",
	}, s.search)
}
