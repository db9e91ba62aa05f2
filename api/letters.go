package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
)

// LetterParams choose dead letters.
type LetterParams struct {
	State      string `query:"state" enum:"waiting,scheduled,replaying,resolved,superseded,discarded"`
	Stage      string `query:"stage" doc:"chunker, embedder or indexer."`
	Reason     string `query:"reason" doc:"The stable reason."`
	DocumentID string `query:"document_id"`
	TimeParams
}

type letterPageOutput struct{ Body DeadLetterPage }

// listLetters answers a page of dead letters.
func (s *Server) listLetters(ctx context.Context, in *struct {
	LetterParams
	PageParams
}) (*letterPageOutput, error) {
	after, p := decodeCursor(in.Cursor)
	if p == nil {
		p = in.check()
	}
	if p != nil {
		return nil, p
	}
	rows, err := s.deps.LetterLister.List(ctx, LetterQuery{
		State: rag.LetterState(in.State), Stage: in.Stage, Reason: in.Reason, DocumentID: in.DocumentID,
		Since: in.Since, Until: in.Until, After: after, Limit: in.Limit,
	})
	if err != nil {
		return nil, s.readProblem("listing dead letters", err)
	}
	page := DeadLetterPage{DeadLetters: make([]DeadLetter, 0, len(rows))}
	for _, r := range rows {
		page.DeadLetters = append(page.DeadLetters, deadLetter(r))
	}
	if len(rows) == in.Limit {
		page.NextCursor = encodeCursor(letterMark(rows[len(rows)-1]))
	}
	return &letterPageOutput{Body: page}, nil
}

func letterMark(r *ledger.LetterRow) Mark { return Mark{At: r.LastFailed, ID: r.ID} }

// LetterPath names one dead letter.
type LetterPath struct {
	ID string `path:"id" doc:"<topic>@<epoch>-<partition>-<offset> of the document record."`
}

type letterOutput struct{ Body DeadLetter }

// getLetter answers one dead letter.
func (s *Server) getLetter(ctx context.Context, in *LetterPath) (*letterOutput, error) {
	row, p := s.letter(ctx, in.ID)
	if p != nil {
		return nil, p
	}
	return &letterOutput{Body: deadLetter(row)}, nil
}

// letter reads a letter that must be there.
func (s *Server) letter(ctx context.Context, id string) (*ledger.LetterRow, *Problem) {
	row, err := s.deps.Letters.Get(ctx, id)
	if err != nil {
		return nil, s.readProblem("reading the dead letter", err)
	}
	if row == nil {
		return nil, noLetter(id)
	}
	return row, nil
}

func noLetter(id string) *Problem {
	return problem(kindNotFound, "there is no dead letter %s", id).at("path", "id")
}

type payloadOutput struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Declared    string `header:"Original-Content-Type" doc:"The content-type header of the record, where it has one."`
	Null        string `header:"Original-Null" doc:"true where the record's value is null: it was a deletion."`
	Body        func(huma.Context)
}

// getPayload answers the original bytes. They come from outside: a browser must save them, never show them.
func (s *Server) getPayload(ctx context.Context, in *LetterPath) (*payloadOutput, error) {
	payload, err := s.deps.Payloads.Payload(ctx, in.ID)
	if err != nil {
		return nil, s.readProblem("reading the payload", err)
	}
	if payload == nil {
		return nil, noLetter(in.ID)
	}
	if payload.Lost != "" {
		return nil, problem(kindPayloadLost, "%s", payload.Lost).at("path", "id")
	}
	out := &payloadOutput{ContentType: "application/octet-stream", Disposition: `attachment; filename="payload"`}
	for _, h := range payload.Original.Headers {
		if string(h.Key) == wire.HeaderContentType && out.Declared == "" {
			out.Declared = printable(string(h.Value), 256)
		}
	}
	if ref, contentType := wire.ReferenceOf(payload.Original); ref != nil {
		out.Declared = printable(contentType, 256)
		content, p := s.openBlob(ctx, *ref)
		if p != nil {
			return nil, p
		}
		out.Body = s.stream(content, ref.Size)
		return out, nil
	}
	if payload.Original.Value == nil {
		out.Null = strconv.FormatBool(true)
	}
	out.Body = s.stream(io.NopCloser(bytes.NewReader(payload.Original.Value)), int64(len(payload.Original.Value)))
	return out, nil
}

// openBlob opens content that travelled by reference.
func (s *Server) openBlob(ctx context.Context, b rag.Blob) (io.ReadCloser, *Problem) {
	if s.deps.Blobs == nil {
		return nil, problem(kindPayloadLost, "the content is in a blob store, and this process has none: set blobs.url").at("path", "id")
	}
	r, err := s.deps.Blobs.Open(ctx, b)
	switch {
	case errors.Is(err, ErrBlobMissing):
		return nil, problem(kindPayloadLost, "%v", err).at("path", "id").because(rag.ReasonBlobMissing)
	case err != nil:
		return nil, s.awayProblem("reading the payload", "blobs_away", err)
	}
	return r, nil
}

// stream answers with content of a known size. One that ends too early cuts the connection, so that the peer knows.
func (s *Server) stream(content io.ReadCloser, size int64) func(huma.Context) {
	return func(ctx huma.Context) {
		defer content.Close()
		ctx.SetHeader("Content-Length", strconv.FormatInt(size, 10))
		if _, err := io.Copy(ctx.BodyWriter(), content); err != nil {
			s.log.Warn("a payload could not be sent as a whole", "error", err)
			panic(http.ErrAbortHandler)
		}
	}
}

// LetterAccepted answers a replay or a discard: the command is kept. The dead-letter group decides it.
type LetterAccepted struct {
	ID string `json:"id"`
}

type letterAcceptedOutput struct{ Body LetterAccepted }

// replayLetter asks for a new generation of a dead version.
func (s *Server) replayLetter(ctx context.Context, in *LetterPath) (*letterAcceptedOutput, error) {
	row, p := s.letter(ctx, in.ID)
	if p == nil {
		p = s.replay(ctx, row)
	}
	if p != nil {
		return nil, p
	}
	return &letterAcceptedOutput{Body: LetterAccepted{ID: row.ID}}, nil
}

// replay sends the command for a letter that may be replayed. The view may be behind; the dead-letter group has the
// last word.
func (s *Server) replay(ctx context.Context, row *ledger.LetterRow) *Problem {
	if p := waiting(row); p != nil {
		return p
	}
	if row.Lost != "" {
		return problem(kindPayloadLost, "it cannot be replayed: %s", row.Lost).at("path", "id")
	}
	return s.command(ctx, rag.CommandReplay, row, "")
}

// waiting refuses a letter that nobody can decide upon.
func waiting(row *ledger.LetterRow) *Problem {
	switch row.State {
	case rag.LetterWaiting:
		return nil
	case rag.LetterScheduled:
		return problem(kindReplayRunning, "an automatic retry is scheduled for %s", row.Due.UTC().Format("15:04:05 MST")).at("path", "id")
	case rag.LetterSent, rag.LetterReplaying:
		return problem(kindReplayRunning, "a replay of this letter runs").at("path", "id")
	}
	return problem(kindLetterClosed, "the letter is %s", row.Shown()).at("path", "id").because(string(row.Shown()))
}

func (s *Server) command(ctx context.Context, k rag.CommandKind, row *ledger.LetterRow, why string) *Problem {
	err := s.deps.Commander.Command(ctx, rag.Command{Kind: k, LetterID: row.ID, Subject: row.Subject, At: s.deps.Now(), Reason: why})
	if err != nil {
		return s.awayProblem("sending the command", "commands_unavailable", err)
	}
	return nil
}

// discardLetter gives a dead version up.
func (s *Server) discardLetter(ctx context.Context, in *struct {
	LetterPath
	Why string `query:"why" maxLength:"512" doc:"Why it is given up; kept with the letter."`
}) (*letterAcceptedOutput, error) {
	row, p := s.letter(ctx, in.ID)
	if p == nil {
		p = waiting(row)
	}
	if p == nil && !utf8.ValidString(in.Why) {
		p = problem(kindInvalidParameter, "it is not valid UTF-8").at("query", "why")
	}
	if p == nil {
		p = s.command(ctx, rag.CommandDiscard, row, in.Why)
	}
	if p != nil {
		return nil, p
	}
	return &letterAcceptedOutput{Body: LetterAccepted{ID: row.ID}}, nil
}

const lettersTag = "Dead letters"

func (s *Server) letterCalls(api huma.API) {
	decided := []kind{kindNotFound, kindReplayRunning, kindLetterClosed, kindUnavailable}
	register(api, call{
		id: "list-dead-letters", method: http.MethodGet, path: "/v1/dead-letters", tag: lettersTag, status: http.StatusOK,
		summary: "List dead letters", scope: ScopeRead, problems: []kind{kindUnavailable},
		description: "The one that failed last comes first. Letters that only wait for an automatic retry are among them, with the state scheduled.",
	}, s.listLetters)
	register(api, call{
		id: "get-dead-letter", method: http.MethodGet, path: "/v1/dead-letters/{id}", tag: lettersTag, status: http.StatusOK,
		summary: "One dead letter", scope: ScopeRead, problems: []kind{kindNotFound, kindUnavailable},
	}, s.getLetter)
	register(api, call{
		id: "get-dead-letter-payload", method: http.MethodGet, path: "/v1/dead-letters/{id}/payload", tag: lettersTag, status: http.StatusOK,
		summary: "The original bytes", scope: ScopeRead, problems: []kind{kindNotFound, kindPayloadLost, kindUnavailable},
		answer:      map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
		description: "The value of the document record, byte for byte.",
	}, s.getPayload)
	register(api, call{
		id: "replay-dead-letter", method: http.MethodPost, path: "/v1/dead-letters/{id}/replay", tag: lettersTag, status: http.StatusAccepted,
		summary: "Replay a dead letter", scope: ScopeAdmin, problems: append(decided, kindPayloadLost),
		description: "Each failure can be replayed once. The 409 is told where it is known; the dead-letter group has the last word.",
	}, s.replayLetter)
	register(api, call{
		id: "replay-dead-letters", method: http.MethodPost, path: "/v1/dead-letters/replay", tag: lettersTag, status: http.StatusAccepted,
		summary: "Replay dead letters by filter", scope: ScopeAdmin, slow: true, body: map[string]any{"application/json": ReplayBody{}},
		problems: []kind{kindMalformedJSON, kindInvalidField, kindUnavailable},
		description: "Every waiting letter that matches, up to 10,000 of them: with next_cursor the call goes on where it ended. " +
			"Each failure is replayed once, also where a letter dies again meanwhile.",
	}, s.replayLetters)
	register(api, call{
		id: "discard-dead-letters", method: http.MethodPost, path: "/v1/dead-letters/discard", tag: lettersTag, status: http.StatusAccepted,
		summary: "Discard dead letters by filter", scope: ScopeAdmin, slow: true, body: map[string]any{"application/json": DiscardBody{}},
		problems: []kind{kindMalformedJSON, kindInvalidField, kindUnavailable},
		description: "Every waiting letter that matches, up to 10,000 of them: with next_cursor the call goes on where it ended. " +
			"Letters that a replay has taken up are left alone.",
	}, s.discardLetters)
	register(api, call{
		id: "discard-dead-letter", method: http.MethodDelete, path: "/v1/dead-letters/{id}", tag: lettersTag, status: http.StatusAccepted,
		summary: "Discard a dead letter", scope: ScopeAdmin, problems: decided,
		description: "The version stays dead and is no longer shown as waiting.",
	}, s.discardLetter)
}
