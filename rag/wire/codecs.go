package wire

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
	"github.com/waymarkhq/waymark/stage"
)

// format of every record and row of this release.
const format = 1

// CachedVector is the embedder's row of one text: its embedding, keyed by rag.CacheKey.
type CachedVector struct {
	Values []float32
}

// Codecs are the codecs of all internal records and rows. They are safe for concurrent use.
//
// Decode gives the value that was encoded, except that empty slices and maps come back as nil, times in UTC, and bytes that are not
// UTF-8 in sentences for people (messages of failures, warnings, reasons of a discard or a loss) as U+FFFD. The Key, Value and header
// values of a rag.Raw are exact: null and empty stay what they are.
//
// Encode refuses, with the reason invalid_field, what no reader could take: unknown kinds and statuses, negative counts, ids
// and texts that are not UTF-8. Decode refuses the same; see package codecs for the errors of both.
type Codecs struct {
	Chunk    stage.Codec[rag.Chunk]
	Vector   stage.Codec[rag.Vector]
	Progress stage.Codec[rag.Progress]
	Event    stage.Codec[rag.Event]
	Command  stage.Codec[rag.Command]
	Replay   stage.Codec[rag.Replay]

	ChunkerRow   stage.Codec[ledger.ChunkerRow]
	DocumentRow  stage.Codec[ledger.DocumentRow]
	TrackerRow   stage.Codec[ledger.TrackerRow]
	LetterRow    stage.Codec[ledger.LetterRow]
	CachedVector stage.Codec[CachedVector]
}

// NewCodecs makes the codecs; now tells the write time of what they encode.
func NewCodecs(now func() time.Time) *Codecs {
	return &Codecs{
		Chunk:    newCodec(now, "chunk", chunkTo, chunkFrom),
		Vector:   newCodec(now, "vector", vectorTo, vectorFrom),
		Progress: newCodec(now, "progress", progressTo, progressFrom),
		Event:    newCodec(now, "event", eventTo, eventFrom),
		Command:  newCodec(now, "command", commandTo, commandFrom),
		Replay:   newCodec(now, "replay", replayTo, replayFrom),

		ChunkerRow:   newCodec(now, "chunker row", chunkerRowTo, chunkerRowFrom),
		DocumentRow:  newCodec(now, "document row", documentRowTo, documentRowFrom),
		TrackerRow:   newCodec(now, "tracker row", trackerRowTo, trackerRowFrom),
		LetterRow:    newCodec(now, "letter row", letterRowTo, letterRowFrom),
		CachedVector: newCodec(now, "cached vector", cachedVectorTo, cachedVectorFrom),
	}
}

// message is a generated message by its pointer.
type message[M any] interface {
	*M
	proto.Message
}

func newCodec[T, M any, P message[M]](now func() time.Time, noun string, to func(*check, *T) P, from func(*check, P) T) stage.Codec[T] {
	appendTo := func(b []byte, v T) ([]byte, error) {
		var c check
		m := to(&c, &v)
		if c.err != nil {
			return nil, stage.Reject(rag.ReasonInvalidField, "%s: %w", noun, c.err)
		}
		// One allocation of the right size; the size is computed once.
		b = slices.Grow(b, proto.Size(m))
		b, err := proto.MarshalOptions{Deterministic: true, UseCachedSize: true}.MarshalAppend(b, m)
		if err != nil {
			return nil, stage.Reject(rag.ReasonInvalidField, "%s: %w", noun, err)
		}
		return b, nil
	}
	unmarshal := func(b []byte) (T, error) {
		var zero T
		m := P(new(M))
		if err := proto.Unmarshal(b, m); err != nil {
			return zero, fmt.Errorf("%s: %w", noun, err)
		}
		var c check
		v := from(&c, m)
		if c.err != nil {
			return zero, fmt.Errorf("%s: %w", noun, c.err)
		}
		return v, nil
	}
	return codecs.NewAppend(format, now, appendTo, unmarshal)
}

func cachedVectorTo(_ *check, v *CachedVector) *wirepb.CachedVector {
	return &wirepb.CachedVector{Values: v.Values}
}

func cachedVectorFrom(_ *check, m *wirepb.CachedVector) CachedVector {
	return CachedVector{Values: m.Values}
}
