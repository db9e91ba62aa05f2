package rag

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// InlineBytes is how large the content of a document may be to travel in its record; what is larger travels by reference
// where there is a blob store. Such content is named by its SHA-256 in the submission hash, wherever it travels.
const InlineBytes = 256 << 10

// Blob refers to the content of a document that is kept outside of the log. It is named by its content, and by the day on
// which it was written: nothing written later refers to the blobs of a day that is over, so that they can be collected
// without a race.
type Blob struct {
	Day    string // of the writing, in UTC: 2026-11-29
	SHA256 Hash
	Size   int64
}

// NewBlob names content that was written at a time.
func NewBlob(at time.Time, sum Hash, size int64) Blob {
	return Blob{Day: at.UTC().Format(time.DateOnly), SHA256: sum, Size: size}
}

// Key is the name of the blob in its store: day and hash.
func (b Blob) Key() string { return b.Day + "/" + hex.EncodeToString(b.SHA256[:]) }

// ParseBlobKey is the inverse of Key. It accepts nothing that Key does not give; the size is not part of it.
func ParseBlobKey(key string) (Blob, error) {
	day, sum, ok := strings.Cut(key, "/")
	if at, err := time.Parse(time.DateOnly, day); !ok || err != nil || at.Format(time.DateOnly) != day {
		return Blob{}, fmt.Errorf("the blob %.100q does not begin with a day", key)
	}
	b := Blob{Day: day}
	n, err := hex.Decode(b.SHA256[:], []byte(sum[:min(len(sum), 2*sha256.Size)]))
	if err != nil || n != sha256.Size || b.Key() != key {
		return Blob{}, fmt.Errorf("the blob %.100q does not end with a SHA-256 in lower case", key)
	}
	return b, nil
}
