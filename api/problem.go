package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
)

// Problem is an RFC 9457 problem: the body of every answer of 400 and above. Type is stable; programs look at it, never
// at the texts.
type Problem struct {
	Type      string         `json:"type" doc:"Stable: urn:waymark:problem: and one of the names on the documentation page." example:"urn:waymark:problem:invalid-field"`
	Title     string         `json:"title" doc:"What the type means; the same for every problem of the type."`
	Status    int            `json:"status" doc:"The HTTP status."`
	Detail    string         `json:"detail,omitempty" doc:"What is wrong in this case, for people."`
	In        string         `json:"in,omitempty" enum:"body,query,path,header" doc:"Where the field is."`
	Field     string         `json:"field,omitempty" doc:"The field, parameter or header at fault."`
	Reason    string         `json:"reason,omitempty" doc:"A finer stable code where there is one, e.g. empty_text or views_recovering."`
	Limit     *Limit         `json:"limit,omitempty" doc:"The limit that was exceeded."`
	Errors    []FieldProblem `json:"errors,omitempty" doc:"All faults, where more than one was found."`
	Documents []string       `json:"documents,omitempty" doc:"The documents that share an ambiguous message id."`
	Reasons   []NotReady     `json:"reasons,omitempty" doc:"Why the process is not ready."`

	header http.Header
}

// Limit names a limit and its value.
type Limit struct {
	Name  string `json:"name" example:"body_bytes"`
	Value int64  `json:"value" example:"8388608"`
}

// FieldProblem is one fault of several.
type FieldProblem struct {
	In      string `json:"in,omitempty" enum:"body,query,path,header"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

func (p *Problem) Error() string {
	if p.Field == "" {
		return fmt.Sprintf("%s: %s", p.Title, p.Detail)
	}
	return fmt.Sprintf("%s: %s: %s", p.Title, p.Field, p.Detail)
}

// GetStatus makes a Problem an error that the router answers with.
func (p *Problem) GetStatus() int { return p.Status }

// GetHeaders are sent along with the problem.
func (p *Problem) GetHeaders() http.Header { return p.header }

// ContentType of a problem, in place of application/json.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// problemPrefix makes a type of a kind.
const problemPrefix = "urn:waymark:problem:"

// kind is the last part of a problem's type.
type kind string

// Kinds of problems. They are API.
const (
	kindMalformedRequest   kind = "malformed-request"
	kindMalformedJSON      kind = "malformed-json"
	kindUnauthorized       kind = "unauthorized"
	kindForbidden          kind = "forbidden"
	kindForbiddenHost      kind = "forbidden-host"
	kindCrossOrigin        kind = "cross-origin"
	kindNotFound           kind = "not-found"
	kindNotVisibleYet      kind = "not-visible-yet"
	kindMethodNotAllowed   kind = "method-not-allowed"
	kindRequestTimeout     kind = "request-timeout"
	kindAmbiguousMessageID kind = "ambiguous-message-id"
	kindReplayRunning      kind = "replay-running"
	kindLetterClosed       kind = "letter-closed"
	kindPayloadLost        kind = "payload-lost"
	kindTooLarge           kind = "too-large"
	kindURITooLong         kind = "uri-too-long"
	kindUnsupportedType    kind = "unsupported-media-type"
	kindInvalidField       kind = "invalid-field"
	kindInvalidParameter   kind = "invalid-parameter"
	kindMessageIDReused    kind = "message-id-reused"
	kindOverloaded         kind = "overloaded"
	kindHeadersTooLarge    kind = "headers-too-large"
	kindInternal           kind = "internal-error"
	kindNotKept            kind = "not-kept"
	kindUnavailable        kind = "unavailable"
	kindStaleView          kind = "stale-view"
	kindNotReady           kind = "not-ready"
)

// kindInfo is what the documentation says of a kind.
type kindInfo struct {
	Kind    kind
	Status  int
	Title   string
	Meaning string
}

// kindInfos lists the kinds in the order of their status.
func kindInfos() []kindInfo {
	return []kindInfo{
		{kindMalformedRequest, 400, "Malformed request", "The query string cannot be decoded, a parameter is there twice, or the body ends early."},
		{kindMalformedJSON, 400, "Malformed JSON", "The body is not JSON, is nested too deeply, or goes on after its value."},
		{kindUnauthorized, 401, "No valid token", "Send one of the configured API tokens as Authorization: Bearer."},
		{kindForbidden, 403, "Token lacks the scope", "The token is known, but not for this call; the detail names the scope that is needed."},
		{kindForbiddenHost, 403, "Host not allowed", "Without tokens only loopback host names are answered, so that a web page cannot reach the API through a name of its own."},
		{kindCrossOrigin, 403, "Cross-origin request refused", "A browser sent a changing request on behalf of another site."},
		{kindNotFound, 404, "Not found", "There is no such path or dead letter."},
		{kindNotVisibleYet, 404, "Not visible yet", "Nothing is known of this id. One that was accepted a moment ago appears within seconds: ask again after Retry-After."},
		{kindMethodNotAllowed, 405, "Method not allowed", "The path exists, but not with this method; the Allow header lists those that do."},
		{kindRequestTimeout, 408, "Request body too slow", "The body stood still, or came in below the least speed."},
		{kindAmbiguousMessageID, 409, "Message id used by several documents", "Name one of the documents with document_id."},
		{kindReplayRunning, 409, "A replay runs already", "Wait for its outcome; a failure can be replayed once."},
		{kindLetterClosed, 409, "The letter is closed", "It was resolved, superseded or discarded."},
		{kindPayloadLost, 410, "The bytes were not kept", "The letter holds the position, the hash and the error only."},
		{kindTooLarge, 413, "Too large", "The limit is named with its value."},
		{kindURITooLong, 414, "Path and query too long", "The limit is named with its value."},
		{kindUnsupportedType, 415, "Unsupported request type", "The Content-Type or Content-Encoding of the request is not one that this call takes."},
		{kindInvalidField, 422, "Invalid field", "A field of the body is missing, unknown, doubled or out of its bounds."},
		{kindInvalidParameter, 422, "Invalid parameter", "A path, query or header parameter is unknown or out of its bounds."},
		{kindMessageIDReused, 422, "Message id used for another submission", "The same message id was sent for this document with other content. Ids seen longer ago or elsewhere are judged by the pipeline (message_id_reused)."},
		{kindOverloaded, 429, "Overloaded", "As much is in flight as the limits allow: send it again after Retry-After."},
		{kindHeadersTooLarge, 431, "Request headers too large", "The limit is named with its value."},
		{kindInternal, 500, "Internal error", "A fault of this program; the log says more."},
		{kindNotKept, 503, "Not kept", "It cannot promise to keep the document. It may or may not have been kept: send it again with the same message id."},
		{kindUnavailable, 503, "Unavailable", "Something that this call needs is away or recovering; the reason names it."},
		{kindStaleView, 503, "View too old", "The view of what is served lags behind further than a search may rely on."},
		{kindNotReady, 503, "Not ready", "The reasons are listed."},
	}
}

func (k kind) info() kindInfo {
	for _, i := range kindInfos() {
		if i.Kind == k {
			return i
		}
	}
	return kindInfo{Kind: k, Status: http.StatusInternalServerError, Title: string(k)}
}

// problem makes a problem of a kind.
func problem(k kind, format string, args ...any) *Problem {
	i := k.info()
	return &Problem{Type: problemPrefix + string(k), Title: i.Title, Status: i.Status, Detail: printable(fmt.Sprintf(format, args...), 512)}
}

// at names where the fault is.
func (p *Problem) at(in, field string) *Problem {
	p.In, p.Field = in, printable(field, 128)
	return p
}

// because adds the finer code.
func (p *Problem) because(reason string) *Problem {
	p.Reason = reason
	return p
}

// over names the limit that was exceeded.
func (p *Problem) over(name string, value int64) *Problem {
	p.Limit = &Limit{Name: name, Value: value}
	return p
}

// with adds a header.
func (p *Problem) with(name, value string) *Problem {
	if p.header == nil {
		p.header = http.Header{}
	}
	p.header.Set(name, value)
	return p
}

// after adds Retry-After, at least a second.
func (p *Problem) after(d time.Duration) *Problem {
	return p.with("Retry-After", strconv.Itoa(max(1, int((d+time.Second-1)/time.Second))))
}

// write answers with the problem, outside of an operation.
func (p *Problem) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range p.header {
		h[name] = values
	}
	h.Set("Content-Type", p.ContentType(""))
	b := p.encode()
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.WriteHeader(p.Status)
	_, _ = w.Write(b) // the connection may be gone; there is nobody to tell
}

// encode is the body of the answer.
func (p *Problem) encode() []byte {
	var b bytes.Buffer
	if err := encodeJSON(&b, p); err != nil {
		panic(fmt.Sprintf("a problem cannot be encoded: %v", err)) // it holds texts and numbers only
	}
	return b.Bytes()
}

// encodeJSON is how every answer is written.
func encodeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// printable makes text from outside fit for an answer: valid UTF-8, no control characters, at most limit bytes.
func printable(s string, limit int) string {
	cut := len(s) > limit
	if cut {
		s = s[:limit]
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if cut {
		s += "…"
	}
	return s
}

// unavailability is what an error carries that costs time, nothing else; see Unavailable.
type unavailability interface {
	error
	Unavailable() (reason string, retryAfter time.Duration)
}

// readProblem makes a problem of a reader's error: 503 for what is unavailable, 500 for the rest.
func (s *Server) readProblem(what string, err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var u unavailability
	if errors.As(err, &u) {
		reason, after := u.Unavailable()
		return problem(kindUnavailable, "%s: %v", what, err).because(reason).after(after)
	}
	switch {
	case s.killed.Err() != nil:
		return problem(kindUnavailable, "%s: the process is shutting down", what).because("shutting_down").after(time.Second)
	case errors.Is(err, context.DeadlineExceeded):
		return problem(kindUnavailable, "%s took too long", what).because("timeout").after(time.Second)
	}
	s.log.Error("request failed", "what", what, "error", err)
	return problem(kindInternal, "%s failed; the log says more", what)
}

// asProblem is the transformer of all answers. It turns the library's own errors (parameter validation) into problems,
// and says how long a problem is, so that a peer knows its end while its request is still being thrown away.
func asProblem(ctx huma.Context, _ string, v any) (any, error) {
	p, ok := v.(*Problem)
	if m, library := v.(*huma.ErrorModel); library {
		p, ok = libraryProblem(m), true
	}
	if !ok {
		return v, nil
	}
	ctx.SetHeader("Content-Length", strconv.Itoa(len(p.encode())))
	return p, nil
}

func libraryProblem(m *huma.ErrorModel) *Problem {
	if m.Status >= http.StatusInternalServerError {
		return problem(kindInternal, "the log says more")
	}
	p := problem(kindInvalidParameter, "%s", m.Detail)
	for _, e := range m.Errors {
		in, field, _ := strings.Cut(e.Location, ".")
		p.Errors = append(p.Errors, FieldProblem{In: in, Field: printable(field, 128), Message: printable(e.Message, 256)})
	}
	if len(p.Errors) > 0 {
		first := p.Errors[0]
		p.at(first.In, first.Field).Detail = first.Message
	}
	if len(p.Errors) == 1 {
		p.Errors = nil
	}
	return p
}
