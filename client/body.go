package client

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// Body is what an upload sends. Open is called once for every attempt and returns the size in bytes, or -1 where it is not
// known; the reader is closed after the attempt.
type Body struct {
	Open func() (r io.ReadCloser, size int64, err error)
}

// Bytes is a body that is in memory.
func Bytes(b []byte) Body {
	return Body{Open: func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(b)), int64(len(b)), nil
	}}
}

// File is a body that is read from a file, with the size that the file has when it is opened.
func File(path string) Body {
	return Body{Open: func() (io.ReadCloser, int64, error) {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		info, err := f.Stat()
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, info.Size(), nil
	}}
}

// BodyError says that the body of an upload could not be read. The call is not repeated.
type BodyError struct{ Err error }

func (e *BodyError) Error() string { return "read the body: " + e.Err.Error() }

// Unwrap gives the cause.
func (e *BodyError) Unwrap() error { return e.Err }

// errChanged is why a body with another size than it was opened with is not sent: half of it might be old, half new.
var errChanged = errors.New("its size changed while it was read")

// bodyReader names the body's own errors, so that they are told from those of the connection.
type bodyReader struct {
	io.ReadCloser
	left int64 // -1: size not known
}

func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left >= 0 {
		b.left -= int64(n)
		if b.left == 0 && n > 0 && err == nil {
			// Before the last bytes go out: the server may answer as soon as it has them.
			err = b.end()
		}
		if b.left < 0 || errors.Is(err, io.EOF) && b.left > 0 {
			return 0, &BodyError{errChanged}
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = &BodyError{err}
	}
	return n, err
}

// end is io.EOF if nothing follows.
func (b *bodyReader) end() error {
	var one [1]byte
	n, err := io.ReadFull(b.ReadCloser, one[:])
	b.left -= int64(n)
	return err
}
