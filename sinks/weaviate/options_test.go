package weaviate

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weaviate/weaviate/entities/models"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

func TestOptionsAreRefusedTogether(t *testing.T) {
	_, err := Open(context.Background(), Options{
		URL: "localhost:8080", Collection: "chunk", ConsistencyLevel: "MOST", Timeout: -1, Dimensions: 3,
	})
	if err == nil {
		t.Fatal("unusable options are accepted")
	}
	for _, want := range []string{"localhost:8080", `collection "chunk"`, `"MOST"`, "negative", "model is empty"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %s", err, want)
		}
	}
	for _, url := range []string{"http://h/path", "http://user@h", "ftp://h", "http://", "http://h?x=1"} {
		if err := (Options{URL: url, Model: "m", Dimensions: 3}).withDefaults().validate(); err == nil {
			t.Errorf("url %q is accepted", url)
		}
	}
}

func TestOpenRefusesAnotherSpace(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{Collection: "Mine"})
	for _, o := range []Options{{Model: "other", Dimensions: testDimensions}, {Model: "test", Dimensions: 3}} {
		o.URL, o.Collection = s.options.URL, "Mine"
		_, err := Open(context.Background(), o)
		var space *sinks.SpaceError
		if !errors.As(err, &space) || space.Stored.Model != "test" || space.Wanted.Model != o.Model || space.Wanted.Dimensions != o.Dimensions {
			t.Errorf("Open with %q, %d: %v", o.Model, o.Dimensions, err)
		}
	}
	good := Options{URL: s.options.URL, Collection: "Mine", Model: "test", Dimensions: testDimensions}
	for _, c := range []struct {
		want   string
		change func()
	}{
		{"multi-tenancy", func() { f.classes["Mine"].MultiTenancyConfig = &models.MultiTenancyConfig{Enabled: true} }},
		{"layout 9", func() { f.classes["Mine"].Description = `{"waymark_layout": 9}` }},
		{"another program", func() { f.classes["Mine"].Description = "my own notes" }},
		{"1.26.3", func() { f.version = "1.26.3" }},
	} {
		c.change()
		if _, err := Open(context.Background(), good); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open = %v, want an error with %q", err, c.want)
		}
	}
}

func TestVersionLess(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"1.26.9", "1.27.0", true}, {"1.27.0", "1.27.0", false}, {"1.35.2", "1.27.0", false}, {"2.0.0", "1.27.0", false},
		{"1.27.0-rc.1", "1.27.0", false}, {"1.9.0", "1.27.0", true}, {"", "1.27.0", true},
	} {
		if got := versionLess(c.a, c.b); got != c.want {
			t.Errorf("versionLess(%q, %q) = %t", c.a, c.b, got)
		}
	}
}

func TestClassifyCodes(t *testing.T) {
	for code, want := range map[codes.Code]verdict{
		codes.Unavailable:       {outcome: sinks.Ambiguous, suspect: true},
		codes.DeadlineExceeded:  {outcome: sinks.Ambiguous, suspect: true},
		codes.Canceled:          {outcome: sinks.Ambiguous, suspect: true},
		codes.Unauthenticated:   {outcome: sinks.Outage},
		codes.ResourceExhausted: {outcome: sinks.Outage, tooLarge: true},
		codes.InvalidArgument:   {outcome: sinks.Transient},
		codes.Unknown:           {outcome: sinks.Outage, suspect: true},
		codes.Internal:          {outcome: sinks.Outage, suspect: true},
	} {
		if got := classify(status.Error(code, "x")); got != want {
			t.Errorf("%s: %+v, want %+v", code, got, want)
		}
	}
	if got := classify(context.DeadlineExceeded); got.outcome != sinks.Ambiguous {
		t.Errorf("a timeout is %s", got.outcome)
	}
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "5": 5 * time.Second, "-5": 0, "soon": 0,
		now.Add(time.Minute).Format(http.TimeFormat):  time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat): 0,
	} {
		if got := parseRetryAfter(in, now); got != want {
			t.Errorf("parseRetryAfter(%q) = %s, want %s", in, got, want)
		}
	}
}

func TestSuspects(t *testing.T) {
	opened := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSuspects(opened)
	if got := s.settled("unknown", time.Second); !got.Equal(opened.Add(time.Second)) {
		t.Errorf("an object of an earlier process settles at %s", got)
	}
	at := opened.Add(time.Hour)
	object := func(id string, v rag.Version) *sinks.Object {
		return &sinks.Object{ID: id, Chunk: rag.Chunk{Subject: rag.Subject{DocumentID: "d", Revision: rag.Revision{Version: v}}}}
	}
	s.add(object("a", 1), at)
	if got := s.settled("a", time.Second); !s.has("a") || !got.Equal(at.Add(time.Second)) {
		t.Errorf("a settles at %s", got)
	}
	s.clear("a")
	if s.has("a") {
		t.Error("a is still a suspect")
	}
	s.add(object("answered", 3), time.Time{})
	if got := s.settled("answered", time.Second); got.After(opened) {
		t.Errorf("an answered write settles at %s", got)
	}
	s.clear("answered")
	s.add(object("first", 1), opened)
	s.add(object("second", 2), at)
	if got := s.removed("d", rag.Removal{Revision: rag.Revision{Version: 2}}); !slices.Equal(got, []string{"first"}) {
		t.Errorf("below version 2 are %v", got)
	}
	if got := s.removed("e", rag.Removal{Revision: rag.Revision{Version: 9}}); len(got) > 0 {
		t.Errorf("of another document are %v", got)
	}
	s.forgetOldest()
	if s.has("first") || !s.has("second") {
		t.Error("the oldest is not forgotten first")
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := sleepUntil(ctx, time.Now().Add(time.Hour)); !errors.Is(err, context.Canceled) {
		t.Errorf("sleepUntil with a context that is done: %v", err)
	}
}

// Strings of any kind stay strings in GraphQL.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"plain", `"`, `\`, "\n\t\x00\x1f", "日本語", "\u2028", "\U0001F600", "\xff", "</script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		q := quote(s)
		inner := strings.ReplaceAll(q[1:len(q)-1], `\\`, "")
		if q[0] != '"' || q[len(q)-1] != '"' || strings.Contains(strings.ReplaceAll(inner, `\"`, ""), `"`) {
			t.Errorf("%q becomes %s", s, q)
		}
		for _, r := range q {
			if r < ' ' {
				t.Errorf("%q becomes %q, with a control character", s, q)
			}
		}
	})
}

// A store that is closed leaves no goroutine behind.
func TestCloseLeavesNothing(t *testing.T) {
	f := newFake()
	server := httptest.NewServer(f)
	defer server.Close()
	before := goleak.IgnoreCurrent()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // accepts nobody
	s, err := Open(context.Background(), Options{URL: server.URL, GRPC: listener.Addr().String(), Model: "m", Dimensions: 3})
	if err != nil {
		t.Fatal(err)
	}
	s.grpc.conn.Connect()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	server.Close()
	goleak.VerifyNone(t, before)
}

// A collection of an earlier release lacks properties that queries name.
func TestPropertiesThatACollectionLacksAreAdded(t *testing.T) {
	f := newFake()
	s := openFake(t, f, Options{Collection: "Mine"})
	whole := len(f.classes["Mine"].Properties)
	f.classes["Mine"].Properties = slices.DeleteFunc(f.classes["Mine"].Properties, func(p *models.Property) bool { return strings.HasPrefix(p.Name, "parent") })
	if n := len(f.classes["Mine"].Properties); n != whole-3 {
		t.Fatalf("%d properties of %d are left", n, whole)
	}
	again, err := Open(context.Background(), Options{URL: s.options.URL, Collection: "Mine", Model: "test", Dimensions: testDimensions})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if n := len(f.classes["Mine"].Properties); n != whole {
		t.Errorf("%d properties of %d are there", n, whole)
	}
}
