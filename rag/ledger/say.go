package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

// LetterWord says what has to be told to the dead-letter group.
type LetterWord int

// What a Word asks of the dead-letter group.
const (
	LetterNone     LetterWord = iota
	LetterDead                // write the letter, with the document record
	LetterSchedule            // the command schedule: the attempt in Word.Subject goes out at Word.Due
	LetterClose               // the command close: nothing is to come of the letter any more
)

func (l LetterWord) String() string {
	switch l {
	case LetterDead:
		return "dead"
	case LetterSchedule:
		return "schedule"
	case LetterClose:
		return "close"
	}
	return "none"
}

// Word is one thing that a document row says to the outside: an event, and where Letter says so a letter or a command.
type Word struct {
	Subject     rag.Subject // Attempt: of a retry the one to come, else the highest that was scheduled
	Status      rag.Status
	Chunks      int // 0 if not known
	Failure     *rag.Failure
	Letter      LetterWord
	Due         time.Time // LetterSchedule
	FirstFailed time.Time
	At          time.Time
}

// Say lists what the progress record at cause made true, as the row has it, in an order that does not change: lower
// revisions first. It is said once the row is acknowledged, and again on every redelivery of the record.
func Say(documentID string, row *DocumentRow, cause rag.Version) []Word {
	if row == nil {
		return nil
	}
	var words []Word
	for id, f := range row.Finals {
		if f.Cause != cause {
			continue
		}
		w := Word{Subject: rag.Subject{DocumentID: documentID, MessageID: id, Revision: f.Revision, Attempt: f.Attempt, Partition: f.Partition},
			Status: f.Status, Chunks: f.Count, Failure: f.Failure, FirstFailed: f.FirstFailed, At: f.At}
		if f.Status == rag.StatusIndexed {
			embedded := w
			embedded.Status = rag.StatusEmbedded
			words = append(words, embedded)
		}
		switch {
		case f.Status == rag.StatusDead:
			w.Letter = LetterDead
		case f.Revision.Generation > 0 || f.Attempt > 0: // an earlier end or a schedule has opened it
			w.Letter = LetterClose
		}
		words = append(words, w)
	}
	for rev, w := range row.Work {
		if w.RetryCause == cause {
			words = append(words, Word{Subject: rag.Subject{DocumentID: documentID, MessageID: w.MessageID, Revision: rev, Attempt: w.Attempt, Partition: w.Partition},
				Status: rag.StatusRetrying, Chunks: w.Count, Failure: w.Failure, Letter: LetterSchedule, Due: w.RetryDue,
				FirstFailed: w.FirstFailed, At: w.At})
		}
	}
	slices.SortFunc(words, func(a, b Word) int {
		return cmp.Or(compareRevisions(a.Subject.Revision, b.Subject.Revision), cmp.Compare(a.Subject.MessageID, b.Subject.MessageID),
			cmp.Compare(a.Status.Rank(), b.Status.Rank()))
	})
	return words
}

// Current is the latest version of a document, for people.
type Current struct {
	Revision  rag.Revision
	Status    rag.Status
	MessageID string
	Chunks    int // 0 if not known
	Failure   *rag.Failure
	Warnings  []string
	At        time.Time
	Attempt   int
}

// Latest is the latest version that the row knows: in work it is chunked or retrying, then its final. false: none yet.
// What the store serves is in row.Served.
func Latest(row *DocumentRow) (Current, bool) {
	var (
		c     Current
		found bool
	)
	if row == nil {
		return c, false
	}
	for id, f := range row.Finals {
		if !found || c.Revision.Less(f.Revision) || c.Revision == f.Revision && id < c.MessageID {
			c, found = Current{Revision: f.Revision, Status: f.Status, MessageID: id, Chunks: f.Count, Failure: f.Failure,
				Warnings: f.Warnings, At: f.At, Attempt: f.Attempt}, true
		}
	}
	for rev, w := range row.Work {
		if found && !c.Revision.Less(rev) {
			continue
		}
		c, found = Current{Revision: rev, Status: rag.StatusChunked, MessageID: w.MessageID, Chunks: w.Count, Warnings: w.Warnings,
			At: w.At, Attempt: w.Attempt}, true
		if w.RetryCause != 0 { // for the tracker too a retry lasts until the final
			c.Status, c.Failure = rag.StatusRetrying, w.Failure
		}
	}
	return c, found
}
