package processors

import (
	"context"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// DeadLetters keeps the letters of versions that died, sends automatic retries when they are due, and decides replays
// and discards: it is the only writer of a letter's state.
type DeadLetters struct {
	Topics  Topics
	Place   Place
	Now     func() time.Time
	Metrics *Metrics
	// MaxWait is the longest time before an automatic retry, whatever the clocks of those say who have scheduled it.
	MaxWait time.Duration
}

// HandleLetter keeps a letter.
func (d *DeadLetters) HandleLetter(_ context.Context, m stage.Message[[]byte], row *ledger.LetterRow) (stage.Result[ledger.LetterRow], error) {
	l, err := wire.DecodeLetter(m.Record.Key, m.Record.Value, m.Record.Headers, m.Record.Timestamp)
	if err != nil {
		d.Metrics.ignored(StageDeadLetters) // somebody else wrote it: it is no version of ours
		return stage.Result[ledger.LetterRow]{}, nil
	}
	return stage.Result[ledger.LetterRow]{Row: ledger.ApplyLetter(row, l)}, nil
}

// HandleCommand schedules, closes, replays or discards.
func (d *DeadLetters) HandleCommand(_ context.Context, m stage.Message[rag.Command], row *ledger.LetterRow) (stage.Result[ledger.LetterRow], error) {
	if m.DecodeError != nil || m.Tombstone || m.Value.LetterID != m.Key {
		d.Metrics.ignored(StageDeadLetters)
		return stage.Result[ledger.LetterRow]{}, nil
	}
	cause, err := d.Place.version(m.Record.Offset)
	if err != nil {
		return stage.Result[ledger.LetterRow]{}, err
	}
	next, replay, refused := ledger.ApplyCommand(row, m.Value, m.Record.Topic, cause)
	if refused {
		d.Metrics.refused()
	}
	res := stage.Result[ledger.LetterRow]{Row: next}
	if replay != nil {
		res.Outputs = []stage.Output{d.Topics.Replays.Record(replay.DocumentID, *replay)}
	}
	return res, nil
}

// OnFailure passes a record by that nothing can be made of (its handler panicked, it kills processes, its row would be too
// large), so that other letters go on. A version that was to be tried again dies of it: nobody would hear of it any more.
// What else is lost is a person's wish, or a line in a list: the letter itself stands in its topic. Whatever else goes wrong
// may go well later: the record waits.
func (d *DeadLetters) OnFailure(_ context.Context, record stage.Record, class stage.Class, err error) ([]stage.Output, error) {
	if class != stage.ClassMessage {
		return nil, err
	}
	d.Metrics.passedBy(StageDeadLetters, stage.ReasonOf(err, "deadletters_error"))
	if record.Topic != d.Topics.Commands.Name {
		return nil, nil
	}
	c, derr := d.Topics.Commands.Codec.Decode(record.Value)
	if derr != nil || c.Kind != rag.CommandSchedule && c.Kind != rag.CommandDue {
		return nil, nil
	}
	f, status := failureOf(StageDeadLetters, class, err, "deadletters_error")
	return []stage.Output{d.Topics.verdict(c.Subject, d.Now(), status, f)}, nil
}

// Retries fires the automatic retries that letters have due. The timer only writes a record to the group's own input;
// the effect belongs to that record (contract rule 9).
func (d *DeadLetters) Retries() stage.Timer[ledger.LetterRow] {
	return stage.Timer[ledger.LetterRow]{
		Next:     ledger.NextDue,
		MaxDelay: func(*ledger.LetterRow) time.Duration { return d.MaxWait },
		Fire: func(_ context.Context, id string, row *ledger.LetterRow, valid func() bool) ([]stage.Output, error) {
			if !valid() {
				return nil, nil
			}
			if mutant.Active == mutant.TimerEffectUnheld {
				return []stage.Output{d.Topics.Replays.Record(row.Subject.DocumentID, rag.Replay{Subject: row.Subject, Position: row.Position, Original: row.Original})}, nil
			}
			return []stage.Output{d.Topics.Commands.Record(id, rag.Command{Kind: rag.CommandDue, LetterID: id, Subject: row.Subject, At: d.Now(), Position: row.Position})}, nil
		},
	}
}
