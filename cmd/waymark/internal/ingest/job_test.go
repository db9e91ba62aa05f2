package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/servertest"
	"github.com/waymarkhq/waymark/rag"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eventually polls until done, or fails the test after a time.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(20 * time.Second); !done(); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("it does not come: %s", what)
		}
	}
}

func connect(t *testing.T, url string, retry client.Retry) *client.Client {
	t.Helper()
	c, err := client.New(url, client.Options{Retry: retry})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// result of a job.
type result struct {
	outcomes map[string]string // what was reported, by document
	summary  ingest.Summary
	progress string
	err      error
}

// do runs a job over paths.
func do(t *testing.T, api ingest.API, cfg ingest.Config, args ...string) result {
	t.Helper()
	sources, err := ingest.Resolve(args)
	if err != nil {
		t.Fatal(err)
	}
	r := result{outcomes: map[string]string{}}
	cfg.API, cfg.Count = api, true
	cfg.Report = func(o ingest.Outcome) { r.outcomes[o.DocumentID+"@"+o.Place] = o.String() }
	job := ingest.New(cfg)
	r.err = job.Ingest(t.Context(), sources)
	r.summary = job.Summary()
	r.summary.Seconds = 1.26
	p := job.Progress()
	r.progress = fmt.Sprintf("%d of %d, %d sent, %d failed", p.Done, p.Total, p.Sent, p.Failed)
	return r
}

func TestIngestFilesAndLines(t *testing.T) {
	s := servertest.Start(t, servertest.WithMaxBody(2000))
	tree(t, map[string]string{
		"docs/a.txt": "one\n\ntwo", "docs/b.txt": servertest.NoText, "docs/big.txt": strings.Repeat("x", 3000), "docs/empty.txt": "",
		"docs/lines.jsonl": `{"id":"l1","text":"x"}
not JSON

{"text":"x","colour":"red"}
{"text":"without an id"}
{"id":"l2","text":"` + servertest.NoText + `"}
`,
	})
	r := do(t, connect(t, s.URL, client.Retry{}), ingest.Config{Concurrency: 3}, "docs")
	if r.err != nil {
		t.Fatal(r.err)
	}
	want := map[string]string{
		"docs/a.txt@":                           "docs/a.txt: indexed",
		"docs/b.txt@":                           "docs/b.txt: dead (no_text): The document has no text.",
		"docs/big.txt@":                         "docs/big.txt: refused (too_large): the document is above the limit of 2000 bytes; larger ones need a blob store, see the setting blobs.url",
		"docs/empty.txt@":                       "docs/empty.txt: refused (empty_text): the body is empty; DELETE removes a document",
		"l1@":                                   "l1: indexed",
		"@docs/lines.jsonl:2":                   r.outcomes["@docs/lines.jsonl:2"], // the words are the API's
		"docs/lines.jsonl#4@docs/lines.jsonl:4": "docs/lines.jsonl:4: refused (unknown_field): colour: " + after(r.outcomes["docs/lines.jsonl#4@docs/lines.jsonl:4"], "colour: "),
		"docs/lines.jsonl#5@":                   "docs/lines.jsonl#5: indexed",
		"l2@":                                   "l2: dead (no_text): The document has no text.",
	}
	if !maps.Equal(r.outcomes, want) {
		t.Errorf("got:\n%s", strings.Join(slices.Sorted(maps.Values(r.outcomes)), "\n"))
	}
	if got := r.outcomes["@docs/lines.jsonl:2"]; !strings.HasPrefix(got, "docs/lines.jsonl:2: refused (broken_json): ") {
		t.Errorf("got %q", got)
	}
	if got, want := r.summary.String(), "9 documents: 3 indexed, 2 dead, 4 refused (1.3 s, 4 chunks)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if r.summary.Failed() != 6 || r.progress != "9 of 9, 9 sent, 6 failed" {
		t.Errorf("%d failed, progress %s", r.summary.Failed(), r.progress)
	}
	if string(s.Content("docs/a.txt")) != "one\n\ntwo" {
		t.Errorf("the server got %q", s.Content("docs/a.txt"))
	}
	// Again: what was indexed is unchanged, and lines without an id are the same documents.
	again := do(t, connect(t, s.URL, client.Retry{}), ingest.Config{}, "docs")
	if got, want := again.summary.String(), "9 documents: 3 unchanged, 2 dead, 4 refused (1.3 s)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func after(text, sep string) string {
	_, rest, _ := strings.Cut(text, sep)
	return rest
}

func TestFilesThatCannotBeRead(t *testing.T) {
	s := servertest.Start(t)
	tree(t, map[string]string{"docs/a.txt": "a", "docs/gone.txt": "b", "docs/lines.jsonl": "{}"})
	sources, err := ingest.Resolve([]string{"docs"})
	if err != nil {
		t.Fatal(err)
	}
	var files []ingest.File
	if err := sources[0].Walk(t.Context(), false, &ingest.Skipped{}, func(f ingest.File) error { files = append(files, f); return nil }); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []string{"docs/gone.txt", "docs/lines.jsonl"} {
		if err := os.Remove(gone); err != nil {
			t.Fatal(err)
		}
	}
	var outcomes []string
	job := ingest.New(ingest.Config{API: connect(t, s.URL, client.Retry{For: time.Hour, Unreachable: true}), Report: func(o ingest.Outcome) { outcomes = append(outcomes, o.String()) }})
	if err := job.Changes(t.Context(), files, []string{"old", "bad\x00id"}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(outcomes)
	want := []string{
		"bad\ufffdid: unreadable (cannot_read): the name has a control character and cannot be a document id", "docs/a.txt: indexed",
		"docs/gone.txt: unreadable (cannot_read): no such file or directory", "docs/lines.jsonl: unreadable (cannot_read): no such file or directory",
		"old: deleted",
	}
	if !slices.Equal(outcomes, want) {
		t.Errorf("got:\n%s", strings.Join(outcomes, "\n"))
	}
}

func TestStandardInput(t *testing.T) {
	s := servertest.Start(t)
	api := connect(t, s.URL, client.Retry{})
	r := do(t, api, ingest.Config{Stdin: strings.NewReader(`{"id":"x","text":"hello"}` + "\n" + `{"text":"a"}` + "\n" + `{"text":"b"}`)}, "-")
	if r.err != nil || r.summary.String() != "3 documents: 3 indexed (1.3 s, 3 chunks)" || len(r.outcomes) != 3 {
		t.Errorf("got %+v", r)
	}
	r = do(t, api, ingest.Config{Stdin: strings.NewReader("the bytes"), StdinID: "y"}, "-")
	if r.err != nil || string(s.Content("y")) != "the bytes" {
		t.Errorf("got %+v", r)
	}
	r = do(t, api, ingest.Config{Stdin: brokenReader{}, StdinID: "z"}, "-")
	if r.err != nil || r.outcomes["z@"] != "z: unreadable (cannot_read): bad sector" {
		t.Errorf("got %+v", r)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("bad sector") }

func TestALineIsSentWhileTheNextIsNotThere(t *testing.T) {
	s := servertest.Start(t)
	r, w := io.Pipe()
	job := ingest.New(ingest.Config{API: connect(t, s.URL, client.Retry{}), Stdin: r})
	sources, err := ingest.Resolve([]string{"-"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Ingest(t.Context(), sources) }()
	if _, err := w.Write([]byte(`{"id":"a","text":"x"}` + "\n")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first line", func() bool { return s.Content("a") != nil })
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

func TestLinesOfOneDocumentKeepTheirOrder(t *testing.T) {
	busy := true
	s := servertest.Start(t, servertest.WithRefusals(func(w http.ResponseWriter, r *http.Request) bool {
		if busy && strings.HasSuffix(r.URL.Path, ":batch") {
			busy = false // the first batch has to be sent again
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}))
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, "{\"id\":\"doc\",\"text\":\"version %d\"}\n{\"id\":\"other%d\",\"text\":\"x\"}\n", i, i)
	}
	tree(t, map[string]string{"x.jsonl": lines.String()})
	r := do(t, connect(t, s.URL, client.Retry{For: time.Minute}), ingest.Config{Concurrency: 8}, "x.jsonl")
	if r.err != nil || r.summary.Documents != 100 {
		t.Fatalf("%v, %v", r.err, r.summary)
	}
	if got := string(s.Content("doc")); got != "version 49" {
		t.Errorf("the last version is %q", got)
	}
}

func TestNoWait(t *testing.T) {
	s := servertest.Start(t)
	tree(t, map[string]string{"a.txt": servertest.Held})
	r := do(t, connect(t, s.URL, client.Retry{}), ingest.Config{NoWait: true}, "a.txt")
	if r.err != nil || r.summary.String() != "1 document: 1 accepted (1.3 s)" || r.outcomes["a.txt@"] != "a.txt: accepted" || r.progress != "1 of 1, 1 sent, 0 failed" {
		t.Errorf("got %+v", r)
	}
}

func TestItWaitsForEveryDocument(t *testing.T) {
	s := servertest.Start(t)
	tree(t, map[string]string{"docs/a": servertest.Held, "docs/b": "now"})
	job := ingest.New(ingest.Config{API: connect(t, s.URL, client.Retry{}), Concurrency: 2})
	sources, err := ingest.Resolve([]string{"docs"})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- job.Ingest(t.Context(), sources) }()
	eventually(t, "one is indexed, one is held", func() bool {
		st := job.Summary().Statuses
		return st[rag.StatusIndexed] == 1 && st[rag.StatusAccepted] == 1
	})
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	s.Release()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := job.Summary().Statuses; !maps.Equal(got, map[rag.Status]int{rag.StatusIndexed: 2}) {
		t.Errorf("got %v", got)
	}
}

func TestCancellationEndsTheJobAndSaysHowFarItCame(t *testing.T) {
	s := servertest.Start(t)
	tree(t, map[string]string{"a": servertest.Held})
	for _, args := range [][]string{{"a"}, {"-"}} {
		r, w := io.Pipe()
		ctx, cancel := context.WithCancel(t.Context())
		job := ingest.New(ingest.Config{API: connect(t, s.URL, client.Retry{}), Stdin: r})
		sources, err := ingest.Resolve(args)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- job.Ingest(ctx, sources) }()
		if args[0] == "a" {
			eventually(t, "accepted", func() bool { return job.Summary().Statuses[rag.StatusAccepted] == 1 })
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%q: got %v", args, err)
		}
		if err := w.Close(); err != nil { // lets the abandoned read go
			t.Fatal(err)
		}
	}
}

func TestAnAPIThatIsAwayEndsTheJob(t *testing.T) {
	tree(t, map[string]string{"docs/a": "1", "docs/b": "2", "docs/c.jsonl": "{}"})
	for _, status := range []int{401, 403, 404, 503} {
		s := servertest.Start(t, servertest.WithRefusals(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(status)
			return true
		}))
		r := do(t, connect(t, s.URL, client.Retry{}), ingest.Config{}, "docs")
		var e *client.Error
		if !errors.As(r.err, &e) || e.Status != status {
			t.Errorf("%d: got %v", status, r.err)
		}
	}
	// A whole batch or file that is refused is not: it concerns these documents only.
	s := servertest.Start(t, servertest.WithRefusals(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusInternalServerError)
			return true
		}
		return false
	}))
	r := do(t, connect(t, s.URL, client.Retry{}), ingest.Config{}, "docs/a")
	if r.err != nil || r.outcomes["a@"] != "a: refused (http_500): Internal Server Error" {
		t.Errorf("got %+v", r)
	}
}

func TestSummaryLine(t *testing.T) {
	for want, s := range map[string]ingest.Summary{
		"63 documents: 60 indexed, 3 dead (12.3 s, 1,024 chunks)": {Documents: 63, Chunks: 1024, Seconds: 12.34, Statuses: map[rag.Status]int{rag.StatusIndexed: 60, rag.StatusDead: 3}},
		"0 documents (0.0 s)":                      {},
		"1 document: 1 indexed (1m2s, 1 chunk)":    {Documents: 1, Chunks: 1, Seconds: 62, Statuses: map[rag.Status]int{rag.StatusIndexed: 1}},
		"2,000 documents: 2,000 unchanged (3.0 s)": {Documents: 2000, Seconds: 3, Statuses: map[rag.Status]int{rag.StatusUnchanged: 2000}},
		"3 documents: 1 superseded, 1 unreadable, 1 accepted (1.0 s)": {Documents: 3, Seconds: 1, Statuses: map[rag.Status]int{
			rag.StatusSuperseded: 1, ingest.StatusUnreadable: 1, rag.StatusAccepted: 1}},
	} {
		if got := s.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
