package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that a test sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func newClock() *clock { return &clock{at: time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)} }

// eachStore runs a test on a folder, on a bucket in memory and on one that an S3 server has.
func eachStore(t *testing.T, test func(t *testing.T, s *blob.Store, c *clock)) {
	t.Helper()
	open := func(t *testing.T, url string) {
		c := newClock()
		s, err := blob.Open(t.Context(), url, c.now)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, s, c)
	}
	t.Run("folder", func(t *testing.T) { open(t, "file://"+filepath.ToSlash(t.TempDir())+"/made/anew") })
	t.Run("bucket", func(t *testing.T) { open(t, "mem://") })
	t.Run("S3", func(t *testing.T) { open(t, startS3(t).url) })
}

func write(t *testing.T, s *blob.Store, content string) rag.Blob {
	t.Helper()
	b, err := s.Write(t.Context(), iotest.OneByteReader(strings.NewReader(content)))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func read(s *blob.Store, b rag.Blob) (string, error) {
	r, err := s.Open(context.Background(), b)
	if err != nil {
		return "", err
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	return string(content), err
}

func TestWriteAndRead(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, c *clock) {
		for _, content := range []string{"", "content", strings.Repeat("large ", 3<<10)} {
			b := write(t, s, content)
			if want := rag.NewBlob(c.now(), sha256.Sum256([]byte(content)), int64(len(content))); b != want {
				t.Errorf("named %+v, want %+v", b, want)
			}
			for range 2 { // written again it is the same
				if again := write(t, s, content); again != b {
					t.Errorf("written again it is %+v", again)
				}
				if got, err := read(s, b); err != nil || got != content {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			}
		}
	})
}

// What could not be read as a whole must not be kept, and is told from a store that is away.
func TestWriteOfAnUploadThatBreaksOff(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, _ *clock) {
		broken := errors.New("the client went away")
		_, err := s.Write(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
		if !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
		if _, err := read(s, rag.NewBlob(newClock().now(), sha256.Sum256([]byte("half")), 4)); !errors.Is(err, blob.ErrMissing) {
			t.Errorf("half a blob: %v", err)
		}
		left := &blob.Collector{Store: s, Now: func() time.Time { return time.Now().AddDate(1, 0, 0) }, References: noReferences}
		if found, err := left.Collect(t.Context()); err != nil || found != (blob.Collected{}) {
			t.Errorf("left behind: %+v, %v", found, err)
		}
	})
}

func TestMissing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, c *clock) {
		b := rag.NewBlob(c.now(), sha256.Sum256([]byte("nobody")), 6)
		// Nothing was ever written: it may be a folder that is not mounted.
		if _, err := s.Open(t.Context(), b); err == nil || errors.Is(err, blob.ErrMissing) || s.Canary(t.Context()) == nil {
			t.Errorf("a store without its mark: %v", err)
		}
		write(t, s, "somebody")
		if err := s.Canary(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := s.Open(t.Context(), b); !errors.Is(err, blob.ErrMissing) {
			t.Errorf("error %v", err)
		}
	})
}

func TestFolderThatGoesAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	s, err := blob.OpenFolder(dir, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := write(t, s, "content")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), b); err == nil || errors.Is(err, blob.ErrMissing) {
		t.Errorf("the folder is away: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // where it was mounted
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), b); err == nil || errors.Is(err, blob.ErrMissing) {
		t.Errorf("the folder is not mounted: %v", err)
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	if got, err := read(s, b); err != nil || got != "content" {
		t.Errorf("it is back: %q, %v", got, err)
	}
}

// A folder that is not mounted any more is not made a store of its own by what is written.
func TestWriteToAFolderThatIsNotMounted(t *testing.T) {
	for name, see := range map[string]func(t *testing.T, dir string) *blob.Store{
		"a process that has written": func(t *testing.T, dir string) *blob.Store {
			s := openFolder(t, dir)
			write(t, s, "before")
			return s
		},
		"a process that found the store when it began": openFolderOfAnother,
		"a process that was asked whether it is there": func(t *testing.T, dir string) *blob.Store {
			s := openFolder(t, dir)
			write(t, openFolder(t, dir), "before")
			if err := s.Canary(t.Context()); err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "blobs")
			s := see(t, dir)
			if err := os.Rename(dir, dir+".away"); err != nil {
				t.Fatal(err)
			}
			for _, mounted := range []bool{false, true} { // the mount point is missing, or empty
				if mounted {
					if err := os.Mkdir(dir, 0o700); err != nil {
						t.Fatal(err)
					}
				}
				if b, err := s.Write(t.Context(), strings.NewReader("content")); err == nil || !strings.Contains(err.Error(), "away") {
					t.Errorf("written as %+v: %v", b, err)
				}
				if left, err := os.ReadDir(dir); mounted && (err != nil || len(left) > 0) {
					t.Errorf("left in the mount point: %v, %v", left, err)
				}
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(dir+".away", dir); err != nil {
				t.Fatal(err)
			}
			write(t, s, "content")
		})
	}
}

func openFolder(t *testing.T, dir string) *blob.Store {
	t.Helper()
	s, err := blob.OpenFolder(dir, newClock().now)
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

// openFolderOfAnother opens a folder to which another process has written.
func openFolderOfAnother(t *testing.T, dir string) *blob.Store {
	t.Helper()
	write(t, openFolder(t, dir), "before")
	return openFolder(t, dir)
}

// during is content that does something before it ends.
type during func() error

func (d during) Read([]byte) (int, error) {
	if err := d(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func TestFolderThatGoesAwayDuringAWrite(t *testing.T) {
	dir := t.TempDir()
	s := openFolderOfAnother(t, dir)
	gone := during(func() error { return os.Remove(filepath.Join(dir, "waymark-blobs")) })
	b, err := s.Write(t.Context(), io.MultiReader(strings.NewReader("content"), gone))
	if err == nil || !strings.Contains(err.Error(), "away") {
		t.Errorf("written as %+v: %v", b, err)
	}
	if left, err := os.ReadDir(filepath.Join(dir, "incoming")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// The end of a network's stream must not look like the end of a blob, nor of what is written.
func TestErrorsThatLookLikeTheEnd(t *testing.T) {
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		for name, cause := range map[string]error{"wrapped": fmt.Errorf("the network: %w", end), "bare": end} {
			r := blob.Verified(io.MultiReader(strings.NewReader("con"), iotest.ErrReader(cause)), rag.NewBlob(newClock().now(), sha256.Sum256([]byte("content")), 7))
			got, err := io.ReadAll(r)
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v, %s: read %q, %v", end, name, got, err)
			}
			if short := cause == io.EOF; errors.Is(err, blob.ErrCorrupt) != short { //nolint:errorlint // bare
				t.Errorf("%v, %s: %v", end, name, err)
			}
		}
	}
	canceled := blob.Verified(iotest.ErrReader(context.Canceled), rag.Blob{Size: 1})
	if _, err := io.ReadAll(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	eachStore(t, func(t *testing.T, s *blob.Store, _ *clock) {
		broken := fmt.Errorf("the client: %w", io.EOF)
		if _, err := s.Write(t.Context(), io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken))); err != broken { //nolint:errorlint // as it is
			t.Errorf("error %v", err)
		}
	})
}

func TestCorrupt(t *testing.T) {
	dir := t.TempDir()
	s, err := blob.OpenFolder(dir, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := write(t, s, "content")
	for _, other := range []string{"cantent", "content and more", "conten", ""} {
		if err := os.WriteFile(filepath.Join(dir, "documents", filepath.FromSlash(b.Key())), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := read(s, b); !errors.Is(err, blob.ErrCorrupt) {
			t.Errorf("%q: error %v", other, err)
		}
	}
	if again := write(t, s, "content"); again != b { // written again it is mended
		t.Errorf("written again as %+v", again)
	}
	if got, err := read(s, b); err != nil || got != "content" {
		t.Errorf("mended: %q, %v", got, err)
	}
}

// Nothing but blobs and the mark lies in a folder, whatever was written how often.
func TestFolderHoldsNothingElse(t *testing.T) {
	dir := t.TempDir()
	s, err := blob.OpenFolder(dir, newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write(t, s, "one")
	write(t, s, "one")
	write(t, s, "two")
	var names []string
	if err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, filepath.Base(path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if len(names) != 3 {
		t.Errorf("files %q", names)
	}
}

func TestConcurrentWritesOfOneContent(t *testing.T) {
	eachStore(t, func(t *testing.T, s *blob.Store, _ *clock) {
		content := bytes.Repeat([]byte("same "), 100_000)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				b, err := s.Write(t.Context(), bytes.NewReader(content))
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := read(s, b); err != nil || got != string(content) {
					t.Errorf("read %d bytes, %v", len(got), err)
				}
			})
		}
		all.Wait()
	})
}

func TestFolderURL(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a folder?")
	s, err := blob.Open(t.Context(), blob.FolderURL(dir), newClock().now)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	write(t, s, "content")
	if _, err := os.Stat(filepath.Join(dir, "documents")); err != nil || blob.Check(blob.FolderURL(dir)) != nil {
		t.Errorf("%s: %v", blob.FolderURL(dir), err)
	}
}

func TestCheck(t *testing.T) {
	for _, good := range []string{"file:///srv/blobs", "s3://bucket?region=eu-central-1", "s3://bucket?prefix=waymark/"} {
		if err := blob.Check(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "/srv/blobs", "file://srv/blobs", "file:blobs", "file:///srv?metadata=skip", "ftp://bucket", "mem://", "s3://", "s3:bucket", "://"} {
		if blob.Check(bad) == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
}
