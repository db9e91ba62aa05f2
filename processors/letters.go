package processors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// letter is what the dead-letter group has to know of a word. The document record is read by its position; it stays in
// the log longer than anything else of the version.
func (x *Indexer) letter(ctx context.Context, w ledger.Word) ([]stage.Output, error) {
	if w.Letter == ledger.LetterNone {
		return nil, nil
	}
	pos := x.Place.position(w.Subject)
	cmd := rag.Command{LetterID: pos.String(), Subject: w.Subject, At: w.At, Position: pos, Status: w.Status, Failure: w.Failure}
	if w.Letter == ledger.LetterClose {
		cmd.Kind = rag.CommandClose
		return []stage.Output{x.Topics.Commands.Record(cmd.LetterID, cmd)}, nil
	}
	original, lost, err := x.original(ctx, pos)
	if err != nil {
		return nil, err
	}
	if w.Letter == ledger.LetterSchedule {
		cmd.Kind, cmd.Due, cmd.Original = rag.CommandSchedule, w.Due, original
		return []stage.Output{x.Topics.Commands.Record(cmd.LetterID, cmd)}, nil
	}
	l := rag.Letter{ID: pos.String(), Subject: w.Subject, Position: pos, Original: original, Lost: lost, FirstFailed: w.FirstFailed, LastFailed: w.At}
	if w.Failure != nil {
		l.Failure = *w.Failure
	}
	return []stage.Output{x.letterOutput(l)}, nil
}

func (x *Indexer) letterOutput(l rag.Letter) stage.Output {
	fault.Hit(fault.BeforeLetter)
	key, value, headers := wire.LetterRecord(l)
	return stage.Output{Topic: x.Topics.DeadLetters.Name, Key: key, Value: value, Headers: headers}
}

// original reads a document record. lost says why it is not kept; what is left then is no more than its time.
func (x *Indexer) original(ctx context.Context, pos rag.Position) (raw rag.Raw, lost string, err error) {
	raw, err = x.Documents.ReadDocument(ctx, pos)
	switch {
	case errors.Is(err, ErrRecordGone):
		return rag.Raw{}, fmt.Sprintf("the record %s was no longer in the log when the letter was written", pos), nil
	case err != nil:
		return rag.Raw{}, "", stage.Outage(dependencyKafka, 0, fmt.Errorf("reading the document record %s: %w", pos, err))
	}
	if size := rawSize(raw); x.MaxLetterBytes > 0 && size > x.MaxLetterBytes-letterOverhead {
		return rag.Raw{Timestamp: raw.Timestamp}, fmt.Sprintf("the record %s is too large for a letter: it has %d bytes with its headers; the SHA-256 of its value is %x",
			pos, size, sha256.Sum256(raw.Value)), nil
	}
	if mutant.Active == mutant.LetterHoldsChunk {
		raw = rag.Raw{Key: raw.Key, Value: []byte("a chunk"), Timestamp: raw.Timestamp}
	}
	return raw, "", nil
}

// letterOverhead is what a letter, a command or a row adds to a document record at most, with what a producer keeps free.
const letterOverhead = 32 << 10

// rawSize counts a record as producers do, so that what fits here fits there.
func rawSize(r rag.Raw) int {
	const perHeader = 10
	n := len(r.Key) + len(r.Value)
	for _, h := range r.Headers {
		n += len(h.Key) + len(h.Value) + perHeader
	}
	return n
}

// retriable gives p back, or, where p leads to a retry whose document record is not there to be sent again, the verdict that
// the version dies of the same failure.
func (x *Indexer) retriable(ctx context.Context, p rag.Progress, row *ledger.DocumentRow, cause rag.Version) (rag.Progress, error) {
	if p.Kind != rag.ProgressVerdict || p.Status != rag.StatusRetrying || row != nil && cause <= row.Applied {
		return p, nil
	}
	next := ledger.ApplyProgress(row, p, cause, x.Now(), x.Settings)
	for _, w := range ledger.Say(p.DocumentID, next, cause) {
		if w.Letter != ledger.LetterSchedule {
			continue
		}
		_, lost, err := x.original(ctx, x.Place.position(w.Subject))
		if err != nil {
			return p, err
		}
		if lost != "" {
			p.Status = rag.StatusDead
		}
	}
	return p, nil
}
