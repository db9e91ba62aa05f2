package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/waymarkhq/waymark/rag/blob"
)

const bucketName = "documents-of-waymark"

// s3Server is an S3 API on loopback.
type s3Server struct {
	url      string
	backend  *s3mem.Backend
	requests atomic.Int64
	parts    atomic.Int64 // of uploads in several parts
	down     atomic.Bool  // it answers 503 to everything
}

// startS3 serves S3, with a bucket in it, until the test ends.
func startS3(t *testing.T) *s3Server {
	t.Helper()
	s := &s3Server{backend: s3mem.New()}
	if err := s.backend.CreateBucket(bucketName); err != nil {
		t.Fatal(err)
	}
	api := gofakes3.New(s.backend, gofakes3.WithLogger(gofakes3.DiscardLog())).Server()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if r.URL.Query().Has("partNumber") {
			s.parts.Add(1)
		}
		if s.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	s.url = "s3://" + bucketName + "?region=us-east-1&use_path_style=true&endpoint=" + url.QueryEscape(server.URL)
	return s
}

func openS3(t *testing.T, url string, c *clock) *blob.Store {
	t.Helper()
	if err := blob.Check(url); err != nil {
		t.Fatal(err)
	}
	s, err := blob.Open(t.Context(), url, c.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// What is larger than a part travels in several, and comes back as it was.
func TestS3LargeBlobs(t *testing.T) {
	server := startS3(t)
	s := openS3(t, server.url, newClock())
	content := make([]byte, 23<<20)
	random := rand.NewChaCha8([32]byte{1})
	if _, err := random.Read(content); err != nil {
		t.Fatal(err)
	}
	b, err := s.Write(t.Context(), bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	if server.parts.Load() < 2 {
		t.Errorf("%d parts", server.parts.Load())
	}
	r, err := s.Open(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// Two stores with prefixes of their own in one bucket do not see each other's blobs, and what one collects the other keeps.
func TestS3Prefixes(t *testing.T) {
	server := startS3(t)
	c := newClock()
	one, two := openS3(t, server.url+"&prefix=one/", c), openS3(t, server.url+"&prefix=two/", c)
	b := write(t, one, "content")
	if _, err := read(two, b); err == nil || errors.Is(err, blob.ErrMissing) {
		t.Errorf("a store without its mark: %v", err) // it was never written to: it is away
	}
	write(t, two, "content")
	c.pass(100 * day)
	collector := &blob.Collector{Store: two, Now: c.now, References: noReferences}
	if found, err := collector.Collect(t.Context()); err != nil || found.Blobs != 1 || found.Deleted != 1 {
		t.Errorf("%+v, %v", found, err)
	}
	if got, err := read(one, b); err != nil || got != "content" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := read(two, b); !errors.Is(err, blob.ErrMissing) {
		t.Errorf("collected: %v", err)
	}
}

// More objects than one answer of S3 lists are all looked through.
func TestS3CollectsAllPages(t *testing.T) {
	const blobs = 1_100 // S3 lists 1,000
	server := startS3(t)
	c := newClock()
	s := openS3(t, server.url, c)
	write(t, s, "the first, which sets the mark")
	for i := 1; i < blobs; i++ {
		key := "documents/2026-11-29/" + hashOf(i)
		if _, err := server.backend.PutObject(bucketName, key, nil, bytes.NewReader([]byte{1}), 1, nil); err != nil {
			t.Fatal(err)
		}
	}
	c.pass(100 * day)
	collector := &blob.Collector{Store: s, Now: c.now, References: noReferences, DryRun: true}
	if found, err := collector.Collect(t.Context()); err != nil || found.Blobs != blobs || found.Deleted != blobs {
		t.Errorf("%+v, %v", found, err)
	}
}

func hashOf(i int) string {
	h := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
	return hex.EncodeToString(h[:])
}

// A server, a bucket or a right that is missing is an outage, never the loss of a document.
func TestS3ThatIsAway(t *testing.T) {
	server := startS3(t)
	c := newClock()
	s := openS3(t, server.url, c)
	b := write(t, s, "content")
	away := func(name string, s *blob.Store) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := s.Canary(ctx); err == nil {
			t.Errorf("%s: the canary sings", name)
		}
		if _, err := s.Write(ctx, bytes.NewReader([]byte("x"))); err == nil {
			t.Errorf("%s: written", name)
		}
		if r, err := s.Open(ctx, b); err == nil || errors.Is(err, blob.ErrMissing) || errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%s: %v, %v", name, r, err)
		}
	}
	other := "s3://no-such-bucket" + server.url[len("s3://"+bucketName):]
	away("no bucket", openS3(t, other, c))
	server.down.Store(true)
	away("server", s)
	server.down.Store(false)
	if got, err := read(s, b); err != nil || got != "content" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
}
