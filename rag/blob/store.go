package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/memblob"
	"gocloud.dev/gcerrors"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag"
)

// Errors of reading. Every other error means that the store is away.
var (
	// ErrMissing: the store is there, and does not have the blob.
	ErrMissing = errors.New("the blob is not in the store")
	// ErrCorrupt: what the store has is not what was written.
	ErrCorrupt = errors.New("the blob is not what was written")
)

const (
	blobs    = "documents/" // then rag.Blob.Key
	incoming = "incoming/"  // what is being written
	mark     = "waymark-blobs"
)

// Store is a folder or a bucket. All methods may be called concurrently. Its owner closes it.
type Store struct {
	bucket *blob.Bucket
	folder string // "" for a bucket
	now    func() time.Time
	marked atomic.Bool // the mark was seen: it is never written again
}

// Open opens the store that a URL names: file:///srv/blobs (made if it is missing), s3://bucket?region=eu-central-1, or
// mem:// for tests. A prefix=… parameter puts everything under that prefix of a bucket. It does not ask a bucket whether it is
// there. now is the clock that dates blobs.
func Open(ctx context.Context, rawURL string, now func() time.Time) (*Store, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("open the blob store: %w", err)
	}
	if u.Scheme == "file" {
		return OpenFolder(folderPath(u), now)
	}
	b, err := openers().OpenBucketURL(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("open the blob store %s: %w", u.Redacted(), err)
	}
	return &Store{bucket: b, now: now}, nil
}

// Check reports what is wrong with a URL that Open would refuse, without opening anything.
func Check(rawURL string) error {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return err
	case u.Scheme == "file" && (u.Host != "" || !strings.HasPrefix(u.Path, "/") || u.RawQuery != ""):
		return errors.New("a folder is named by its full path, as in file:///srv/blobs")
	case u.Scheme == "file":
		return nil
	case u.Scheme == memblob.Scheme || !openers().ValidBucketScheme(u.Scheme):
		return fmt.Errorf("the scheme %q is not known; there are file and s3", u.Scheme)
	case u.Host == "":
		return errors.New("the bucket is missing, as in s3://bucket?region=eu-central-1")
	}
	return nil
}

// FolderURL is the URL of a folder, which is named by its full path.
func FolderURL(dir string) string {
	path := filepath.ToSlash(dir)
	if !strings.HasPrefix(path, "/") { // a drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

// folderPath is the inverse of FolderURL.
func folderPath(u *url.URL) string {
	path := filepath.FromSlash(u.Path)
	if len(u.Path) > 2 && filepath.VolumeName(path[1:]) != "" {
		path = path[1:]
	}
	return path
}

// OpenFolder opens a folder, which is made if it is missing. Processes may share it.
func OpenFolder(dir string, now func() time.Time) (*Store, error) {
	// Temporary files lie in the folder itself: what is renamed must not cross a file system.
	b, err := fileblob.OpenBucket(dir, &fileblob.Options{CreateDir: true, DirFileMode: 0o700, NoTempDir: true, Metadata: fileblob.MetadataDontWrite})
	if err != nil {
		return nil, fmt.Errorf("open the blob folder %s: %w", dir, err)
	}
	s := &Store{bucket: b, folder: dir, now: now}
	_, err = os.Stat(filepath.Join(dir, mark))
	s.marked.Store(err == nil)
	return s, nil
}

// Close ends the store.
func (s *Store) Close() error { return s.bucket.Close() }

// Write keeps all that r gives and returns its name once it is safe: synced to disk, or acknowledged by the bucket. The same
// content written twice on a day is kept once. An error of r is returned as it is (errors.Is, errors.As); any other means that
// the store is away. Memory does not depend on the size.
func (s *Store) Write(ctx context.Context, r io.Reader) (rag.Blob, error) {
	if err := s.setMark(ctx); err != nil {
		return rag.Blob{}, err
	}
	h, source := sha256.New(), &source{r: r}
	temporary := incoming + uuid.NewString()
	size, err := s.put(ctx, temporary, io.TeeReader(source, h))
	switch {
	case source.err != nil:
		return rag.Blob{}, source.err
	case err != nil:
		return rag.Blob{}, fmt.Errorf("write to the blob store: %w", err)
	}
	b := rag.NewBlob(s.now(), rag.Hash(h.Sum(nil)), size)
	if err := s.publish(ctx, temporary, b); err != nil {
		return rag.Blob{}, fmt.Errorf("write to the blob store: %w", err)
	}
	fault.Hit(fault.AfterBlob)
	return b, nil
}

// source tells the errors of what is written from those of the store.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF { // what wraps it is no end
		s.err = err
	}
	return n, err
}

// put writes an object, as a whole or not at all.
func (s *Store) put(ctx context.Context, key string, r io.Reader) (int64, error) {
	ctx, abort := context.WithCancel(ctx)
	defer abort()
	w, err := s.bucket.NewWriter(ctx, key, &blob.WriterOptions{ContentType: "application/octet-stream"})
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(w, r)
	if err != nil {
		abort() // closing then keeps nothing
		return 0, errors.Join(err, ignore(w.Close(), context.Canceled))
	}
	return n, w.Close()
}

func ignore(err, what error) error {
	if errors.Is(err, what) || gcerrors.Code(err) == gcerrors.Canceled {
		return nil
	}
	return err
}

// publish gives what was written its name.
func (s *Store) publish(ctx context.Context, temporary string, b rag.Blob) error {
	key := blobs + b.Key()
	if s.folder != "" {
		err := s.Canary(ctx) // it may have gone away since
		if err == nil {
			err = s.rename(temporary, key)
		}
		if err != nil {
			_ = s.bucket.Delete(ctx, temporary) // else it is collected
		}
		return err
	}
	there, err := s.bucket.Exists(ctx, key)
	if err != nil {
		return err
	}
	if !there {
		if err := s.bucket.Copy(ctx, key, temporary, nil); err != nil {
			return err
		}
	}
	// What stays behind here is collected.
	_ = s.bucket.Delete(ctx, temporary)
	return nil
}

// rename gives a file its name, on the disk too. It replaces the same content, of which nobody knows whether it is synced.
func (s *Store) rename(from, to string) error {
	from, to = filepath.Join(s.folder, filepath.FromSlash(from)), filepath.Join(s.folder, filepath.FromSlash(to))
	if err := syncPath(from); err != nil {
		return err
	}
	day := filepath.Dir(to)
	if err := os.MkdirAll(day, 0o700); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return errors.Join(syncPath(day), syncPath(filepath.Dir(day)), syncPath(s.folder))
}

// setMark marks the store as one of ours before the first blob is in it. A folder that had its mark and has none is not mounted
// any more.
func (s *Store) setMark(ctx context.Context) error {
	switch {
	case s.marked.Load() && s.folder != "":
		return s.Canary(ctx)
	case s.marked.Load():
		return nil
	}
	there, err := s.bucket.Exists(ctx, mark)
	if err == nil && !there {
		if _, err = s.put(ctx, mark, strings.NewReader("Large documents of Waymark, by day and SHA-256. See docs/large.md.\n")); err == nil && s.folder != "" {
			err = errors.Join(syncPath(filepath.Join(s.folder, mark)), syncPath(s.folder))
		}
	}
	if err != nil {
		return fmt.Errorf("the blob store is away: %w", err)
	}
	s.marked.Store(true)
	return nil
}

// Canary reports whether the store is there, and is one of ours.
func (s *Store) Canary(ctx context.Context) error {
	there, err := s.bucket.Exists(ctx, mark)
	switch {
	case err != nil:
		return fmt.Errorf("the blob store is away: %w", err)
	case !there:
		return fmt.Errorf("the blob store is away: its mark %s is missing, so this is not where blobs were written to", mark)
	}
	s.marked.Store(true)
	return nil
}

// Open reads a blob from its beginning. What it gives is verified once it ends: the last Read returns ErrCorrupt instead of
// io.EOF. Errors that are ErrMissing or ErrCorrupt speak of the blob; all others mean that the store is away. None but the end
// itself is an io.EOF or an io.ErrUnexpectedEOF, whatever the network said.
func (s *Store) Open(ctx context.Context, b rag.Blob) (io.ReadCloser, error) {
	r, err := s.bucket.NewReader(ctx, blobs+b.Key(), nil)
	if gcerrors.Code(err) == gcerrors.NotFound {
		if away := s.Canary(ctx); away != nil {
			return nil, away
		}
		return nil, fmt.Errorf("%w: %s", ErrMissing, b.Key())
	}
	if err != nil {
		return nil, &readError{err}
	}
	return &verified{r: r, want: b, hash: sha256.New()}, nil
}

// verified is a blob that is compared with its name while it is read.
type verified struct {
	r    io.ReadCloser
	want rag.Blob
	hash hash.Hash
	size int64
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.hash.Write(p[:n])
	v.size += int64(n)
	switch {
	case v.size > v.want.Size:
		return 0, fmt.Errorf("%w: %s has more than %d bytes", ErrCorrupt, v.want.Key(), v.want.Size)
	case err == io.EOF && (v.size != v.want.Size || rag.Hash(v.hash.Sum(nil)) != v.want.SHA256):
		return n, fmt.Errorf("%w: %s has %d bytes of another content", ErrCorrupt, v.want.Key(), v.size)
	case err != nil && err != io.EOF:
		return n, &readError{err}
	}
	return n, err
}

func (v *verified) Close() error { return v.r.Close() }

// readError is an error of a store that is read. It hides that its cause is the end of something, which readers would take for
// the end of the blob.
type readError struct{ cause error }

func (e *readError) Error() string { return "read from the blob store: " + e.cause.Error() }

// Is reports whether the cause is target.
func (e *readError) Is(target error) bool {
	return target != io.EOF && target != io.ErrUnexpectedEOF && errors.Is(e.cause, target)
}

// As finds what the cause is.
func (e *readError) As(target any) bool { return errors.As(e.cause, target) }

// syncPath makes the kernel write a file, or the names in a folder, to the disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
