package rag

import (
	"strconv"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// chunkNamespace is the UUID namespace of chunk ids. It never changes: ids in every store depend on it.
var chunkNamespace = uuid.MustParse("6f0c9c5e-3c0b-5b39-9d53-3b1f0a2f7c11")

// ChunkID is deterministic, so that writing a chunk again overwrites it: UUIDv5 of tenant, document id, version,
// generation and index (RFC 9562, section 5.5).
func ChunkID(tenant, documentID string, rev Revision, index int) uuid.UUID {
	if mutant.Active == mutant.RandomChunkIDs {
		return uuid.New()
	}
	h := newHasher("chunk")
	h.add([]byte(tenant))
	h.add([]byte(documentID))
	h.add([]byte(strconv.FormatInt(int64(rev.Version), 10)))
	if mutant.Active != mutant.IDsWithoutGeneration {
		h.add([]byte(strconv.Itoa(rev.Generation)))
	}
	h.add([]byte(strconv.Itoa(index)))
	return uuid.NewSHA1(chunkNamespace, h.buf)
}

// Subject says which submission a record of the pipeline belongs to. Every internal record carries it.
type Subject struct {
	DocumentID string
	MessageID  string
	Revision   Revision
	// Attempt is the number of automatic retries before this run (0 first).
	Attempt int
	// Partition of the document record in the documents topic: with the version it is the record's position. For an
	// unusable key it is not the home partition of DocumentID.
	Partition int32
}

// Chunk is one piece of a version. Its text is the slice [Start:End] of the extracted UTF-8 text, in bytes.
type Chunk struct {
	Subject
	Index    int
	Count    int // chunks of the version
	Text     string
	Start    int
	End      int
	Title    string
	Source   string
	Metadata Metadata
	Heading  string // breadcrumb of headings, "" if none
	Page     int    // 1-based, 0 if the format has none
	Parent   Parent
}

// Parent is the larger slice [Start:End] of the extracted text around a chunk that is worth reading with it. The zero Parent is
// none.
type Parent struct {
	Start int
	End   int
	Text  string
}

// Vector is a chunk with its embedding.
type Vector struct {
	Chunk
	Values []float32
}
