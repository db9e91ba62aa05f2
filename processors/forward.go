package processors

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// OriginHeader marks a record that was forwarded to its home partition with the position where it stood, as
// rag.Position.String. It is written by Waymark alone.
const OriginHeader = "waymark-origin"

// stray: the record does not stand in the partition of its key.
func (c *Chunker) stray(r stage.Record, s submission) bool {
	return s.rekey || !s.noKey && c.Place.Home(r.Key) != r.Partition
}

// forward sends a stray record to its home, once, byte for byte; there it gets its version. A message id that it only has
// from its position stays the one of the first position.
func (c *Chunker) forward(r stage.Record, s submission) stage.Result[ledger.ChunkerRow] {
	pos := c.Place.of(r)
	out := stage.Output{Topic: c.Topics.Documents.Name, Key: r.Key, Value: r.Value}
	if s.rekey {
		out.Key = []byte(s.doc.ID)
	}
	out.Headers = append(out.Headers, r.Headers...)
	if s.doc.MessageID == pos.String() {
		out.Headers = append(out.Headers, stage.Header{Key: []byte("message-id"), Value: []byte(s.doc.MessageID)})
	}
	out.Headers = append(out.Headers, stage.Header{Key: []byte(OriginHeader), Value: []byte(pos.String())})
	c.Metrics.forwarded()
	return stage.Result[ledger.ChunkerRow]{Outputs: []stage.Output{out}}
}

// notForwarded is why a stray record dies that the marks of a forward make too large. It dies under the id of its
// position: its offset is none of its document's partition, and must neither stand in the document's rows nor be
// compared with a version there.
var notForwarded = &rag.Failure{Stage: StageChunker, Class: rag.ClassMessage, Reason: rag.ReasonTooLarge,
	Message: "the record stands on another partition than its key's, and is too large to be forwarded"}

// foreign is the subject under which a record dies that has no place among its document's versions.
func (c *Chunker) foreign(r stage.Record, s rag.Subject) rag.Subject {
	s.DocumentID = c.Place.of(r).String()
	s.MessageID = s.DocumentID
	return s
}

// origin is where a forwarded record stood first: the last mark counts, since a forward adds its own behind all others. A
// mark of another epoch or topic, as a mirrored record brings it along, says nothing about this log.
func (p Place) origin(r stage.Record) (from rag.Position, ok bool) {
	for i := len(r.Headers) - 1; i >= 0; i-- {
		if string(r.Headers[i].Key) == OriginHeader {
			return p.parse(string(r.Headers[i].Value))
		}
	}
	return rag.Position{}, false
}

// parse reads a position of the documents topic in the current epoch.
func (p Place) parse(text string) (rag.Position, bool) {
	rest, ok := strings.CutPrefix(text, fmt.Sprintf("%s@%d-", p.Documents, p.Epoch))
	if !ok {
		return rag.Position{}, false
	}
	partition, offset, ok := strings.Cut(rest, "-")
	n, err := strconv.ParseInt(partition, 10, 32)
	if !ok || err != nil {
		return rag.Position{}, false
	}
	o, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || o < 0 {
		return rag.Position{}, false
	}
	return rag.Position{Topic: p.Documents, Epoch: p.Epoch, Partition: int32(n), Offset: o}, true
}

// isLost: nothing of a document record is there. One of its own has at least a timestamp.
func isLost(r rag.Raw) bool {
	return r.Key == nil && r.Value == nil && len(r.Headers) == 0 && r.Timestamp.IsZero()
}
