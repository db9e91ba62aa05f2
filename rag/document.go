package rag

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// Limits of the envelope of a document; contract and interface name them.
const (
	MaxDocumentIDBytes = 512
	MaxMessageIDBytes  = 256
	MaxMetadata        = 64
	MaxMetadataBytes   = 1 << 10
)

// Position of a record in Kafka. Epoch is the configured epoch of the cluster.
type Position struct {
	Topic     string
	Epoch     int
	Partition int32
	Offset    int64
}

// String is the foreign form: the id that a record without a usable one of its own gets, and the id of its letter.
func (p Position) String() string {
	return fmt.Sprintf("%s@%d-%d-%d", p.Topic, p.Epoch, p.Partition, p.Offset)
}

// Header of a Kafka record, byte for byte and in order.
type Header struct {
	Key   []byte
	Value []byte
}

// Raw is a Kafka record as it stands in the log: a nil Key or Value is a null one.
type Raw struct {
	Key       []byte
	Value     []byte
	Headers   []Header
	Timestamp time.Time
}

// Hash is a SHA-256; the zero Hash means "none".
type Hash [sha256.Size]byte

// Document is one submission, decoded from its record.
type Document struct {
	ID          string
	MessageID   string
	Delete      bool   // a tombstone: the document is to go
	Content     []byte // the document's own bytes; UTF-8 text when it came as "text"
	Blob        *Blob  // where the content is kept instead; Content is nil then
	ContentType string // as declared; "" when nobody said. "text" submissions have "text/plain; charset=utf-8"
	Title       string
	Source      string
	Metadata    Metadata
}

// Metadata are scalars kept as "key=value", sorted, without doubles of a key.
type Metadata []string

// NewMetadata sorts pairs into the canonical order.
func NewMetadata(pairs map[string]string) Metadata {
	if len(pairs) == 0 {
		return nil
	}
	m := make(Metadata, 0, len(pairs))
	for k, v := range pairs {
		m = append(m, k+"="+v)
	}
	sort.Strings(m)
	return m
}

// WithDefault is the metadata with a value for key where the sender gave none. An empty value, or metadata that are full, add nothing.
func (m Metadata) WithDefault(key, value string) Metadata {
	has := slices.ContainsFunc(m, func(pair string) bool { return strings.HasPrefix(pair, key+"=") })
	if value == "" || has || len(m) >= MaxMetadata {
		return m
	}
	more := append(slices.Clone(m), key+"="+value)
	sort.Strings(more)
	return more
}

// SubmissionHash names what was submitted: put or delete, content, type, title, source and metadata. The same message
// id with another submission hash is a reuse of the id. It is the same whether the content travels in the record or not.
func (d *Document) SubmissionHash() Hash {
	h := newHasher("submission")
	content, large := d.Content, d.Blob != nil
	switch {
	case large:
		content = d.Blob.SHA256[:]
	case len(content) > InlineBytes:
		sum := sha256.Sum256(content)
		content, large = sum[:], true
	}
	switch {
	case d.Delete:
		h.add([]byte("delete"))
	case large:
		h.add([]byte("put by hash"))
	default:
		h.add([]byte("put"))
	}
	h.add(content)
	h.add([]byte(d.ContentType))
	h.add([]byte(d.Title))
	h.add([]byte(d.Source))
	for _, m := range d.Metadata {
		h.add([]byte(m))
	}
	return h.sum()
}

// ContentIdentity tells whether a submission would give the very chunks that are served now. settings names splitter
// settings and version, parser version and embedding model.
func ContentIdentity(submission Hash, settings string) Hash {
	h := newHasher("content")
	h.add(submission[:])
	h.add([]byte(settings))
	return h.sum()
}

// CacheKey names an embedding: the same model, settings and text give the same vector.
func CacheKey(model, settings, text string) Hash {
	h := newHasher("embedding")
	h.add([]byte(model))
	h.add([]byte(settings))
	h.add([]byte(text))
	return h.sum()
}

// hasher writes length-prefixed fields, so that no two lists of fields give the same bytes.
type hasher struct {
	buf []byte
}

func newHasher(domain string) *hasher {
	h := &hasher{}
	h.add([]byte(domain))
	return h
}

func (h *hasher) add(b []byte) {
	h.buf = binary.AppendUvarint(h.buf, uint64(len(b)))
	h.buf = append(h.buf, b...)
}

func (h *hasher) sum() Hash { return sha256.Sum256(h.buf) }
