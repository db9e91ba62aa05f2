package client

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

const messagesPath = "/v1/messages"

// Message says what became of one submission, with its timeline. The document id may be "" where the message id was used
// for one document only. A submission that was accepted a moment ago may not be visible yet: an Error of
// KindNotVisibleYet.
func (c *Client) Message(ctx context.Context, messageID, documentID string) (MessageStatus, error) {
	r := request{method: http.MethodGet, path: messagesPath + "/" + segment(messageID), safe: true}
	if documentID != "" {
		r.query = url.Values{"document_id": {documentID}}
	}
	var m MessageStatus
	return m, c.call(ctx, r, &m)
}

// Limits of Wait.
const (
	// MaxWaitFor is how many submissions one Wait may name.
	MaxWaitFor = 2000
	// MaxWaitTime is the longest time that one Wait waits.
	MaxWaitTime = 30 * time.Second
)

// WaitFor names one submission.
type WaitFor struct {
	MessageID  string `json:"message_id"`
	DocumentID string `json:"document_id,omitempty"`
}

// FinalMessage is the outcome of one submission.
type FinalMessage struct {
	MessageID  string     `json:"message_id"`
	DocumentID string     `json:"document_id"`
	Status     rag.Status `json:"status"`
	Chunks     int        `json:"chunks"`
	Error      *Failure   `json:"error,omitempty"`
}

// WaitResult tells which submissions have ended, and how many have not.
type WaitResult struct {
	// Final are those that have ended, in the order in which they were asked for.
	Final []FinalMessage `json:"final"`
	// Pending is how many have not.
	Pending int `json:"pending"`
	// Statuses counts them by status; "not_visible" are those of which nothing is known yet.
	Statuses map[string]int `json:"statuses"`
}

// Wait answers once all of the submissions have their final status, at most MaxWaitFor of them, and at the latest after the
// time, at most MaxWaitTime: then with those that have. Ask again for the others.
func (c *Client) Wait(ctx context.Context, messages []WaitFor, atMost time.Duration) (WaitResult, error) {
	r, err := jsonRequest(http.MethodPost, messagesPath+":wait", struct {
		Messages []WaitFor `json:"messages"`
		Timeout  float64   `json:"timeout_seconds"`
	}{messages, min(atMost, MaxWaitTime).Seconds()})
	if err != nil {
		return WaitResult{}, err
	}
	r.safe = true
	var w WaitResult
	return w, c.call(ctx, r, &w)
}
