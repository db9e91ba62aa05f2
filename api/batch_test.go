package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
)

// results decodes the answer to a batch.
func (a answer) results() []api.BatchResult {
	a.t.Helper()
	a.wants(http.StatusOK)
	if ct := a.header.Get("Content-Type"); ct != "application/x-ndjson" {
		a.t.Fatalf("Content-Type %q", ct)
	}
	var all []api.BatchResult
	dec := json.NewDecoder(bytes.NewReader(a.body))
	for {
		var r api.BatchResult
		err := dec.Decode(&r)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			a.t.Fatalf("decode %q: %v", a.body, err)
		}
		all = append(all, r)
	}
}

func (s *site) batch(body string) []api.BatchResult {
	s.t.Helper()
	return s.post("/v1/documents:batch", "application/x-ndjson", body).results()
}

func TestBatchJudgesEachLineOnItsOwn(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	results := s.batch(strings.Join([]string{
		`{"id":"a","text":"one"}`,
		`not JSON`,
		``,
		`{"id":"b","text":""}`,
		"  \t\r",
		`{"id":"c","text":"three","message_id":"m3"}` + "\r",
		`{"id":"d","unknown":1}`,
	}, "\n"))
	var got []string
	for _, r := range results {
		line := fmt.Sprintf("%d:%d", r.Line, r.Status)
		if r.Problem != nil {
			line += " " + strings.TrimPrefix(r.Problem.Type, "urn:waymark:problem:") + " " + r.Problem.Field
		} else {
			line += " " + r.DocumentID
		}
		got = append(got, line)
	}
	want := []string{"1:202 a", "2:400 malformed-json body", "4:422 invalid-field text", "6:202 c", "7:422 invalid-field unknown"}
	if !slices.Equal(got, want) {
		t.Errorf("results\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if results[3].MessageID != "m3" || results[3].StatusURL != "/v1/messages/m3?document_id=c" {
		t.Errorf("result %+v", results[3])
	}
	if n := len(s.world.Publisher.Published()); n != 2 {
		t.Errorf("%d documents were published", n)
	}
}

func TestBatchOfNothing(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	for _, body := range []string{"", "\n", "\n \r\n\t"} {
		if got := s.batch(body); len(got) != 0 {
			t.Errorf("%q: results %+v", body, got)
		}
	}
}

func TestBatchHasAtMostAThousandLines(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	line := `{"text":"x"}` + "\n"
	if got := s.batch(strings.Repeat(line, 1000) + "\n\n"); len(got) != 1000 {
		t.Errorf("%d results of a thousand lines", len(got))
	}
	got := s.batch(strings.Repeat(line, 1500))
	if len(got) != 1001 || got[999].Status != 202 || got[1000].Status != 413 || got[1000].Line != 1001 {
		t.Fatalf("%d results, the last %+v", len(got), got[len(got)-1])
	}
	limits(t, *got[1000].Problem, "batch_lines", 1000)
	if n := len(s.world.Publisher.Published()); n != 2000 {
		t.Errorf("%d documents were published", n)
	}
}

func TestBatchRefusesAnIdempotencyKey(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	p := s.post("/v1/documents:batch", "application/x-ndjson", `{"text":"x"}`, "Idempotency-Key", "k").problem(422, "invalid-parameter")
	blames(t, p, "header", "Idempotency-Key")
}

func TestBatchKeepsTheOrderOfEachDocument(t *testing.T) {
	world := apitest.NewWorld()
	server, err := api.New(api.Config{}, world.Dependencies())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		before := len(world.Publisher.Published())
		ids := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 200).Draw(t, "ids")
		var body strings.Builder
		for i, id := range ids {
			fmt.Fprintf(&body, "{\"id\":\"d%d\",\"text\":\"%d\"}\n", id, i)
		}
		r := newRequest(http.MethodPost, "/v1/documents:batch", strings.NewReader(body.String()))
		if a := serve(server, r); a.status != http.StatusOK || bytes.Count(a.body, []byte("\n")) != len(ids) {
			t.Fatalf("status %d: %s", a.status, a.body)
		}
		last := map[string]int{}
		for _, p := range world.Publisher.Published()[before:] {
			var n int
			if _, err := fmt.Sscan(string(p.Document.Content), &n); err != nil {
				t.Fatal(err)
			}
			if seen, ok := last[p.Document.ID]; ok && n < seen {
				t.Fatalf("line %d of %s was published after line %d", n+1, p.Document.ID, seen+1)
			}
			last[p.Document.ID] = n
		}
	})
}

func TestBatchPublishesSeveralLinesAtOnce(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Hold = make(chan struct{})
	world.Publisher.Entered = make(chan rag.Document, 2)
	s := start(t, api.Config{}, world)
	done := make(chan []api.BatchResult, 1)
	go func() { done <- s.batch("{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"b\",\"text\":\"2\"}") }()
	receive(t, "one line", world.Publisher.Entered)
	receive(t, "the other line, while the first waits", world.Publisher.Entered)
	close(world.Publisher.Hold)
	if got := receive(t, "the answer", done); got[0].DocumentID != "a" || got[1].DocumentID != "b" {
		t.Errorf("results out of order: %+v", got)
	}
}

func TestBatchLinesThatCannotBeKept(t *testing.T) {
	world := apitest.NewWorld()
	world.Publisher.Fail = func(d rag.Document) error {
		if d.ID == "b" {
			return &api.Unavailable{Reason: "kafka_away"}
		}
		return nil
	}
	s := start(t, api.Config{}, world)
	got := s.batch("{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"b\",\"text\":\"2\"}\n{\"id\":\"c\",\"text\":\"3\"}")
	if got[0].Status != 202 || got[1].Status != 503 || got[2].Status != 202 {
		t.Fatalf("results %+v", got)
	}
	if got[1].Problem.Reason != "kafka_away" {
		t.Errorf("problem %+v", got[1].Problem)
	}
}

func TestBatchThatBreaksOffSaysSo(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	conn := s.dial()
	body := "{\"id\":\"a\",\"text\":\"1\"}\n{\"id\":\"b\",\"te"
	write(t, conn, fmt.Sprintf("POST /v1/documents:batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body)+100, body))
	if err := conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got := s.read(conn).results()
	if len(got) != 2 || got[0].Status != 202 || got[1].Status != 400 || got[1].Line != 2 {
		t.Errorf("results %+v", got)
	}
}
