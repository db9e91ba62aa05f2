package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"
)

// batchWidth is how many lines of one batch wait for their acknowledgement at once.
const batchWidth = 32

// BatchResult is the answer to one line of a batch: either what was accepted or why not.
type BatchResult struct {
	Line       int      `json:"line" doc:"Number of the line in the request, from 1."`
	Status     int      `json:"status" doc:"What the document would have been answered alone: 202, or the status of the problem."`
	MessageID  string   `json:"message_id,omitempty"`
	DocumentID string   `json:"document_id,omitempty"`
	StatusURL  string   `json:"status_url,omitempty"`
	Problem    *Problem `json:"problem,omitempty"`
}

func batchResult(line int, a Accepted, p *Problem) BatchResult {
	if p != nil {
		return BatchResult{Line: line, Status: p.Status, Problem: p}
	}
	return BatchResult{Line: line, Status: http.StatusAccepted, MessageID: a.MessageID, DocumentID: a.DocumentID, StatusURL: a.StatusURL}
}

type batchOutput struct {
	ContentType string `header:"Content-Type"`
	Body        func(huma.Context)
}

// postBatch takes one document a line. The answer begins when the whole body was read: clients that send everything
// before they read anything would deadlock otherwise.
func (s *Server) postBatch(ctx context.Context, _ *struct{}) (*batchOutput, error) {
	header := exchangeOf(ctx).req.Header
	if p := mediaType(header, ndjsonTypes()...); p != nil {
		return nil, p
	}
	if header.Get("Idempotency-Key") != "" {
		return nil, problem(kindInvalidParameter, "it names one submission; give each line a message_id").at("header", "Idempotency-Key")
	}
	b := &batch{s: s, ctx: ctx, width: make(chan struct{}, batchWidth), last: map[string]chan struct{}{}}
	b.read(bufio.NewReaderSize(exchangeOf(ctx).req.Body, 32<<10))
	b.running.Wait()
	return &batchOutput{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", ndjsonTypes()[0])
		hc.SetStatus(http.StatusOK)
		w := bufio.NewWriter(hc.BodyWriter())
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, r := range b.results {
			if enc.Encode(r) != nil {
				return // the caller is gone
			}
		}
		_ = w.Flush()
	}}, nil
}

// ndjsonTypes are the names under which line-delimited JSON travels.
func ndjsonTypes() []string {
	return []string{"application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"}
}

// batch is one batch in work. Lines are read one by one; each is published on its own, several at a time, those of one
// document in their order.
type batch struct {
	s       *Server
	ctx     context.Context
	width   chan struct{} // places for lines in work
	running sync.WaitGroup
	results []*BatchResult // one per line, in order; filled in when running is done
	last    map[string]chan struct{}
}

// read goes through the lines until the end, the limit or a fault of the connection.
func (b *batch) read(r *bufio.Reader) {
	limit := b.s.cfg.MaxBatchLines
	for number := 1; ; number++ {
		l := &lease{gate: b.s.bytes}
		line, end, p := b.line(r, l)
		blank := p == nil && len(bytes.TrimSpace(line)) == 0
		switch {
		case blank:
			l.release()
		case len(b.results) == limit:
			l.release()
			b.answer(number, problem(kindTooLarge, "a batch has at most %d lines: this one and all after it were not read", limit).over("batch_lines", int64(limit)))
			return
		case p != nil:
			l.release()
			b.answer(number, p)
		default:
			b.start(number, line, l)
		}
		if end {
			return
		}
	}
}

// answer adds the result of a line that is refused.
func (b *batch) answer(number int, p *Problem) {
	r := batchResult(number, Accepted{}, p)
	b.results = append(b.results, &r)
}

// line reads one line without its end. A line above the limit is skipped, never held. end says that nothing follows.
func (b *batch) line(r *bufio.Reader, l *lease) (line []byte, end bool, fault *Problem) {
	for {
		piece, err := r.ReadSlice('\n')
		if fault == nil {
			line, fault = b.extend(line, bytes.TrimSuffix(piece, []byte{'\n'}), l)
		}
		if fault != nil {
			line = nil
			l.release()
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil:
			return line, false, fault
		case errors.Is(err, io.EOF):
			return line, true, fault
		default:
			return nil, true, bodyProblem(err)
		}
	}
}

// extend grows line by piece, and the lease with it.
func (b *batch) extend(line, piece []byte, l *lease) ([]byte, *Problem) {
	limit := b.s.cfg.MaxBodyBytes
	need := int64(len(line) + len(piece))
	if need > limit {
		return nil, problem(kindTooLarge, "the line is above the limit of %d bytes", limit).at("body", "body").over(limitBody, limit)
	}
	if need > int64(cap(line)) {
		size := min(max(need, 2*int64(cap(line)), 4<<10), limit)
		if p := l.grow(b.ctx, size); p != nil {
			return nil, p
		}
		grown := make([]byte, len(line), size)
		copy(grown, line)
		line = grown
	}
	return append(line, piece...), nil
}

// start parses a line and publishes it in the background, after the line before it that names the same document.
func (b *batch) start(number int, line []byte, l *lease) {
	doc, p := b.s.parseDocument(line)
	if p != nil {
		l.release()
		b.answer(number, p)
		return
	}
	result := &BatchResult{}
	b.results = append(b.results, result)
	done := make(chan struct{})
	before := b.last[doc.ID]
	if doc.ID != "" {
		b.last[doc.ID] = done
	}
	b.width <- struct{}{}
	b.running.Go(func() {
		defer func() { <-b.width }()
		defer l.release()
		defer close(done)
		if before != nil {
			<-before
		}
		a, p := b.s.submit(b.ctx, submission{doc: doc})
		*result = batchResult(number, a, p)
	})
}

func (s *Server) batchCall(api huma.API) {
	bodies := map[string]any{}
	for _, t := range ndjsonTypes() {
		bodies[t] = DocumentBody{}
	}
	schema := api.OpenAPI().Components.Schemas
	register(api, call{
		id: "submit-batch", method: http.MethodPost, path: "/v1/documents:batch", tag: documentsTag, status: http.StatusOK,
		summary: "Submit one document a line", scope: ScopeIngest, slow: true, body: bodies,
		answer: map[string]*huma.MediaType{ndjsonTypes()[0]: {Schema: bodySchema(schema, BatchResult{})}},
		description: lines(
			"Line-delimited JSON, at most 1,000 lines, each at most as large as a body. Lines are read one by one, and each is accepted or refused on its own; blank lines are passed over.",
			"",
			"The answer has one result a line, in order, and begins when the whole body was read. After a line that could not be read, or above the number of lines, the last result says that the rest was not read."),
	}, s.postBatch)
}
