package openai_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
	"github.com/waymarkhq/waymark/rag/embed/openai"
)

const dims = 8

// newClient returns a client of a fake service; edit changes its configuration before.
func newClient(t testing.TB, service embedtest.Config, edit ...func(*openai.Config)) (*openai.Client, *embedtest.Fake) {
	t.Helper()
	if service.Dimensions == 0 {
		service.Dimensions = dims
	}
	fake, url := embedtest.Serve(t, service)
	c := openai.Config{URL: url, Model: embedtest.DefaultModel}
	for _, f := range edit {
		f(&c)
	}
	return mustNew(t, c), fake
}

func mustNew(t testing.TB, c openai.Config) *openai.Client {
	t.Helper()
	client, err := openai.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func inject(t testing.TB, fake *embedtest.Fake, faults ...embedtest.Fault) {
	t.Helper()
	for _, f := range faults {
		if err := fake.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
}

// wantVectors requires for each text but those in except the vector that the fake gives it.
func wantVectors(t testing.TB, texts []string, results []embed.Result, except ...int) {
	t.Helper()
	if len(results) != len(texts) {
		t.Fatalf("%d results for %d texts", len(results), len(texts))
	}
	for i, r := range results {
		if slices.Contains(except, i) {
			continue
		}
		if r.Err != nil || !slices.Equal(r.Vector, embedtest.Vector(texts[i], dims)) {
			t.Errorf("text %d: %v, %v", i, r.Vector, r.Err)
		}
	}
}

func numbered(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d.", i)
	}
	return texts
}

func TestConformance(t *testing.T) {
	embedtest.Run(t, func(t *testing.T) embed.Embedder {
		client, _ := newClient(t, embedtest.Config{})
		return client
	})
}

func TestConformanceWithASmallServerBatch(t *testing.T) {
	embedtest.Run(t, func(t *testing.T) embed.Embedder {
		client, _ := newClient(t, embedtest.Config{MaxBatch: 10})
		return client
	})
}

func TestBatches(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{}, func(c *openai.Config) { c.Batch = 10 })
	texts := numbered(25)
	results, err := client.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, texts, results)
	if got := fmt.Sprint(fake.Stats().Batches); got != "[2 10 10 5]" { // the canary first
		t.Errorf("batches %s", got)
	}
	if client.Dimensions() != dims || client.Model() != embedtest.DefaultModel || client.Settings() != "" || !client.Paid() {
		t.Errorf("dimensions %d, model %q, settings %q, paid %v", client.Dimensions(), client.Model(), client.Settings(), client.Paid())
	}
}

func TestReplyInAnotherOrder(t *testing.T) {
	client, fake := newClient(t, embedtest.Config{})
	inject(t, fake, embedtest.Fault{Kind: embedtest.FaultReordered})
	texts := numbered(7)
	results, err := client.Embed(t.Context(), texts)
	if err != nil {
		t.Fatal(err)
	}
	wantVectors(t, texts, results)
	if fake.Stats().Faults[embedtest.FaultReordered] == 0 {
		t.Error("the replies were in order")
	}
}

func TestURL(t *testing.T) {
	for base, want := range map[string]string{
		"":                "/v1/embeddings",
		"/":               "/v1/embeddings",
		"/v1":             "/v1/embeddings",
		"/v1/":            "/v1/embeddings",
		"/openai/v1":      "/openai/v1/embeddings",
		"/gateway":        "/gateway/v1/embeddings",
		"/gateway//x/../": "/gateway/v1/embeddings",
	} {
		var got string
		transport := roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.URL.Path
			return nil, errors.New("enough seen")
		})
		client := mustNew(t, openai.Config{URL: "http://127.0.0.1:1" + base, Model: "m", HTTP: &http.Client{Transport: transport}})
		if err := client.Canary(t.Context()); err == nil {
			t.Fatal("no error")
		}
		if got != want {
			t.Errorf("%q: call of %q, want %q", base, got, want)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		config openai.Config
		want   []string // what the error names; empty if there is none
	}{
		{openai.Config{URL: "https://api.example/v1", Model: "m", Batch: openai.MaxBatch}, nil},
		{openai.Config{}, []string{"url: must be http", "model: must not be empty"}},
		{openai.Config{URL: "ftp://host", Model: "m"}, []string{"url: must be http"}},
		{openai.Config{URL: "http://", Model: "m"}, []string{"url: must be http"}},
		{openai.Config{URL: "http://user:hunter2@host", Model: "m"}, []string{"url: must have no user"}},
		{openai.Config{URL: "http://user:hunter2@host:bad", Model: "m"}, []string{"url: cannot be parsed"}},
		{openai.Config{URL: "http://host?key=hunter2", Model: "m"}, []string{"url: must have no user, query"}},
		{openai.Config{URL: "http://host", Model: "m", Batch: -1, Dimensions: -1}, []string{"batch: -1", "dimensions: -1"}},
		{openai.Config{URL: "http://host", Model: "m", Batch: openai.MaxBatch + 1}, []string{"batch: 2049 is not between 1 and 2048"}},
	} {
		_, err := openai.New(c.config)
		if (err == nil) != (len(c.want) == 0) {
			t.Errorf("%+v: %v", c.config, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q does not name %q", err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q holds a secret", err)
		}
	}
}

func TestNoProxyAndNoRedirects(t *testing.T) {
	client := openai.NewHTTPClient()
	if transport := client.Transport.(*http.Transport); transport.Proxy != nil {
		t.Error("the client uses a proxy")
	}
	if err := client.CheckRedirect(nil, nil); !errors.Is(err, http.ErrUseLastResponse) {
		t.Errorf("the client follows redirects: %v", err)
	}
}

func TestKeyIsSentAndCanChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	client, _ := newClient(t, embedtest.Config{APIKey: "right"}, func(c *openai.Config) { c.APIKey = openai.KeyFromFile(path) })
	unauthorized := func(when string) {
		t.Helper()
		var e *embed.Error
		if err := client.Canary(t.Context()); !errors.As(err, &e) || e.Reason != embed.ReasonUnauthorized || embed.ClassOf(err) != "outage" {
			t.Errorf("%s: %v", when, err)
		}
	}
	unauthorized("no file")
	write(" \n")
	unauthorized("an empty file")
	write("wrong")
	unauthorized("a wrong key")
	write(strings.Repeat("x", 20<<10))
	unauthorized("a huge file")
	write(" right\n")
	if err := client.Canary(t.Context()); err != nil {
		t.Errorf("with the key: %v", err)
	}
}

func TestKeyFromEnv(t *testing.T) {
	t.Setenv("WAYMARK_TEST_KEY", " from the environment ")
	if key, err := openai.KeyFromEnv("WAYMARK_TEST_KEY")(); err != nil || key != "from the environment" {
		t.Errorf("%q, %v", key, err)
	}
	if key, err := openai.KeyFromEnv("WAYMARK_TEST_NO_KEY")(); err == nil {
		t.Errorf("an unset variable gives %q", key)
	}
}

// TestKeyIsNeverInAnError: services repeat it, and a key may be broken.
func TestKeyIsNeverInAnError(t *testing.T) {
	const key = "sk-very-secret"
	for name, given := range map[string]string{"echoed": key, "not for a header": key + "\nx: y"} {
		client, fake := newClient(t, embedtest.Config{}, func(c *openai.Config) {
			c.APIKey = func() (string, error) { return given, nil }
		})
		inject(t, fake, embedtest.Fault{Kind: embedtest.FaultStatus, Status: 401, Body: `{"error":{"message":"Incorrect key ` + key + `."}}`})
		_, err := client.Embed(t.Context(), []string{"a"})
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", name, err)
		}
		if name == "echoed" && !strings.Contains(err.Error(), "Incorrect key [key].") {
			t.Errorf("the service's words are lost: %v", err)
		}
	}
}

func BenchmarkEmbed(b *testing.B) {
	client, _ := newClient(b, embedtest.Config{Dimensions: 256})
	texts := numbered(64)
	for b.Loop() {
		if _, err := client.Embed(context.Background(), texts); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(64*b.N)/b.Elapsed().Seconds(), "texts/s")
}
