package api

import (
	"context"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// TimeParams choose dead letters by their last failure.
type TimeParams struct {
	Since time.Time `query:"since" doc:"Only letters whose last failure is not before this time."`
	Until time.Time `query:"until" doc:"Only letters whose last failure is before this time."`
}

func (t TimeParams) check() *Problem {
	if emptyRange(t.Since, t.Until) {
		return problem(kindInvalidParameter, "it is not after since").at("query", "until")
	}
	return nil
}

func emptyRange(since, until time.Time) bool {
	return !since.IsZero() && !until.IsZero() && !since.Before(until)
}

// LetterFilter chooses waiting dead letters. At least one field besides cursor must be given.
type LetterFilter struct {
	Stage      string `json:"stage,omitempty"`
	Reason     string `json:"reason,omitempty"`
	DocumentID string `json:"document_id,omitempty"`
	Since      string `json:"since,omitempty" format:"date-time" doc:"Only letters whose last failure is not before this time."`
	Until      string `json:"until,omitempty" format:"date-time" doc:"Only letters whose last failure is before this time."`
	All        bool   `json:"all,omitempty" doc:"Every waiting letter; needed where no other field is given."`
	Cursor     string `json:"cursor,omitempty" doc:"next_cursor of the answer before."`
}

// letterFilterFields are the names of the filter's fields.
var letterFilterFields = []string{"stage", "reason", "document_id", "since", "until", "all", "cursor"}

// query asks for the waiting letters that the filter chooses.
func (f LetterFilter) query() (LetterQuery, *Problem) {
	q := LetterQuery{State: rag.LetterWaiting, Stage: f.Stage, Reason: f.Reason, DocumentID: f.DocumentID, Limit: MaxPage}
	if f == (LetterFilter{Cursor: f.Cursor}) {
		return q, problem(kindInvalidField, "give stage, reason, document_id, since or until, or all: true").at("body", "all")
	}
	var p *Problem
	if q.Since, p = fieldTime("since", f.Since); p != nil {
		return q, p
	}
	if q.Until, p = fieldTime("until", f.Until); p != nil {
		return q, p
	}
	if emptyRange(q.Since, q.Until) {
		return q, problem(kindInvalidField, "it is not after since").at("body", "until")
	}
	if q.After, p = decodeCursor(f.Cursor); p != nil {
		return q, problem(kindInvalidField, "it is not a next_cursor of an answer").at("body", "cursor")
	}
	return q, nil
}

func fieldTime(name, text string) (time.Time, *Problem) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, problem(kindInvalidField, "it is not a time as of RFC 3339, such as 2026-01-02T15:04:05Z").at("body", name)
	}
	return t, nil
}

// eachLetter calls do for every letter that the query chooses, at most MaxReplays of them; next is where to go on, the zero
// Mark if there are no more.
func (s *Server) eachLetter(ctx context.Context, q LetterQuery, do func(*ledger.LetterRow) *Problem) (next Mark, _ *Problem) {
	for n := 0; ; {
		rows, err := s.deps.LetterLister.List(ctx, q)
		if err != nil {
			return Mark{}, s.readProblem("listing dead letters", err)
		}
		for _, row := range rows {
			if n == MaxReplays {
				return q.After, nil
			}
			if p := do(row); p != nil {
				return Mark{}, p
			}
			n++
			q.After = letterMark(row)
		}
		if len(rows) < q.Limit {
			return Mark{}, nil
		}
	}
}

// sentBefore tells with a problem how many commands are kept all the same.
func sentBefore(p *Problem, n int) *Problem {
	p.Detail = printable(strconv.Itoa(n)+" were sent before: "+p.Detail, 512)
	return p
}

// cursorOf is the cursor of a mark, "" for the zero one.
func cursorOf(m Mark) string {
	if m == (Mark{}) {
		return ""
	}
	return encodeCursor(m)
}

// ReplayBody selects the dead letters to replay.
type ReplayBody struct{ LetterFilter }

// ReplayResult counts what a replay by filter did.
type ReplayResult struct {
	Replayed   int    `json:"replayed" doc:"Commands that were sent and kept."`
	Skipped    int    `json:"skipped" doc:"Letters whose bytes could not be kept."`
	More       bool   `json:"more" doc:"Whether more letters may match: ask again with next_cursor."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Give it as cursor to go on; letters that were replayed already are not met again."`
}

type replayOutput struct{ Body ReplayResult }

// replayLetters replays every waiting letter that matches, up to MaxReplays.
func (s *Server) replayLetters(ctx context.Context, _ *struct{}) (*replayOutput, error) {
	var body ReplayBody
	if p := s.readJSON(ctx, &body, letterFilterFields...); p != nil {
		return nil, p
	}
	q, p := body.query()
	if p != nil {
		return nil, p
	}
	var r ReplayResult
	next, p := s.eachLetter(ctx, q, func(row *ledger.LetterRow) *Problem {
		if row.State != rag.LetterWaiting || row.Lost != "" {
			r.Skipped++
			return nil
		}
		if p := s.replay(ctx, row); p != nil {
			return sentBefore(p, r.Replayed)
		}
		r.Replayed++
		return nil
	})
	if p != nil {
		return nil, p
	}
	r.NextCursor = cursorOf(next)
	r.More = r.NextCursor != ""
	return &replayOutput{Body: r}, nil
}

// DiscardBody selects the dead letters to discard.
type DiscardBody struct {
	LetterFilter
	Why string `json:"why,omitempty" maxLength:"512" doc:"Why they are given up; kept with the letters."`
}

// DiscardResult counts what a discard by filter did.
type DiscardResult struct {
	Discarded  int    `json:"discarded" doc:"Commands that were sent and kept."`
	More       bool   `json:"more" doc:"Whether more letters may match: ask again with next_cursor."`
	NextCursor string `json:"next_cursor,omitempty" doc:"Give it as cursor to go on."`
}

type discardOutput struct{ Body DiscardResult }

// discardLetters gives every waiting letter up that matches, up to MaxReplays.
func (s *Server) discardLetters(ctx context.Context, _ *struct{}) (*discardOutput, error) {
	var body DiscardBody
	if p := s.readJSON(ctx, &body, append([]string{"why"}, letterFilterFields...)...); p != nil {
		return nil, p
	}
	q, p := body.query()
	if p == nil && utf8.RuneCountInString(body.Why) > maxWhy {
		p = problem(kindInvalidField, "it is above the limit of %d characters", maxWhy).at("body", "why")
	}
	if p != nil {
		return nil, p
	}
	var r DiscardResult
	next, p := s.eachLetter(ctx, q, func(row *ledger.LetterRow) *Problem {
		if row.State != rag.LetterWaiting {
			return nil
		}
		if p := s.command(ctx, rag.CommandDiscard, row, body.Why); p != nil {
			return sentBefore(p, r.Discarded)
		}
		r.Discarded++
		return nil
	})
	if p != nil {
		return nil, p
	}
	r.NextCursor = cursorOf(next)
	r.More = r.NextCursor != ""
	return &discardOutput{Body: r}, nil
}

// maxWhy bounds an operator's words, in characters.
const maxWhy = 512
