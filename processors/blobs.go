package processors

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/stage"
)

// DependencyBlobs is what the blob store is called in metrics and readiness.
const DependencyBlobs = "blobs"

// Blobs hold the content of large documents, as blob.Store does.
type Blobs interface {
	// Open reads a blob and verifies it. Errors that are blob.ErrMissing or blob.ErrCorrupt, of Open or of reading, speak of the
	// blob; all others mean that the store is away.
	Open(ctx context.Context, b rag.Blob) (io.ReadCloser, error)
	// Canary reports whether the store is there.
	Canary(ctx context.Context) error
}

var errNoBlobs = errors.New("the document's content is in a blob store, and this process has none: set blobs.url as where it was accepted")

// openBlob opens the content of a document that travels by reference.
func (c *Chunker) openBlob(b rag.Blob) func(context.Context) (io.ReadCloser, error) {
	return func(ctx context.Context) (io.ReadCloser, error) {
		if c.Blobs == nil {
			return nil, stage.Outage(DependencyBlobs, 0, errNoBlobs)
		}
		r, err := c.Blobs.Open(ctx, b)
		if err != nil {
			return nil, blobError(err)
		}
		return classified{r}, nil
	}
}

// classified is a blob whose errors have their class.
type classified struct{ io.ReadCloser }

func (c classified) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && err != io.EOF { //nolint:errorlint // what wraps it is no end
		err = blobError(err)
	}
	return n, err
}

// blobError puts an error of the blob store into the stage's classes; this is the only place that does. What is gone or
// damaged is the document's failure: its letter can be replayed once the blob was brought back. Everything else is an outage.
func blobError(err error) error {
	switch {
	case errors.Is(err, blob.ErrMissing):
		return &stage.Error{Class: stage.ClassMessage, Reason: rag.ReasonBlobMissing, Err: err}
	case errors.Is(err, blob.ErrCorrupt):
		return &stage.Error{Class: stage.ClassMessage, Reason: rag.ReasonBlobCorrupt, Err: err}
	}
	return stage.Outage(DependencyBlobs, 0, err)
}

// Canary tries the blob store. What it cannot try lasts until it is over.
func (c *Chunker) Canary(ctx context.Context, dependency string) error {
	if dependency != DependencyBlobs || c.Blobs == nil {
		return fmt.Errorf("no canary for %s", dependency)
	}
	return c.Blobs.Canary(ctx)
}
