package client

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/waymarkhq/waymark/rag"
)

const lettersPath = "/v1/dead-letters"

// LetterFilter chooses dead letters; an empty field matches all.
type LetterFilter struct {
	State      rag.LetterState
	Stage      string
	Reason     string
	DocumentID string
}

func (f LetterFilter) query() url.Values {
	query := url.Values{}
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

// ReplayFilter chooses waiting dead letters; an empty field matches all.
type ReplayFilter struct {
	Stage      string `json:"stage,omitempty"`
	Reason     string `json:"reason,omitempty"`
	DocumentID string `json:"document_id,omitempty"`
}

// ReplayResult counts what a replay by filter did.
type ReplayResult struct {
	Replayed int `json:"replayed"`
	// Skipped letters have lost their bytes.
	Skipped int `json:"skipped"`
	// More says that further letters may match: ask again.
	More bool `json:"more"`
}

// ReplayAll asks for a new run of every waiting letter that matches, up to 10,000 of them.
func (c *Client) ReplayAll(ctx context.Context, f ReplayFilter) (ReplayResult, error) {
	r, err := jsonRequest(http.MethodPost, lettersPath+"/replay", struct {
		ReplayFilter
		All bool `json:"all,omitempty"`
	}{f, f == ReplayFilter{}})
	if err != nil {
		return ReplayResult{}, err
	}
	var result ReplayResult
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
