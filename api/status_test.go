package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

func TestADocumentTellsItsLatestVersionAndWhatIsServed(t *testing.T) {
	world := apitest.NewWorld()
	at := time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC)
	failure := &rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonNoText, Message: "a scan"}
	world.Documents.Put("a/b", &ledger.DocumentRow{
		Served: ledger.Served{Revision: rag.Revision{Version: 5}, Count: 7},
		Finals: map[string]ledger.Final{
			"m1": {Revision: rag.Revision{Version: 5}, Status: rag.StatusIndexed, Count: 7, At: at.Add(-time.Hour)},
			"m2": {Revision: rag.Revision{Version: 9}, Status: rag.StatusDead, Failure: failure, Warnings: []string{"page 2 is empty"}, At: at},
		},
	})
	s := start(t, api.Config{}, world)
	var d api.DocumentStatus
	s.get("/v1/documents/a/b").wants(http.StatusOK).decode(&d)
	if d.DocumentID != "a/b" || d.Status != rag.StatusDead || d.Version != 9 || d.MessageID != "m2" || !d.UpdatedAt.Equal(at) {
		t.Errorf("document %+v", d)
	}
	if d.Error == nil || *d.Error != (api.Failure{Stage: "chunker", Class: "message", Reason: "no_text", Message: "a scan"}) {
		t.Errorf("error %+v", d.Error)
	}
	if d.Served == nil || *d.Served != (api.ServedVersion{Version: 5, Chunks: 7}) || !slices.Equal(d.Warnings, []string{"page 2 is empty"}) {
		t.Errorf("served %+v, warnings %q", d.Served, d.Warnings)
	}
}

func TestADocumentThatIsNotVisible(t *testing.T) {
	world := apitest.NewWorld()
	world.Documents.Put("empty", &ledger.DocumentRow{})
	s := start(t, api.Config{}, world)
	for _, id := range []string{"none", "empty"} {
		a := s.get("/v1/documents/" + id)
		blames(t, a.problem(404, "not-visible-yet"), "path", "id")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
}

func TestReadersThatFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status int
		kind   string
		reason string
		after  string
	}{
		{"recovering", fmt.Errorf("view: %w", &api.Unavailable{Reason: "views_recovering", RetryAfter: 1500 * time.Millisecond}), 503, "unavailable", "views_recovering", "2"},
		{"its own type of error", recovering{}, 503, "unavailable", "recovering", "1"},
		{"a fault", errors.New("secret: row is broken"), 500, "internal-error", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := apitest.NewWorld()
			world.AddIndexed("a", 1, time.Unix(1, 0), "x")
			world.Documents.Err, world.Messages.Err, world.Letters.Err = c.err, c.err, c.err
			s := start(t, api.Config{}, world)
			for _, path := range []string{"/v1/documents", "/v1/documents/a", "/v1/messages/m", "/v1/dead-letters", "/v1/dead-letters/x", "/v1/dead-letters/x/payload", "/v1/search?q=x"} {
				a := s.get(path)
				p := a.problem(c.status, c.kind)
				if p.Reason != c.reason || a.header.Get("Retry-After") != c.after {
					t.Errorf("%s: reason %q, Retry-After %q", path, p.Reason, a.header.Get("Retry-After"))
				}
			}
			s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"m"}]}`).problem(c.status, c.kind)
			s.postJSON("/v1/dead-letters/replay", `{"all":true}`).problem(c.status, c.kind)
		})
	}
}

// recovering is what a package below may return without importing this API.
type recovering struct{}

func (recovering) Error() string                                          { return "recovering" }
func (recovering) Unavailable() (reason string, retryAfter time.Duration) { return "recovering", 0 }

// Walking through the pages gives every document once, the one changed last first.
func TestPagesGiveEveryDocumentOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		world := apitest.NewWorld()
		n := rapid.IntRange(0, 30).Draw(t, "documents")
		for i := range n {
			// Few distinct times, so that many share one.
			at := time.Unix(int64(rapid.IntRange(0, 3).Draw(t, "second")), int64(rapid.IntRange(0, 1).Draw(t, "nanosecond")))
			world.AddIndexed(fmt.Sprintf("%d/ü%%", i), apitest.Version(int64(i)), at, "x")
		}
		world.AddDead("dead", 99, time.Unix(2, 0), rag.Failure{Reason: "no_text"}, nil)
		server, err := api.New(api.Config{}, world.Dependencies())
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.IntRange(1, 12).Draw(t, "limit")
		seen := map[string]bool{}
		var last time.Time
		for cursor, more := "", true; more; {
			a := serve(server, newRequest(http.MethodGet, fmt.Sprintf("/v1/documents?status=indexed&limit=%d&cursor=%s", limit, url.QueryEscape(cursor)), nil))
			var page api.DocumentPage
			if err := decodeJSON(a, &page); err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Documents {
				if seen[d.DocumentID] || d.Status != rag.StatusIndexed || !last.IsZero() && d.UpdatedAt.After(last) {
					t.Fatalf("out of order or doubled: %+v", d)
				}
				seen[d.DocumentID], last = true, d.UpdatedAt
			}
			cursor, more = page.NextCursor, page.NextCursor != ""
		}
		if len(seen) != n {
			t.Fatalf("%d documents of %d", len(seen), n)
		}
	})
}

func TestMessageTellsItsTimeline(t *testing.T) {
	world := apitest.NewWorld()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	row := apitest.Timeline("a", "m/1", rag.Revision{Version: 3}, at, rag.StatusAccepted, rag.StatusChunked)
	world.Messages.Put(ledger.ApplyEvent(row, rag.Event{
		Subject: rag.Subject{DocumentID: "a", MessageID: "m/1", Revision: rag.Revision{Version: 3}, Attempt: 1},
		Stage:   "indexer", Status: rag.StatusIndexed, At: at.Add(time.Minute), Chunks: 4,
	}))
	s := start(t, api.Config{}, world)
	for _, path := range []string{"/v1/messages/m/1", "/v1/messages/m%2F1", "/v1/messages/m%2F1?document_id=a"} {
		var m api.MessageStatus
		s.get(path).wants(http.StatusOK).decode(&m)
		if m.MessageID != "m/1" || m.DocumentID != "a" || m.Version != 3 || m.Status != rag.StatusIndexed || !m.Final || m.Chunks != 4 || m.Attempts != 2 {
			t.Errorf("message %+v", m)
		}
		if len(m.Events) != 3 || m.Events[0] != (api.MessageEvent{Stage: "chunker", Outcome: rag.StatusAccepted, At: at, Attempt: 1}) || m.Events[2].Attempt != 2 {
			t.Errorf("events %+v", m.Events)
		}
	}
}

func TestMessageIsWaitedFor(t *testing.T) {
	world := apitest.NewWorld()
	s := start(t, api.Config{MessageWait: patience}, world)
	got := make(chan answer, 1)
	go func() { got <- s.get("/v1/messages/m") }()
	eventually(t, "the server looks for the message", func() bool { return world.Messages.Looks() > 1 })
	world.Messages.Put(apitest.Timeline("a", "m", rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted))
	receive(t, "the answer", got).wants(http.StatusOK)
}

func TestMessageThatDoesNotAppear(t *testing.T) {
	s := start(t, api.Config{MessageWait: time.Millisecond}, apitest.NewWorld())
	a := s.get("/v1/messages/m")
	blames(t, a.problem(404, "not-visible-yet"), "path", "message_id")
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	blames(t, s.get("/v1/messages/"+fmt.Sprintf("%0300d", 1)).problem(422, "invalid-parameter"), "path", "message_id")
}

func TestMessageOfSeveralDocuments(t *testing.T) {
	world := apitest.NewWorld()
	for _, id := range []string{"b", "a"} {
		world.Messages.Put(apitest.Timeline(id, "m", rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted))
	}
	s := start(t, api.Config{}, world)
	p := s.get("/v1/messages/m").problem(409, "ambiguous-message-id")
	if !slices.Equal(p.Documents, []string{"a", "b"}) {
		t.Errorf("documents %q", p.Documents)
	}
	var m api.MessageStatus
	s.get("/v1/messages/m?document_id=b").wants(http.StatusOK).decode(&m)
	if m.DocumentID != "b" {
		t.Errorf("message %+v", m)
	}
	s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"m"}]}`).problem(409, "ambiguous-message-id")
}

func TestTooManyWaitersAre429(t *testing.T) {
	world := apitest.NewWorld()
	s := start(t, api.Config{MaxWaiting: 1, AdmissionWait: time.Millisecond, MessageWait: patience}, world)
	got := make(chan answer, 1)
	go func() { got <- s.get("/v1/messages/m") }()
	eventually(t, "one request waits", func() bool { return world.Messages.Looks() > 1 })
	limits(t, s.postJSON("/v1/messages:wait", `{"messages":[{"message_id":"x"}]}`).problem(429, "overloaded"), "waiting", 1)
	world.Messages.Put(apitest.Timeline("a", "m", rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted))
	receive(t, "the answer", got).wants(http.StatusOK)
}
