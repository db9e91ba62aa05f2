package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

const lettersPath = "/v1/dead-letters"

// LetterFilter chooses dead letters; an empty field matches all.
type LetterFilter struct {
	State      rag.LetterState
	Stage      string
	Reason     string
	DocumentID string
	Since      time.Time // the last failure is not before it
	Until      time.Time // the last failure is before it
}

func (f LetterFilter) query() url.Values {
	query := url.Values{}
	for name, at := range map[string]time.Time{"since": f.Since, "until": f.Until} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	for name, value := range map[string]string{
		"state": string(f.State), "stage": f.Stage, "reason": f.Reason, "document_id": f.DocumentID,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// DeadLetters lists dead letters, the one that failed last first. The first error ends the list.
func (c *Client) DeadLetters(ctx context.Context, f LetterFilter) iter.Seq2[DeadLetter, error] {
	return pages(ctx, c, lettersPath, f.query(), func(p letterPage) ([]DeadLetter, string) { return p.DeadLetters, p.NextCursor })
}

type letterPage struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
	NextCursor  string       `json:"next_cursor"`
}

// DeadLetter is one dead letter.
func (c *Client) DeadLetter(ctx context.Context, id string) (DeadLetter, error) {
	var l DeadLetter
	return l, c.call(ctx, request{method: http.MethodGet, path: lettersPath + "/" + segment(id), safe: true}, &l)
}

// Payload describes the original bytes of a dead letter.
type Payload struct {
	// ContentType that the record declared; "" if none.
	ContentType string
	// Null says that the record's value was null: a deletion.
	Null bool
}

// Payload streams the original bytes of a dead letter to w. It is not repeated once bytes were written.
func (c *Client) Payload(ctx context.Context, id string, w io.Writer) (Payload, error) {
	r := request{method: http.MethodGet, path: lettersPath + "/" + segment(id) + "/payload", safe: true}
	var p Payload
	err := c.retry(ctx, r.safe, func() error {
		resp, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		p = Payload{ContentType: resp.Header.Get("Original-Content-Type"), Null: resp.Header.Get("Original-Null") == "true"}
		if _, err := io.Copy(w, resp.Body); err != nil {
			return fmt.Errorf("copy the payload: %w", err)
		}
		return nil
	})
	return p, err
}

// Replay asks for a new run of a dead letter. It is refused (409) while one runs and after one succeeded.
func (c *Client) Replay(ctx context.Context, id string) error {
	return c.call(ctx, request{method: http.MethodPost, path: lettersPath + "/" + segment(id) + "/replay"}, nil)
}

// WaitingFilter chooses waiting dead letters; an empty field matches all.
type WaitingFilter struct {
	Stage      string    `json:"stage,omitempty"`
	Reason     string    `json:"reason,omitempty"`
	DocumentID string    `json:"document_id,omitempty"`
	Since      time.Time `json:"since,omitzero"`   // the last failure is not before it
	Until      time.Time `json:"until,omitzero"`   // the last failure is before it
	Cursor     string    `json:"cursor,omitempty"` // NextCursor of the answer before
}

// all says that the filter matches every waiting letter, which the API wants to be told in so many words.
func (f WaitingFilter) all() bool { return f == WaitingFilter{Cursor: f.Cursor} }

// ReplayResult counts what a replay by filter did.
type ReplayResult struct {
	Replayed int `json:"replayed"`
	// Skipped letters have lost their bytes.
	Skipped int `json:"skipped"`
	// More says that further letters may match: ask again with NextCursor.
	More       bool   `json:"more"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// ReplayAll asks for a new run of every waiting letter that matches, up to 10,000 of them.
func (c *Client) ReplayAll(ctx context.Context, f WaitingFilter) (ReplayResult, error) {
	r, err := jsonRequest(http.MethodPost, lettersPath+"/replay", struct {
		WaitingFilter
		All bool `json:"all,omitempty"`
	}{f, f.all()})
	if err != nil {
		return ReplayResult{}, err
	}
	var result ReplayResult
	return result, c.call(ctx, r, &result)
}

// DiscardResult counts what a discard by filter did.
type DiscardResult struct {
	Discarded int `json:"discarded"`
	// More says that further letters may match: ask again with NextCursor.
	More       bool   `json:"more"`
	NextCursor string `json:"next_cursor,omitempty"`
}

// DiscardAll gives up every waiting letter that matches, up to 10,000 of them. Why is kept with them, in the operator's
// words; it may be "".
func (c *Client) DiscardAll(ctx context.Context, f WaitingFilter, why string) (DiscardResult, error) {
	r, err := jsonRequest(http.MethodPost, lettersPath+"/discard", struct {
		WaitingFilter
		All bool   `json:"all,omitempty"`
		Why string `json:"why,omitempty"`
	}{f, f.all(), why})
	if err != nil {
		return DiscardResult{}, err
	}
	var result DiscardResult
	return result, c.call(ctx, r, &result)
}

// Discard gives a dead letter up. Why is kept with it, in the operator's words; it may be "".
func (c *Client) Discard(ctx context.Context, id, why string) error {
	query := url.Values{}
	if why != "" {
		query.Set("why", why)
	}
	return c.call(ctx, request{method: http.MethodDelete, path: lettersPath + "/" + segment(id), query: query}, nil)
}
