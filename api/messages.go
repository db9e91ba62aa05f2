package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waymarkhq/waymark/rag/ledger"
)

type messageOutput struct{ Body MessageStatus }

// getMessage answers what became of a submission. One that was accepted a moment ago may not be visible yet: it waits a
// short time for it.
func (s *Server) getMessage(ctx context.Context, in *struct {
	MessageID  string `path:"message_id" doc:"Everything after /v1/messages/, percent-decoded once."`
	DocumentID string `query:"document_id" doc:"The document that it was submitted for; needed where several documents used one message id."`
}) (*messageOutput, error) {
	if p := checkMessageID("path", "message_id", in.MessageID); p != nil {
		return nil, p
	}
	if in.DocumentID != "" {
		if p := checkDocumentID("query", "document_id", in.DocumentID); p != nil {
			return nil, p
		}
	}
	rows, p := s.messageRows(ctx, in.MessageID, in.DocumentID)
	if p == nil && len(rows) == 0 {
		if p = s.waiters.enter(ctx, 1); p != nil {
			return nil, p
		}
		defer s.waiters.leave(1)
		s.poll(ctx, s.cfg.MessageWait, func() bool {
			rows, p = s.messageRows(ctx, in.MessageID, in.DocumentID)
			return p != nil || len(rows) > 0
		})
	}
	switch {
	case p != nil:
		return nil, p
	case len(rows) == 0:
		return nil, problem(kindNotVisibleYet, "no submission %s is visible; one accepted a moment ago appears within seconds", in.MessageID).
			at("path", "message_id").after(visibleWithin)
	case len(rows) > 1:
		return nil, ambiguous(in.MessageID, rows)
	}
	return &messageOutput{Body: messageStatus(rows[0])}, nil
}

func (s *Server) messageRows(ctx context.Context, messageID, documentID string) ([]*ledger.TrackerRow, *Problem) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.ReadTimeout)
	defer cancel()
	rows, err := s.deps.Messages.Get(ctx, messageID, documentID)
	if err != nil {
		return nil, s.readProblem("reading the message", err)
	}
	return rows, nil
}

// maxNamed bounds the documents that an ambiguous message id names.
const maxNamed = 100

func ambiguous(messageID string, rows []*ledger.TrackerRow) *Problem {
	p := problem(kindAmbiguousMessageID, "%d documents used the message id %s: name one with document_id", len(rows), messageID).
		at("query", "document_id")
	for _, r := range rows {
		p.Documents = append(p.Documents, r.DocumentID)
	}
	slices.Sort(p.Documents)
	p.Documents = p.Documents[:min(len(p.Documents), maxNamed)]
	return p
}

// Least and longest pause between two looks at the views.
const (
	leastPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// poll looks again and again until look is true, the time is over, the peer is gone or the server drains. The pause is
// at least ten times as long as a look took, so that waiting costs a tenth of a core at most.
func (s *Server) poll(ctx context.Context, limit time.Duration, look func() bool) {
	end := time.NewTimer(limit)
	defer end.Stop()
	pause := leastPause
	for {
		select {
		case <-end.C:
			look() // what arrived in the last pause
			return
		case <-time.After(pause):
		case <-ctx.Done():
			return
		case <-exchangeOf(ctx).gone:
			return
		case <-s.draining:
			return
		}
		before := time.Now()
		if look() {
			return
		}
		pause = min(max(10*time.Since(before), leastPause), longestPause)
	}
}

// WaitBody asks for the outcome of many submissions.
type WaitBody struct {
	Messages       []WaitFor `json:"messages" minItems:"1" maxItems:"10000"`
	TimeoutSeconds *float64  `json:"timeout_seconds,omitempty" minimum:"0" maximum:"30" doc:"How long to wait for the last of them. Default 10."`
}

// WaitFor names one submission.
type WaitFor struct {
	MessageID  string `json:"message_id" minLength:"1" maxLength:"256"`
	DocumentID string `json:"document_id,omitempty" maxLength:"512" doc:"Makes the look-up cheap and unambiguous: give it where you know it."`
}

// WaitResult tells which submissions have ended, and how many have not.
type WaitResult struct {
	Final    []FinalMessage `json:"final" nullable:"false" doc:"Those that have ended, in the order of the request. Do not ask for them again."`
	Pending  int            `json:"pending" doc:"How many have not ended; ask for these again."`
	Statuses map[string]int `json:"statuses" nullable:"false" doc:"How many have each status; not_visible for those of which nothing is known yet."`
}

// FinalMessage is the outcome of one submission, without its timeline.
type FinalMessage struct {
	MessageID  string   `json:"message_id"`
	DocumentID string   `json:"document_id"`
	Status     string   `json:"status" enum:"indexed,unchanged,superseded,deleted,dead"`
	Chunks     int      `json:"chunks"`
	Error      *Failure `json:"error,omitempty"`
}

type waitOutput struct{ Body WaitResult }

const defaultWait = 10 * time.Second

// waitMessages answers when all submissions have ended, or when the time is over.
func (s *Server) waitMessages(ctx context.Context, _ *struct{}) (*waitOutput, error) {
	var body WaitBody
	if p := s.readJSON(ctx, &body, "messages", "timeout_seconds"); p != nil {
		return nil, p
	}
	limit, p := body.check()
	if p != nil {
		return nil, p
	}
	if p := s.waiters.enter(ctx, 1); p != nil {
		return nil, p
	}
	defer s.waiters.leave(1)
	w := &wait{s: s, asked: body.Messages, final: make([]*FinalMessage, len(body.Messages))}
	if !w.look(ctx) && limit > 0 {
		s.poll(ctx, limit, func() bool { return w.look(ctx) })
	}
	if w.fault != nil {
		return nil, w.fault
	}
	return &waitOutput{Body: w.result()}, nil
}

func (b WaitBody) check() (time.Duration, *Problem) {
	limit := defaultWait
	if t := b.TimeoutSeconds; t != nil {
		limit = time.Duration(*t * float64(time.Second))
		if *t < 0 || *t > MaxWait.Seconds() {
			return 0, problem(kindInvalidField, "it is not between 0 and %g", MaxWait.Seconds()).at("body", "timeout_seconds")
		}
	}
	if n := len(b.Messages); n == 0 || n > MaxWaitIDs {
		return 0, problem(kindInvalidField, "it has %d entries, not 1 to %d", n, MaxWaitIDs).at("body", "messages").over("wait_messages", MaxWaitIDs)
	}
	for _, m := range b.Messages {
		if p := checkMessageID("body", "messages.message_id", m.MessageID); p != nil {
			return 0, p
		}
		if m.DocumentID != "" {
			if p := checkDocumentID("body", "messages.document_id", m.DocumentID); p != nil {
				return 0, p
			}
		}
	}
	return limit, nil
}

// wait is one POST /v1/messages:wait in work. A submission that has ended is not looked at again.
type wait struct {
	s        *Server
	asked    []WaitFor
	final    []*FinalMessage
	statuses map[string]int
	pending  int
	fault    *Problem
}

// look reports whether nothing is left to wait for.
func (w *wait) look(ctx context.Context) bool {
	w.pending, w.statuses = 0, map[string]int{}
	for i, m := range w.asked {
		if w.final[i] != nil {
			w.statuses[w.final[i].Status]++
			continue
		}
		rows, p := w.s.messageRows(ctx, m.MessageID, m.DocumentID)
		switch {
		case p != nil:
			w.fault = p
			return true
		case len(rows) == 0:
			w.statuses["not_visible"]++
			w.pending++
		case len(rows) > 1:
			w.fault = ambiguous(m.MessageID, rows)
			return true
		case rows[0].Status.Final():
			r := rows[0]
			w.final[i] = &FinalMessage{MessageID: r.MessageID, DocumentID: r.DocumentID, Status: string(r.Status), Chunks: r.Chunks, Error: failureOf(r.Failure)}
			w.statuses[string(r.Status)]++
		default:
			w.statuses[string(cmp.Or(rows[0].Status, "accepted"))]++
			w.pending++
		}
	}
	return w.pending == 0
}

func (w *wait) result() WaitResult {
	r := WaitResult{Final: []FinalMessage{}, Pending: w.pending, Statuses: w.statuses}
	for _, f := range w.final {
		if f != nil {
			r.Final = append(r.Final, *f)
		}
	}
	return r
}

const messagesTag = "Messages"

func (s *Server) messageCalls(api huma.API) {
	register(api, call{
		id: "get-message", method: http.MethodGet, path: "/v1/messages/{message_id}", tag: messagesTag, status: http.StatusOK,
		summary: "What became of a submission", scope: ScopeRead, slow: true,
		problems:    []kind{kindNotVisibleYet, kindAmbiguousMessageID, kindUnavailable, kindOverloaded},
		description: "The status and the timeline of one submission. It waits up to 2 s for an id that was accepted a moment ago.",
	}, s.getMessage)
	register(api, call{
		id: "wait-messages", method: http.MethodPost, path: "/v1/messages:wait", tag: messagesTag, status: http.StatusOK,
		summary: "Wait until many submissions have ended", scope: ScopeRead, slow: true, body: map[string]any{"application/json": WaitBody{}},
		problems: []kind{kindMalformedJSON, kindInvalidField, kindAmbiguousMessageID, kindUnavailable},
		description: lines(
			"Answers as soon as every submission has a final status, and otherwise when the time is over: then with those that have ended. Ask again for the others, without these.",
			"",
			"A short timeout gives a progress bar, 0 a snapshot. While the process shuts down it answers at once."),
	}, s.waitMessages)
}
