package api

import (
	"cmp"
	"context"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

// DocumentBody is the JSON of a document. It is for the OpenAPI document only: the strict decoder of rag/wire reads it.
type DocumentBody struct {
	ID          string         `json:"id,omitempty" minLength:"1" maxLength:"512" doc:"1 to 512 bytes of UTF-8 without control characters. Made when it is missing." example:"news-17"`
	Text        string         `json:"text,omitempty" minLength:"1" doc:"The text. Either text or content."`
	Content     string         `json:"content,omitempty" contentEncoding:"base64" doc:"The document's own bytes, base64. Either text or content."`
	ContentType string         `json:"content_type,omitempty" doc:"Of content; guessed from the bytes when absent." example:"application/pdf"`
	Title       string         `json:"title,omitempty"`
	Source      string         `json:"source,omitempty" doc:"Where the document comes from, e.g. its address."`
	Metadata    map[string]any `json:"metadata,omitempty" doc:"At most 64 scalars; kept as key=value."`
	MessageID   string         `json:"message_id,omitempty" maxLength:"256" doc:"Names this submission: sent again with the same id it is the same submission. Made when it is missing."`
}

type acceptedOutput struct {
	Location string `header:"Location" doc:"The same as status_url."`
	Body     Accepted
}

func acceptedAnswer(a Accepted, p *Problem) (*acceptedOutput, error) {
	if p != nil {
		return nil, p
	}
	return &acceptedOutput{Location: a.StatusURL, Body: a}, nil
}

// IdempotencyParams names a submission. (Exported, as the other parameter types here: the API library sees no others.)
type IdempotencyParams struct {
	IdempotencyKey string `header:"Idempotency-Key" doc:"The message id of this submission, taken as it stands: at most 256 bytes of UTF-8 without control characters. Sent again with the same key and content, the submission counts once."`
}

// takeKey makes the header the document's message id.
func (h IdempotencyParams) takeKey(doc *rag.Document) *Problem {
	if h.IdempotencyKey == "" {
		return nil
	}
	if doc.MessageID != "" && doc.MessageID != h.IdempotencyKey {
		return problem(kindInvalidField, "it differs from the Idempotency-Key header").at("body", "message_id")
	}
	doc.MessageID = h.IdempotencyKey
	return checkMessageID("header", "Idempotency-Key", h.IdempotencyKey)
}

// blame puts a reused message id where the caller wrote it.
func (h IdempotencyParams) blame(p *Problem) *Problem {
	if p != nil && p.Type == problemPrefix+string(kindMessageIDReused) && h.IdempotencyKey != "" {
		return p.at("header", "Idempotency-Key")
	}
	return p
}

// postDocument takes the JSON of one document.
func (s *Server) postDocument(ctx context.Context, in *struct{ IdempotencyParams }) (*acceptedOutput, error) {
	if p := mediaType(exchangeOf(ctx).req.Header, "application/json"); p != nil {
		return nil, p
	}
	l := &lease{gate: s.bytes}
	defer l.release()
	b, p := s.readBody(ctx, l)
	if p != nil {
		return nil, p
	}
	doc, p := s.parseDocument(b)
	if p != nil {
		return nil, p
	}
	if p := in.takeKey(&doc); p != nil {
		return nil, p
	}
	a, p := s.submit(ctx, submission{doc: doc})
	return acceptedAnswer(a, in.blame(p))
}

// parseDocument reads a document's JSON.
func (s *Server) parseDocument(b []byte) (rag.Document, *Problem) {
	doc, err := wire.ParseDocumentJSON(b, wire.Limits{Bytes: int(s.cfg.MaxBodyBytes), Depth: MaxJSONDepth})
	if err == nil {
		return doc, nil
	}
	var f *wire.FieldError
	if !errors.As(err, &f) {
		return rag.Document{}, s.readProblem("reading the document", err)
	}
	k := kindInvalidField
	switch f.Reason {
	case rag.ReasonBrokenJSON:
		k = kindMalformedJSON
	case rag.ReasonTooLarge:
		k = kindTooLarge
	}
	return rag.Document{}, problem(k, "%s", f.Message).at("body", cmp.Or(f.Field, "body")).because(f.Reason)
}

type putInput struct {
	ID string `path:"id" doc:"The document id: everything after /v1/documents/, percent-decoded once. Slashes may stand as they are."`
	IdempotencyParams
	Title  string `query:"title" doc:"The document's title."`
	Source string `query:"source" doc:"Where the document comes from."`
}

// putDocument takes a document's own bytes.
func (s *Server) putDocument(ctx context.Context, in *putInput) (*acceptedOutput, error) {
	if p := in.check(); p != nil {
		return nil, p
	}
	header := exchangeOf(ctx).req.Header
	if p := identityEncoding(header); p != nil {
		return nil, p
	}
	contentType, p := rawType(header)
	if p != nil {
		return nil, p
	}
	l := &lease{gate: s.bytes}
	defer l.release()
	doc := rag.Document{ID: in.ID, ContentType: contentType, Title: in.Title, Source: in.Source}
	if p := in.takeKey(&doc); p != nil {
		return nil, p
	}
	if doc.Content, doc.Blob, p = s.readContent(ctx, l); p != nil {
		return nil, p
	}
	if len(doc.Content) == 0 && doc.Blob == nil {
		return nil, problem(kindInvalidField, "the body is empty; DELETE removes a document").at("body", "body").because(rag.ReasonEmptyText)
	}
	// Raw even where the type is JSON: the document is the bytes, not what they say.
	a, p := s.submit(ctx, submission{doc: doc, raw: true})
	return acceptedAnswer(a, in.blame(p))
}

// check judges the parameters that become headers of the record.
func (in *putInput) check() *Problem {
	limits := wire.DefaultLimits()
	for _, t := range []struct {
		name, text string
		most       int
	}{{"title", in.Title, limits.TitleBytes}, {"source", in.Source, limits.SourceBytes}} {
		if len(t.text) > t.most {
			return problem(kindInvalidParameter, "it has %d bytes, above the limit of %d", len(t.text), t.most).
				at("query", t.name).over(t.name+"_bytes", int64(t.most))
		}
	}
	return checkDocumentID("path", "id", in.ID)
}

// maxContentTypeBytes is what the pipeline takes as a content type.
const maxContentTypeBytes = 256

// rawType is the declared type of raw bytes. What clients send when nobody said is taken as not declared: the pipeline
// then guesses from the bytes.
func rawType(h http.Header) (string, *Problem) {
	declared := h.Get("Content-Type")
	if declared == "" {
		return "", nil
	}
	mt, _, err := mime.ParseMediaType(declared)
	if err != nil || !strings.Contains(mt, "/") || len(declared) > maxContentTypeBytes || !utf8.ValidString(declared) {
		return "", problem(kindUnsupportedType, "the Content-Type %q cannot be read", declared).at("header", "Content-Type")
	}
	switch mt {
	case "application/octet-stream", "application/x-www-form-urlencoded":
		return "", nil
	}
	if strings.HasPrefix(mt, "multipart/") {
		return "", problem(kindUnsupportedType, "send the document's own bytes as the body, not a form").at("header", "Content-Type")
	}
	return declared, nil
}

// deleteDocument submits that a document is to go.
func (s *Server) deleteDocument(ctx context.Context, in *struct {
	ID string `path:"id" doc:"The document id, as in PUT."`
	IdempotencyParams
}) (*acceptedOutput, error) {
	if p := checkDocumentID("path", "id", in.ID); p != nil {
		return nil, p
	}
	doc := rag.Document{ID: in.ID, Delete: true}
	if p := in.takeKey(&doc); p != nil {
		return nil, p
	}
	a, p := s.submit(ctx, submission{doc: doc})
	return acceptedAnswer(a, in.blame(p))
}

// visibleWithin is when it is worth asking again for what is not visible yet.
const visibleWithin = time.Second

type documentOutput struct{ Body DocumentStatus }

// getDocument answers what became of a document's latest version.
func (s *Server) getDocument(ctx context.Context, in *struct {
	ID string `path:"id" doc:"The document id, as in PUT."`
}) (*documentOutput, error) {
	if p := checkDocumentID("path", "id", in.ID); p != nil {
		return nil, p
	}
	row, err := s.deps.Documents.Get(ctx, in.ID)
	if err != nil {
		return nil, s.readProblem("reading the document", err)
	}
	d, ok := documentStatus(in.ID, row)
	if !ok {
		return nil, problem(kindNotVisibleYet, "no document %s is visible; one accepted a moment ago appears within seconds", in.ID).
			at("path", "id").after(visibleWithin)
	}
	return &documentOutput{Body: d}, nil
}

// PageParams choose a page of a list.
type PageParams struct {
	Cursor string `query:"cursor" doc:"next_cursor of the page before."`
	Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"500" doc:"Entries of a page."`
}

type documentPageOutput struct{ Body DocumentPage }

// listDocuments answers a page of documents.
func (s *Server) listDocuments(ctx context.Context, in *struct {
	Status string `query:"status" enum:"accepted,chunked,embedded,retrying,indexed,unchanged,superseded,deleted,dead" doc:"Only documents whose latest version has this status."`
	PageParams
}) (*documentPageOutput, error) {
	after, p := decodeCursor(in.Cursor)
	if p != nil {
		return nil, p
	}
	entries, err := s.deps.DocumentLister.List(ctx, DocumentQuery{Status: rag.Status(in.Status), After: after, Limit: in.Limit})
	if err != nil {
		return nil, s.readProblem("listing documents", err)
	}
	page := DocumentPage{Documents: make([]DocumentStatus, 0, len(entries))}
	for _, e := range entries {
		if d, ok := documentStatus(e.ID, e.Row); ok {
			page.Documents = append(page.Documents, d)
		}
	}
	if len(entries) == in.Limit {
		last := entries[len(entries)-1]
		page.NextCursor = encodeCursor(Mark{At: last.At, ID: last.ID})
	}
	return &documentPageOutput{Body: page}, nil
}

const documentsTag = "Documents"

func (s *Server) documentCalls(api huma.API) {
	jsonDocument := map[string]any{"application/json": DocumentBody{}}
	submitProblems := []kind{kindMalformedJSON, kindInvalidField, kindMessageIDReused, kindNotKept, kindOverloaded, kindTooLarge}
	register(api, call{
		id: "submit-document", method: http.MethodPost, path: "/v1/documents", tag: documentsTag, status: http.StatusAccepted,
		summary: "Submit a document", scope: ScopeIngest, slow: true, body: jsonDocument, problems: submitProblems,
		description: "The 202 is a promise: the record is acknowledged by the log. Field names are exact; an unknown or doubled field is refused by its name.",
	}, s.postDocument)
	register(api, call{
		id: "ingest", method: http.MethodPost, path: "/ingest", tag: documentsTag, status: http.StatusAccepted,
		summary: "Submit a document (short form)", scope: ScopeIngest, slow: true, body: jsonDocument, problems: submitProblems,
		description: "The same as POST /v1/documents.",
	}, s.postDocument)
	register(api, call{
		id: "put-document", method: http.MethodPut, path: "/v1/documents/{id}", tag: documentsTag, status: http.StatusAccepted,
		summary: "Submit a document's own bytes", scope: ScopeIngest, slow: true, body: map[string]any{"*/*": nil}, problems: submitProblems,
		description: lines(
			"The body is the document; the Content-Type is its type. None, application/octet-stream and application/x-www-form-urlencoded mean that nobody said: the type is then guessed from the bytes.",
			"",
			"Where there is a blob store, what is above 256 KiB goes there as it comes in, up to the setting limits.document_bytes (128 MiB); without one, a document may have 8 MiB.",
			"",
			"The id is everything after `/v1/documents/`, percent-decoded once. Slashes may stand as they are or as `%2F`; both name the same document. `%`, `?` and `#` must be encoded, and so must `.` or `..` between slashes where the client would resolve them."),
	}, s.putDocument)
	register(api, call{
		id: "delete-document", method: http.MethodDelete, path: "/v1/documents/{id}", tag: documentsTag, status: http.StatusAccepted,
		summary: "Delete a document", scope: ScopeIngest, slow: true, problems: []kind{kindMessageIDReused, kindInvalidField, kindNotKept, kindOverloaded},
		description: "A deletion is a submission like any other: it has a message id and a status.",
	}, s.deleteDocument)
	register(api, call{
		id: "get-document", method: http.MethodGet, path: "/v1/documents/{id}", tag: documentsTag, status: http.StatusOK,
		summary: "What became of a document", scope: ScopeRead, problems: []kind{kindNotVisibleYet, kindUnavailable},
		description: "The latest version with its status, and what a search finds of the document.",
	}, s.getDocument)
	register(api, call{
		id: "list-documents", method: http.MethodGet, path: "/v1/documents", tag: documentsTag, status: http.StatusOK,
		summary: "List documents", scope: ScopeRead, problems: []kind{kindUnavailable},
		description: "The one changed last comes first. A document that changes while the list is walked through moves to its beginning.",
	}, s.listDocuments)
	s.batchCall(api)
}
