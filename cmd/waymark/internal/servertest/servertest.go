// Package servertest serves the real HTTP API over fakes, with a pipeline that ends every document at once by simple
// rules. It is for tests of the API's clients.
package servertest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// Rules of the pipeline: what a document's text holds decides how it ends.
const (
	// NoText dies.
	NoText = "NO TEXT"
	// Held stays chunked until Release.
	Held = "HELD"
)

// Server is the API with its fakes. A document is indexed with a chunk per paragraph, unless the rules say otherwise; the
// same content again is unchanged.
type Server struct {
	*apitest.World
	URL string

	// Refuse, where it is set, decides about requests before the API sees them, by writing an answer and returning true.
	refuse func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	offset   int64
	contents map[string][]byte
	held     []ended
	order    []string
}

// ended is a document whose end is decided.
type ended struct {
	doc rag.Document
	rev rag.Revision
	at  time.Time
}

// Option of a server.
type Option func(*api.Config, *Server)

// WithTokens makes the API ask for tokens.
func WithTokens(tokens ...api.Token) Option {
	return func(c *api.Config, _ *Server) { c.Tokens = tokens }
}

// WithRefusals puts refuse before the API: it answers a request itself and returns true, or lets it through.
func WithRefusals(refuse func(http.ResponseWriter, *http.Request) bool) Option {
	return func(_ *api.Config, s *Server) { s.refuse = refuse }
}

// WithMaxBody sets the limit of a body.
func WithMaxBody(n int64) Option {
	return func(c *api.Config, _ *Server) { c.MaxBodyBytes = n }
}

// Start serves on a free port of loopback until the test ends.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	s := &Server{World: apitest.NewWorld(), contents: map[string][]byte{}}
	cfg := api.Config{MessageWait: 50 * time.Millisecond}
	for _, o := range options {
		o(&cfg, s)
	}
	deps := s.Dependencies()
	deps.Publisher = s
	handler, err := api.New(cfg, deps)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.refuse == nil || !s.refuse(w, r) {
			handler.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Publish is the log and the whole pipeline.
func (s *Server) Publish(_ context.Context, doc rag.Document, _ bool) (rag.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.order = append(s.order, doc.ID)
	position := rag.Position{Topic: "waymark.documents", Offset: s.offset}
	e := ended{doc: doc, rev: rag.Revision{Version: apitest.Version(s.offset)}, at: Epoch.Add(time.Duration(s.offset) * time.Minute)}
	s.offset++
	e.doc.Content = bytes.Clone(doc.Content)
	switch {
	case bytes.Contains(doc.Content, []byte(Held)):
		s.held = append(s.held, e)
		s.Messages.Put(apitest.Timeline(doc.ID, doc.MessageID, e.rev, e.at, rag.StatusAccepted, rag.StatusChunked))
	default:
		s.end(e)
	}
	return position, nil
}

// Epoch is when the first document is accepted; each later one is a minute later.
var Epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Release ends the documents that are held.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.held {
		s.end(e)
	}
	s.held = nil
}

// Submitted are the ids of all submissions, in order.
func (s *Server) Submitted() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.order...)
}

// Content is what was last indexed of a document; nil for none.
func (s *Server) Content(id string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contents[id]
}

func (s *Server) end(e ended) {
	doc := e.doc
	old, known := s.contents[doc.ID]
	switch {
	case doc.Delete:
		delete(s.contents, doc.ID)
		s.final(e, rag.StatusDeleted, 0, nil)
	case bytes.Contains(doc.Content, []byte(NoText)):
		f := rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonNoText, Message: "The document has no text."}
		s.final(e, rag.StatusDead, 0, &f)
		s.Letters.Put(ledger.ApplyLetter(nil, rag.Letter{
			ID: rag.Position{Topic: "waymark.documents", Offset: e.rev.Version.Offset()}.String(), Failure: f,
			Subject:  rag.Subject{DocumentID: doc.ID, MessageID: doc.MessageID, Revision: e.rev},
			Position: rag.Position{Topic: "waymark.documents", Offset: e.rev.Version.Offset()},
			Original: rag.Raw{Key: []byte(doc.ID), Value: doc.Content}, FirstFailed: e.at, LastFailed: e.at,
		}))
	case known && bytes.Equal(old, doc.Content):
		s.final(e, rag.StatusUnchanged, 0, nil)
	default:
		s.contents[doc.ID] = doc.Content
		s.final(e, rag.StatusIndexed, len(bytes.Split(bytes.TrimSpace(doc.Content), []byte("\n\n"))), nil)
	}
}

// final writes the rows that the groups would write.
func (s *Server) final(e ended, status rag.Status, chunks int, f *rag.Failure) {
	row := &ledger.DocumentRow{Finals: map[string]ledger.Final{
		e.doc.MessageID: {Revision: e.rev, Status: status, Count: chunks, Failure: f, At: e.at},
	}}
	steps := []rag.Status{rag.StatusAccepted, status}
	if status == rag.StatusIndexed {
		row.Fence = e.rev.Version
		row.Served = ledger.Served{Revision: e.rev, Count: chunks, At: e.at}
		steps = []rag.Status{rag.StatusAccepted, rag.StatusChunked, rag.StatusEmbedded, status}
		s.index(e)
	}
	s.Documents.Put(e.doc.ID, row)
	timeline := apitest.Timeline(e.doc.ID, e.doc.MessageID, e.rev, e.at, steps...)
	timeline.Chunks, timeline.Failure = chunks, f
	s.Messages.Put(timeline)
}

// index makes the paragraphs of a document findable.
func (s *Server) index(e ended) {
	texts := bytes.Split(bytes.TrimSpace(e.doc.Content), []byte("\n\n"))
	start := 0
	for i, text := range texts {
		s.Searcher.Hits = append(s.Searcher.Hits, sinks.Hit{
			ID: rag.ChunkID("", e.doc.ID, e.rev, i).String(), Score: 1 / float64(len(s.Searcher.Hits)+1),
			Chunk: rag.Chunk{
				Subject: rag.Subject{DocumentID: e.doc.ID, MessageID: e.doc.MessageID, Revision: e.rev}, Index: i, Count: len(texts),
				Text: string(text), Start: start, End: start + len(text), Title: fmt.Sprintf("About %s", e.doc.ID),
			},
		})
		start += len(text) + 2
	}
}
