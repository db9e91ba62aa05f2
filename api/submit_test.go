package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

func TestSubmitKeepsTheDocumentAndNamesIt(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, path := range []string{"/v1/documents", "/ingest"} {
		var a api.Accepted
		got := s.postJSON(path, `{"id":"news-17","text":"hello","title":"T","metadata":{"lang":"en","year":2026}}`).wants(http.StatusAccepted)
		got.decode(&a)
		if a.DocumentID != "news-17" || a.StatusURL != "/v1/messages/"+a.MessageID || got.header.Get("Location") != a.StatusURL {
			t.Errorf("answer %+v, Location %q", a, got.header.Get("Location"))
		}
		if id, err := uuid.Parse(a.MessageID); err != nil || id.Version() != 7 {
			t.Errorf("the message id %q is not a UUIDv7", a.MessageID)
		}
	}
	published := s.world.Publisher.Published()
	if len(published) != 2 || published[0].Raw {
		t.Fatalf("published %+v", published)
	}
	doc := published[0].Document
	if string(doc.Content) != "hello" || doc.Title != "T" || strings.Join(doc.Metadata, " ") != "lang=en year=2026" || doc.MessageID == "" {
		t.Errorf("published document %+v", doc)
	}
}

func TestSubmitMakesADocumentID(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	var a, b api.Accepted
	s.postJSON("/v1/documents", `{"text":"x"}`).wants(http.StatusAccepted).decode(&a)
	s.postJSON("/v1/documents", `{"text":"x"}`).wants(http.StatusAccepted).decode(&b)
	if _, err := uuid.Parse(a.DocumentID); err != nil || a.DocumentID == b.DocumentID {
		t.Errorf("document ids %q and %q", a.DocumentID, b.DocumentID)
	}
}

func TestIdempotencyKeyIsTheMessageID(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	var a api.Accepted
	s.postJSON("/v1/documents", `{"id":"a/b","text":"x"}`, "Idempotency-Key", "key 1/ü").wants(http.StatusAccepted).decode(&a)
	if a.MessageID != "key 1/ü" {
		t.Errorf("message id %q", a.MessageID)
	}
	if want := "/v1/messages/" + url.PathEscape("key 1/ü") + "?document_id=a%2Fb"; a.StatusURL != want {
		t.Errorf("status_url %q, want %q", a.StatusURL, want)
	}
	// The URL leads back to the submission.
	s.world.Messages.Put(apitest.Timeline("a/b", "key 1/ü", rag.Revision{Version: 1}, time.Unix(1, 0), rag.StatusAccepted))
	s.get(a.StatusURL).wants(http.StatusOK)

	p := s.postJSON("/v1/documents", `{"id":"a","text":"x","message_id":"other"}`, "Idempotency-Key", "key").problem(422, "invalid-field")
	blames(t, p, "body", "message_id")
	p = s.postJSON("/v1/documents", `{"id":"a","text":"x"}`, "Idempotency-Key", strings.Repeat("k", 257)).problem(422, "invalid-parameter")
	blames(t, p, "header", "Idempotency-Key")
	limits(t, p, "message_id_bytes", 256)
	p = s.postJSON("/v1/documents", `{"id":"a","text":"x"}`, "Idempotency-Key", "1", "Idempotency-Key", "2").problem(400, "malformed-request")
	blames(t, p, "header", "Idempotency-Key")
}

func TestMessageIDReusedForOtherContentIsRefused(t *testing.T) {
	world := apitest.NewWorld()
	clock := &manualClock{at: time.Unix(1_000_000, 0)}
	deps := world.Dependencies()
	deps.Now = clock.now
	s := startWith(t, api.Config{}, world, deps)
	submit := func(id, text string) answer {
		return s.postJSON("/v1/documents", fmt.Sprintf(`{"id":%q,"text":%q}`, id, text), "Idempotency-Key", "k")
	}
	submit("a", "one").wants(http.StatusAccepted)
	submit("a", "one").wants(http.StatusAccepted) // the same submission again
	submit("b", "two").wants(http.StatusAccepted) // the id is scoped to its document
	p := submit("a", "two").problem(422, "message-id-reused")
	blames(t, p, "header", "Idempotency-Key")
	p = s.postJSON("/v1/documents", `{"id":"a","text":"two","message_id":"k"}`).problem(422, "message-id-reused")
	blames(t, p, "body", "message_id")
	s.send(http.MethodDelete, "/v1/documents/a", nil, "Idempotency-Key", "k").problem(422, "message-id-reused")
	if n := len(world.Publisher.Published()); n != 3 {
		t.Errorf("%d submissions were published, want 3", n)
	}
	clock.add(7 * 24 * time.Hour)
	submit("a", "two").wants(http.StatusAccepted) // forgotten: a new submission
}

func TestMessageIDThatTheReaderKnowsIsRefused(t *testing.T) {
	world := apitest.NewWorld()
	known := rag.Document{ID: "a", Content: []byte("one"), ContentType: "text/plain; charset=utf-8"}
	deps := world.Dependencies()
	deps.Submissions = submissions{hash: known.SubmissionHash()}
	s := startWith(t, api.Config{}, world, deps)
	s.postJSON("/v1/documents", `{"id":"a","text":"one","message_id":"k"}`).wants(http.StatusAccepted)
	s.postJSON("/v1/documents", `{"id":"a","text":"two","message_id":"k2"}`).problem(422, "message-id-reused")

	deps.Submissions, deps.Registerer = submissions{err: errors.New("away")}, nil
	s = startWith(t, api.Config{}, world, deps)
	s.postJSON("/v1/documents", `{"id":"a","text":"three","message_id":"k3"}`).wants(http.StatusAccepted) // the pipeline judges it
}

func TestAFailedSubmissionIsNotRemembered(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Fail = func(d rag.Document) error {
		if string(d.Content) == "lost" {
			return errors.New("no acknowledgement")
		}
		return nil
	}
	s := start(t, api.Config{}, world)
	s.postJSON("/v1/documents", `{"id":"a","text":"lost","message_id":"k"}`).problem(503, "not-kept")
	s.postJSON("/v1/documents", `{"id":"a","text":"kept","message_id":"k"}`).wants(http.StatusAccepted)
}

func TestA202OnlyAfterTheAcknowledgement(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{}, world)
	answered := make(chan answer, 1)
	var wg sync.WaitGroup
	wg.Go(func() { answered <- s.postJSON("/v1/documents", `{"id":"a","text":"x"}`) })
	receive(t, "the submission to reach the publisher", world.Publisher.Entered)
	select {
	case a := <-answered:
		t.Errorf("answered %d before the acknowledgement", a.status)
	default:
	}
	close(world.Publisher.Hold)
	receive(t, "the answer", answered).wants(http.StatusAccepted)
	wg.Wait()
}

func TestWhatTheAPICannotKeepIs503(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		kind   string
		status int
		reason string
		after  string
	}{
		{"unknown", errors.New("no acknowledgement in time"), "not-kept", 503, "", "1"},
		{"an outage with its reason", fmt.Errorf("send: %w", &api.Unavailable{Reason: "kafka_away", RetryAfter: 5 * time.Second}), "not-kept", 503, "kafka_away", "5"},
		{"too large for the log", fmt.Errorf("send: %w", api.ErrTooLarge), "too-large", 413, "too_large", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			world := apitest.NewWorld()
			world.Publisher.Fail = func(rag.Document) error { return c.err }
			s := start(t, api.Config{}, world)
			a := s.postJSON("/v1/documents", `{"text":"x"}`)
			p := a.problem(c.status, c.kind)
			if p.Reason != c.reason || a.header.Get("Retry-After") != c.after {
				t.Errorf("reason %q, Retry-After %q", p.Reason, a.header.Get("Retry-After"))
			}
		})
	}
}

func TestAnAcknowledgementThatDoesNotComeIs503(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	s := start(t, api.Config{PublishTimeout: 20 * time.Millisecond}, world)
	s.postJSON("/v1/documents", `{"text":"x"}`).problem(503, "not-kept")
}

func TestTooManySubmissionsInFlightAre429(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document)
	s := start(t, api.Config{MaxInFlight: 1, AdmissionWait: time.Millisecond}, world)
	var wg sync.WaitGroup
	wg.Go(func() { s.postJSON("/v1/documents", `{"text":"first"}`).wants(http.StatusAccepted) })
	receive(t, "the first submission", world.Publisher.Entered)
	a := s.postJSON("/v1/documents", `{"text":"second"}`)
	limits(t, a.problem(429, "overloaded"), "in_flight", 1)
	if a.header.Get("Retry-After") == "" {
		t.Error("a 429 lacks Retry-After")
	}
	close(world.Publisher.Hold)
	wg.Wait()
	var again sync.WaitGroup
	again.Go(func() { s.postJSON("/v1/documents", `{"text":"second"}`).wants(http.StatusAccepted) })
	receive(t, "the second submission", world.Publisher.Entered) // the place is free again
	again.Wait()
}

type manualClock struct {
	mu sync.Mutex
	at time.Time
}

func (c *manualClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *manualClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
