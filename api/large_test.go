package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/api/apitest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
)

// fakeBlobs is a blob store that counts, and keeps what is small.
type fakeBlobs struct {
	mu      sync.Mutex
	content map[rag.Hash][]byte
	sizes   []int64
	err     error
	cut     bool // what is read ends in the middle
}

func (b *fakeBlobs) Write(_ context.Context, r io.Reader) (rag.Blob, error) {
	if b.err != nil {
		return rag.Blob{}, b.err
	}
	h, kept := sha256.New(), &bytes.Buffer{}
	n, err := io.Copy(io.MultiWriter(h, &limited{kept, 1 << 20}), r)
	if err != nil {
		return rag.Blob{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	ref := rag.NewBlob(time.Unix(1e9, 0), rag.Hash(h.Sum(nil)), n)
	if b.content == nil {
		b.content = map[rag.Hash][]byte{}
	}
	b.content[ref.SHA256] = kept.Bytes()
	b.sizes = append(b.sizes, n)
	return ref, nil
}

// limited keeps the beginning.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.to.Write(p[:n])
	return len(p), nil
}

func (b *fakeBlobs) Open(_ context.Context, ref rag.Blob) (io.ReadCloser, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	content, ok := b.content[ref.SHA256]
	switch {
	case b.err != nil:
		return nil, b.err
	case !ok:
		return nil, fmt.Errorf("%w: %s", api.ErrBlobMissing, ref.Key())
	case b.cut:
		return io.NopCloser(io.MultiReader(bytes.NewReader(content[:len(content)/2]), broken{})), nil
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the store went away") }

func startWithBlobs(t *testing.T, cfg api.Config) (*site, *fakeBlobs) {
	t.Helper()
	world, blobs := apitest.NewWorld(), &fakeBlobs{}
	deps := world.Dependencies()
	deps.Blobs = blobs
	return startWith(t, cfg, world, deps), blobs
}

// unsized hides the size of a body, so that it is sent in chunks.
type unsized struct{ io.Reader }

func TestLargeDocumentsGoToTheBlobStore(t *testing.T) {
	for _, size := range []int{1, rag.InlineBytes, rag.InlineBytes + 1, 300_000, 1 << 20} {
		for _, sized := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d bytes, size told: %t", size, sized), func(t *testing.T) {
				s, blobs := startWithBlobs(t, api.Config{})
				content := []byte(strings.Repeat("0123456789", size/10+1)[:size])
				var body io.Reader = bytes.NewReader(content)
				if !sized {
					body = unsized{body}
				}
				s.send(http.MethodPut, "/v1/documents/a?title=T", body, "Content-Type", "application/pdf").wants(http.StatusAccepted)
				d := s.world.Publisher.Published()[0].Document
				if d.Title != "T" || d.ContentType != "application/pdf" {
					t.Errorf("published %+v", d)
				}
				if size <= rag.InlineBytes {
					if d.Blob != nil || !bytes.Equal(d.Content, content) {
						t.Errorf("published %d bytes, blob %v", len(d.Content), d.Blob)
					}
					return
				}
				if d.Content != nil || d.Blob == nil || d.Blob.Size != int64(size) || !bytes.Equal(blobs.content[d.Blob.SHA256], content) {
					t.Errorf("published %d bytes, blob %+v", len(d.Content), d.Blob)
				}
			})
		}
	}
}

// zeros is a body that nobody holds.
type zeros struct{ left int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(int64(len(p)), z.left)
	clear(p[:n])
	z.left -= n
	return int(n), nil
}

func TestLargeDocumentIsNotHeld(t *testing.T) {
	s, blobs := startWithBlobs(t, api.Config{})
	const size = 100 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s.send(http.MethodPut, "/v1/documents/a", &zeros{size}).wants(http.StatusAccepted)
	runtime.ReadMemStats(&after)
	if len(blobs.sizes) != 1 || blobs.sizes[0] != size {
		t.Fatalf("written %v", blobs.sizes)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 { // allocated in all, collected or not
		t.Errorf("%d bytes were allocated for it", grown)
	}
}

func TestLargeDocumentsThatAreRefused(t *testing.T) {
	s, blobs := startWithBlobs(t, api.Config{MaxDocumentBytes: 1 << 20})
	for _, body := range []io.Reader{bytes.NewReader(make([]byte, 1<<20+1)), unsized{&zeros{1<<20 + 1}}} {
		p := s.send(http.MethodPut, "/v1/documents/a", body).problem(413, "too-large")
		limits(t, p, "limits.document_bytes", 1<<20)
	}
	blobs.err = &api.Unavailable{Reason: "blobs_away", RetryAfter: time.Second, Err: errors.New("connection refused")}
	p := s.send(http.MethodPut, "/v1/documents/a", &zeros{1 << 19}).problem(503, "not-kept")
	if p.Reason != "blobs_away" {
		t.Errorf("reason %q", p.Reason)
	}
	if n := len(s.world.Publisher.Published()); n != 0 {
		t.Errorf("%d refused documents were published", n)
	}
}

// Without a blob store the refusal names the setting.
func TestLargeDocumentWithoutABlobStore(t *testing.T) {
	s := start(t, api.Config{}, apitest.NewWorld())
	p := s.send(http.MethodPut, "/v1/documents/a", bytes.NewReader(make([]byte, 9<<20))).problem(413, "too-large")
	limits(t, p, "body_bytes", 8<<20)
	if !strings.Contains(p.Detail, "blobs.url") {
		t.Errorf("detail %q", p.Detail)
	}
}

// An upload that breaks off is nobody's document.
func TestLargeDocumentThatBreaksOff(t *testing.T) {
	s, blobs := startWithBlobs(t, api.Config{})
	conn := s.dial()
	fmt.Fprintf(conn, "PUT /v1/documents/a HTTP/1.1\r\nHost: %s\r\nContent-Length: 1000000\r\n\r\n%s", s.addr, strings.Repeat("x", 500_000))
	if c, ok := conn.(interface{ CloseWrite() error }); !ok || c.CloseWrite() != nil {
		t.Fatal("cannot close one half")
	}
	s.read(conn).problem(400, "malformed-request")
	if len(blobs.sizes) > 0 || len(s.world.Publisher.Published()) > 0 {
		t.Errorf("kept %v, published %d", blobs.sizes, len(s.world.Publisher.Published()))
	}
}

func TestPayloadByReference(t *testing.T) {
	s, blobs := startWithBlobs(t, api.Config{})
	content := strings.Repeat("payload ", 100_000)
	ref, err := blobs.Write(t.Context(), strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	key, value, headers := wire.DocumentRecord(rag.Document{ID: "d", MessageID: "m", ContentType: "application/pdf", Blob: &ref}, true)
	row := &ledger.LetterRow{ID: "waymark.documents@0-0-7", State: rag.LetterWaiting, Original: rag.Raw{Key: key, Value: value}}
	for _, h := range headers {
		row.Original.Headers = append(row.Original.Headers, rag.Header(h))
	}
	s.world.Letters.Put(row)
	path := "/v1/dead-letters/" + row.ID + "/payload"
	a := s.get(path).wants(http.StatusOK)
	if string(a.body) != content || a.header.Get("Original-Content-Type") != "application/pdf" || a.header.Get("Content-Length") != fmt.Sprint(len(content)) {
		t.Errorf("%d bytes, headers %v", len(a.body), a.header)
	}
	blobs.cut = true
	res, err := s.client.Get(s.url + path)
	if err == nil {
		_, err = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	if err == nil {
		t.Error("half a payload looks like a whole one")
	}
	clear(blobs.content)
	if p := s.get(path).problem(410, "payload-lost"); p.Reason != rag.ReasonBlobMissing {
		t.Errorf("reason %q", p.Reason)
	}
	blobs.err = &api.Unavailable{Reason: "blobs_away", Err: errors.New("connection refused")}
	s.get(path).problem(503, "unavailable")
}
