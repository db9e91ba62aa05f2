package blob

import (
	"crypto/sha256"
	"io"

	"github.com/waymarkhq/waymark/rag"
)

// Verified is what Open gives, over any reader.
func Verified(r io.Reader, b rag.Blob) io.ReadCloser {
	return &verified{r: io.NopCloser(r), want: b, hash: sha256.New()}
}
