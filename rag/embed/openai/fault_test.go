package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
	"github.com/waymarkhq/waymark/rag/embed/openai"
	"pgregory.net/rapid"
)

// wantError requires an *embed.Error of a class and reason, and returns its text.
func wantError(t *testing.T, err error, class rag.Class, reason string) string {
	t.Helper()
	var e *embed.Error
	if !errors.As(err, &e) || e.Class != class || e.Reason != reason {
		t.Fatalf("%v (%#v), want class %s, reason %s", err, e, class, reason)
	}
	return e.Error()
}

func TestFaultsOfTheCall(t *testing.T) {
	status := func(n int) embedtest.Fault { return embedtest.Fault{Kind: embedtest.FaultStatus, Status: n} }
	kind := func(k embedtest.FaultKind) embedtest.Fault { return embedtest.Fault{Kind: k} }
	for _, c := range []struct {
		name   string
		fault  embedtest.Fault
		class  rag.Class
		reason string
	}{
		{"429", status(429), rag.ClassOutage, embed.ReasonOverloaded},
		{"500", status(500), rag.ClassOutage, embed.ReasonUnavailable},
		{"503", status(503), rag.ClassOutage, embed.ReasonUnavailable},
		{"408", status(408), rag.ClassOutage, embed.ReasonUnavailable},
		{"401", status(401), rag.ClassOutage, embed.ReasonUnauthorized},
		{"402", status(402), rag.ClassOutage, embed.ReasonUnauthorized},
		{"403", status(403), rag.ClassOutage, embed.ReasonUnauthorized},
		{"404", status(404), rag.ClassOutage, embed.ReasonMisconfigured},
		{"307", status(307), rag.ClassOutage, embed.ReasonMisconfigured},
		{"400 to everything", status(400), rag.ClassOutage, embed.ReasonMisconfigured},
		{"413 to everything", status(413), rag.ClassOutage, embed.ReasonMisconfigured},
		{"422 to everything", status(422), rag.ClassOutage, embed.ReasonMisconfigured},
		{"409", status(409), rag.ClassTransient, embed.ReasonUnknown},
		{"reset", kind(embedtest.FaultReset), rag.ClassOutage, embed.ReasonUnavailable},
		{"cut", kind(embedtest.FaultCut), rag.ClassOutage, embed.ReasonUnavailable},
		{"garbage", kind(embedtest.FaultGarbage), rag.ClassOutage, embed.ReasonBadReply},
		{"short", kind(embedtest.FaultShort), rag.ClassOutage, embed.ReasonBadReply},
		{"doubled", kind(embedtest.FaultDoubled), rag.ClassOutage, embed.ReasonBadReply},
		{"another dimension", kind(embedtest.FaultDimension), rag.ClassOutage, embed.ReasonMisconfigured},
		{"empty vectors", kind(embedtest.FaultEmpty), rag.ClassOutage, rag.ReasonBadVector},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, fake := newClient(t, embedtest.Config{})
			if err := client.Canary(t.Context()); err != nil {
				t.Fatal(err)
			}
			inject(t, fake, c.fault)
			_, err := client.Embed(t.Context(), numbered(3))
			wantError(t, err, c.class, c.reason)
			if fake.Stats().Faults[c.fault.Kind] == 0 {
				t.Fatal("the fault never happened")
			}
			if c.class == rag.ClassOutage {
				if err := client.Canary(t.Context()); embed.ClassOf(err) != rag.ClassOutage || err == nil {
					t.Errorf("the canary says %v", err)
				}
			}
			fake.Clear()
			texts := numbered(3)
			results, err := client.Embed(t.Context(), texts)
			if err != nil {
				t.Fatalf("after the fault: %v", err)
			}
			wantVectors(t, texts, results)
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	refused := roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("dial tcp: connection refused") })
	client := mustNew(t, openai.Config{URL: "http://127.0.0.1:1", Model: "m", HTTP: &http.Client{Transport: refused}})
	_, err := client.Embed(t.Context(), []string{"a"})
	wantError(t, err, rag.ClassOutage, embed.ReasonUnavailable)
}

func TestHang(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{})
	inject(t, fake, embedtest.Fault{Kind: embedtest.FaultHang})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := client.Embed(ctx, []string{"a"})
	wantError(t, err, rag.ClassOutage, embed.ReasonUnavailable)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v is no %v", err, context.DeadlineExceeded)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header, date string
		want         time.Duration
	}{
		{"", "", 0},
		{"120", "", 2 * time.Minute},
		{"1.5", "", 1500 * time.Millisecond},
		{"0", "", 0},
		{"-3", "", 0},
		{"NaN", "", 0},
		{"soon", "", 0},
		{"1e300", "", time.Hour},
		{"9999999", "", time.Hour},
		{now.Add(90 * time.Second).Format(http.TimeFormat), "", 90 * time.Second},
		{now.Add(-time.Minute).Format(http.TimeFormat), "", 0},
		{now.Add(90 * time.Second).Format(http.TimeFormat), now.Add(30 * time.Second).Format(http.TimeFormat), time.Minute},
	} {
		for _, status := range []int{429, 503} {
			transport := roundTrip(func(r *http.Request) (*http.Response, error) {
				h := http.Header{"Retry-After": {c.header}}
				if c.date != "" {
					h.Set("Date", c.date)
				}
				return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
			})
			client := mustNew(t, openai.Config{
				URL: "http://127.0.0.1:1", Model: "m", Dimensions: dims,
				HTTP: &http.Client{Transport: transport}, Now: func() time.Time { return now },
			})
			_, err := client.Embed(t.Context(), []string{"a"})
			var e *embed.Error
			if !errors.As(err, &e) || e.RetryAfter != c.want {
				t.Errorf("%d, Retry-After %q, Date %q: %+v, want %v", status, c.header, c.date, e, c.want)
			}
		}
	}
}

func TestFaultsOfOneText(t *testing.T) {
	for kind, part := range map[embedtest.FaultKind]string{
		embedtest.FaultNaN:       "is NaN",
		embedtest.FaultNull:      "is NaN",
		embedtest.FaultZero:      "is zero",
		embedtest.FaultEmpty:     "is empty",
		embedtest.FaultDimension: "has 9 dimensions, expected 8",
	} {
		for _, n := range []int{1, 5} {
			t.Run(fmt.Sprintf("%s of %d", kind, n), func(t *testing.T) {
				client, fake := newClient(t, embedtest.Config{})
				inject(t, fake, embedtest.Fault{Kind: kind, Match: "text 0."})
				texts := numbered(n)
				results, err := client.Embed(t.Context(), texts)
				if err != nil {
					t.Fatal(err)
				}
				wantVectors(t, texts, results, 0)
				got := wantError(t, results[0].Err, rag.ClassTransient, rag.ReasonBadVector)
				if results[0].Vector != nil || !strings.Contains(got, part) {
					t.Errorf("%v, %v", results[0].Vector, got)
				}
			})
		}
	}
}

func TestRefusedText(t *testing.T) {
	for _, status := range []int{400, 413, 422} {
		client, fake := newClient(t, embedtest.Config{})
		inject(t, fake, embedtest.Fault{Kind: embedtest.FaultStatus, Status: status, Match: "text 5.", Body: `{"detail":"against our rules"}`})
		texts := numbered(64)
		results, err := client.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		wantVectors(t, texts, results, 5)
		got := wantError(t, results[5].Err, rag.ClassMessage, rag.ReasonEmbedderRefused)
		if want := fmt.Sprintf("embedder_refused: the service answers %d: against our rules", status); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if calls := fake.Stats().Calls; calls > 15 {
			t.Errorf("%d calls to find one of 64 texts", calls)
		}
		fake.Clear()
		if _, err := client.Embed(t.Context(), texts); err != nil {
			t.Fatal(err)
		}
		if b := fake.Stats().Batches; b[len(b)-1] != 64 {
			t.Errorf("a refused text has made the batches smaller: %v", b)
		}
	}
}

// TestServerWithASmallerBatch: it is found out once, and tried again later.
func TestServerWithASmallerBatch(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{MaxBatch: 20})
	texts := numbered(64)
	embedAll := func() {
		t.Helper()
		results, err := client.Embed(t.Context(), texts)
		if err != nil {
			t.Fatal(err)
		}
		wantVectors(t, texts, results)
	}
	embedAll()
	before := fake.Stats().Calls
	embedAll()
	if b := fake.Stats().Batches[before:]; fmt.Sprint(b) != "[16 16 16 16]" {
		t.Errorf("the second time: %v", b)
	}
	for range 30 {
		embedAll()
	}
	larger := 0
	for _, n := range fake.Stats().Batches[before:] {
		if n > 20 {
			larger++
		}
	}
	if larger < 1 || larger > 3 {
		t.Errorf("%d larger batches in 31 rounds", larger)
	}
}

// TestResultsBeforeAnOutageStand: what was paid for is not asked for again.
func TestResultsBeforeAnOutageStand(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{}, func(c *openai.Config) { c.Batch = 4 })
	inject(t, fake, embedtest.Fault{Kind: embedtest.FaultStatus, Status: 500, Match: "text 9."})
	texts := numbered(12)
	results, err := client.Embed(t.Context(), texts)
	wantError(t, err, rag.ClassOutage, embed.ReasonUnavailable)
	wantVectors(t, texts[:8], results[:8])
	for i, r := range results[8:] {
		if r.Done() {
			t.Errorf("text %d is done: %+v", 8+i, r)
		}
	}
}

func TestDimensionsAreNotLearnedFromABrokenVector(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{})
	inject(t, fake, embedtest.Fault{Kind: embedtest.FaultDimension, Match: embed.CanaryTexts()[0], Times: 1})
	_, err := client.Embed(t.Context(), []string{"a"})
	wantError(t, err, rag.ClassOutage, embed.ReasonMisconfigured)
	if client.Dimensions() != 0 {
		t.Fatalf("learned %d", client.Dimensions())
	}
	results, err := client.Embed(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, []string{"a"}, results)
}

func TestDimensionsAsConfigured(t *testing.T) {
	client, _ := newClient(t, embedtest.Config{}, func(c *openai.Config) { c.Dimensions = dims + 1 })
	_, err := client.Embed(t.Context(), []string{"a"})
	got := wantError(t, err, rag.ClassOutage, embed.ReasonMisconfigured)
	if !strings.Contains(got, "vectors of 8 dimensions, expected 9") {
		t.Error(got)
	}
}

func TestReplyIsBounded(t *testing.T) {
	endless := roundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(spaces{}), Request: r}, nil
	})
	client := mustNew(t, openai.Config{URL: "http://127.0.0.1:1", Model: "m", Dimensions: dims, HTTP: &http.Client{Transport: endless}})
	_, err := client.Embed(t.Context(), []string{"a"})
	got := wantError(t, err, rag.ClassOutage, embed.ReasonBadReply)
	if !strings.Contains(got, "longer than 393216 bytes") {
		t.Error(got)
	}
}

// spaces never ends.
type spaces struct{}

func (spaces) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestEveryTextGetsItsOwnResult: whatever texts a service refuses or answers badly and whatever batches it takes, each
// text has its own result, and no other suffers.
func TestEveryTextGetsItsOwnResult(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		fake := embedtest.NewFake(embedtest.Config{Dimensions: dims, MaxBatch: rapid.IntRange(0, 12).Draw(rt, "server batch")})
		client := mustNew(t, openai.Config{
			URL: "http://fake", Model: embedtest.DefaultModel, Batch: rapid.IntRange(1, 20).Draw(rt, "batch"),
			HTTP: &http.Client{Transport: inProcess{fake}},
		})
		texts := numbered(rapid.IntRange(1, 40).Draw(rt, "texts"))
		var faulty []int
		for i := range texts {
			switch rapid.SampledFrom([]string{"", "", "", "", "refused", "zero"}).Draw(rt, "fate") {
			case "refused":
				inject(t, fake, embedtest.Fault{Kind: embedtest.FaultStatus, Status: 400, Match: texts[i]})
				faulty = append(faulty, i)
			case "zero":
				texts[i] = "zero " + texts[i]
				faulty = append(faulty, i)
			}
		}
		inject(t, fake, embedtest.Fault{Kind: embedtest.FaultZero, Match: "zero "})
		results, err := client.Embed(t.Context(), texts)
		if err != nil {
			rt.Fatal(err)
		}
		wantVectors(t, texts, results, faulty...)
		for _, i := range faulty {
			want := rag.ClassMessage
			if strings.HasPrefix(texts[i], "zero ") {
				want = rag.ClassTransient
			}
			if got := embed.ClassOf(results[i].Err); results[i].Err == nil || got != want {
				rt.Fatalf("text %d: %v (%s), want class %s", i, results[i].Err, got, want)
			}
		}
		if t.Failed() {
			rt.Fatal("see above")
		}
	})
}

// inProcess calls a handler without a connection.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}
