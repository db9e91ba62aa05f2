package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"

	"github.com/waymarkhq/waymark/rag"
)

const documentsPath = "/v1/documents"

// Submit sends a document as JSON. A document without a message id gets one, so that the call can be repeated; one without
// an id gets that from the server, which makes another document each time.
func (c *Client) Submit(ctx context.Context, d Document) (Accepted, error) {
	if d.MessageID == "" {
		d.MessageID = NewMessageID()
	}
	r, err := jsonRequest(http.MethodPost, documentsPath, d)
	if err != nil {
		return Accepted{}, err
	}
	r.safe = d.ID != ""
	var a Accepted
	return a, c.call(ctx, r, &a)
}

// Upload describes a document that is sent as its own bytes.
type Upload struct {
	ID string
	// MessageID names the submission; "" means that one is made.
	MessageID string
	// ContentType of the bytes; "" leaves it to the server.
	ContentType   string
	Title, Source string
	Body          Body
}

// Upload sends a document's own bytes. They are streamed, and read again from their beginning for every attempt.
func (c *Client) Upload(ctx context.Context, u Upload) (Accepted, error) {
	r := submission(http.MethodPut, u.ID, u.MessageID)
	r.body, r.query = &u.Body, url.Values{}
	if u.ContentType != "" {
		r.header.Set("Content-Type", u.ContentType)
	}
	if u.Title != "" {
		r.query.Set("title", u.Title)
	}
	if u.Source != "" {
		r.query.Set("source", u.Source)
	}
	var a Accepted
	return a, c.call(ctx, r, &a)
}

// Delete submits that a document is to go. An empty message id means that one is made.
func (c *Client) Delete(ctx context.Context, id, messageID string) (Accepted, error) {
	var a Accepted
	return a, c.call(ctx, submission(http.MethodDelete, id, messageID), &a)
}

func submission(method, id, messageID string) request {
	if messageID == "" {
		messageID = NewMessageID()
	}
	return request{
		method: method, path: documentsPath + "/" + segment(id), safe: true,
		header: http.Header{"Idempotency-Key": {messageID}},
	}
}

// MaxBatchLines is the number of lines that one batch may have.
const MaxBatchLines = 1000

// errBusyLines is why a batch is sent again, in part.
var errBusyLines = errors.New("lines could not be kept yet")

// Batch sends documents as lines of JSON, at most MaxBatchLines, none of them blank, each with its message_id and id, and
// returns one result per line. Lines that the server could not take for the time being are sent again while the retries
// last; because that changes their order, two lines of one document belong into two batches.
//
// The error is that of the call as a whole; then nothing is known of any line.
func (c *Client) Batch(ctx context.Context, lines [][]byte) ([]BatchResult, error) {
	results := make([]BatchResult, len(lines))
	open := make([]int, len(lines)) // indexes of the lines without a last word
	for i := range open {
		open[i] = i
	}
	answered := false
	err := c.retry(ctx, true, func() error {
		got, err := c.batch(ctx, pick(lines, open))
		if err != nil {
			return err
		}
		answered = true
		var again []int
		for i, r := range got {
			r.Line = open[i] + 1
			results[open[i]] = r
			if busy(r.Status) {
				again = append(again, open[i])
			}
		}
		if open = again; len(open) > 0 {
			return &Error{Title: errBusyLines.Error(), Status: http.StatusServiceUnavailable}
		}
		return nil
	})
	if err != nil && (!answered || ctx.Err() != nil) {
		return nil, err
	}
	return results, nil
}

func busy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

func pick(lines [][]byte, indexes []int) [][]byte {
	picked := make([][]byte, len(indexes))
	for i, at := range indexes {
		picked[i] = lines[at]
	}
	return picked
}

// batch sends lines once. A line that the server did not come to counts as one that it could not take for the time being.
func (c *Client) batch(ctx context.Context, lines [][]byte) ([]BatchResult, error) {
	body := Bytes(append(bytes.Join(lines, []byte("\n")), '\n'))
	r := request{
		method: http.MethodPost, path: documentsPath + ":batch", body: &body, safe: true,
		header: http.Header{"Content-Type": {"application/x-ndjson"}},
	}
	resp, err := c.send(ctx, r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	results := make([]BatchResult, len(lines))
	for i := range results {
		results[i] = BatchResult{Status: http.StatusServiceUnavailable, Problem: &Error{
			Title: "Not read", Detail: "the server did not come to this line", Status: http.StatusServiceUnavailable}}
	}
	dec := json.NewDecoder(bufio.NewReader(io.LimitReader(resp.Body, maxAnswer)))
	for {
		var one BatchResult
		switch err := dec.Decode(&one); {
		case errors.Is(err, io.EOF):
			return results, nil
		case err != nil:
			return nil, connectionError(r, fmt.Errorf("read the answer: %w", err))
		case one.Line < 1 || one.Line > len(lines):
			return nil, connectionError(r, fmt.Errorf("the answer names line %d of %d", one.Line, len(lines)))
		}
		results[one.Line-1] = one
	}
}

// Document says what became of a document's latest version. One that was accepted a moment ago may not be visible yet:
// an Error of KindNotVisibleYet.
func (c *Client) Document(ctx context.Context, id string) (DocumentStatus, error) {
	var d DocumentStatus
	return d, c.call(ctx, request{method: http.MethodGet, path: documentsPath + "/" + segment(id), safe: true}, &d)
}

// Documents lists documents, the one changed last first; only those with the status where it is not "". The first error
// ends the list.
func (c *Client) Documents(ctx context.Context, status rag.Status) iter.Seq2[DocumentStatus, error] {
	query := url.Values{}
	if status != "" {
		query.Set("status", string(status))
	}
	return pages(ctx, c, documentsPath, query, func(p documentPage) ([]DocumentStatus, string) { return p.Documents, p.NextCursor })
}

type documentPage struct {
	Documents  []DocumentStatus `json:"documents"`
	NextCursor string           `json:"next_cursor"`
}

// pageSize is how many entries are asked for at once.
const pageSize = 200

// pages walks through a list, one page after the other.
func pages[P, E any](ctx context.Context, c *Client, path string, query url.Values, split func(P) ([]E, string)) iter.Seq2[E, error] {
	return func(yield func(E, error) bool) {
		query.Set("limit", strconv.Itoa(pageSize))
		for {
			var page P
			if err := c.call(ctx, request{method: http.MethodGet, path: path, query: query, safe: true}, &page); err != nil {
				var none E
				yield(none, err)
				return
			}
			entries, next := split(page)
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			if next == query.Get("cursor") { // else the list would have no end
				var none E
				yield(none, &ConnectionError{Op: http.MethodGet + " " + path, Err: errors.New("the answer's cursor leads to the same page again")})
				return
			}
			query.Set("cursor", next)
		}
	}
}
