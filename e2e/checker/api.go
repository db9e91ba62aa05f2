package checker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sort"
	"time"
)

// API asks the HTTP API of a pod.
type API struct {
	Base   string // such as http://127.0.0.1:8484
	Client *http.Client
	// Patience is how long Get repeats a request that is answered 503: the API says so while a view of it is behind.
	Patience time.Duration
}

// Failure is why something failed, as the API says it.
type Failure struct {
	Stage   string `json:"stage"`
	Class   string `json:"class"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Message is what became of a submission.
type Message struct {
	MessageID  string   `json:"message_id"`
	DocumentID string   `json:"document_id"`
	Version    int64    `json:"version"`
	Status     string   `json:"status"`
	Final      bool     `json:"final"`
	Chunks     int      `json:"chunks"`
	Attempts   int      `json:"attempts"`
	Error      *Failure `json:"error"`
	Events     []struct {
		Stage      string `json:"stage"`
		Outcome    string `json:"outcome"`
		Attempt    int    `json:"attempt"`
		Generation int    `json:"generation"`
	} `json:"events"`
}

// Generation is the latest one that the timeline knows.
func (m Message) Generation() int {
	g := 0
	for _, e := range m.Events {
		g = max(g, e.Generation)
	}
	return g
}

// Document is the latest version of a document, and what is served of it.
type Document struct {
	DocumentID string `json:"document_id"`
	Status     string `json:"status"`
	Version    int64  `json:"version"`
	Served     *struct {
		Version int64 `json:"version"`
		Chunks  int   `json:"chunks"`
	} `json:"served"`
}

// Hit is one chunk that a reader sees.
type Hit struct {
	DocumentID string `json:"document_id"`
	ChunkID    string `json:"chunk_id"`
	Index      int    `json:"chunk_index"`
	Version    int64  `json:"version"`
	Text       string `json:"text"`
	Start      int    `json:"start"`
	End        int    `json:"end"`
}

// Letter is a dead letter, as the API shows it.
type Letter struct {
	ID         string `json:"id"`
	MessageID  string `json:"message_id"`
	DocumentID string `json:"document_id"`
	Stage      string `json:"stage"`
	Class      string `json:"class"`
	Reason     string `json:"reason"`
	Error      string `json:"error"`
	Attempts   int    `json:"attempts"`
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
	State      string `json:"state"`
}

// Stats are the API's counts.
type Stats struct {
	Documents   map[string]int64 `json:"documents"`
	DeadLetters map[string]int64 `json:"dead_letters"`
	Lag         map[string]int64 `json:"lag"`
	Store       struct {
		Chunks int64 `json:"chunks"`
	} `json:"store"`
}

// StatusError is an answer with another status than the one that was asked for.
type StatusError struct {
	Path   string
	Status int
	Body   string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.Path, e.Status, e.Body)
}

// Call sends a request without a body and returns the answer.
func (a API) Call(ctx context.Context, method, path string) (status int, body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, a.Base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	res, err := a.Client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	return res.StatusCode, body, err
}

// Get decodes the answer with the status 200; any other one is a *StatusError.
func (a API) Get(ctx context.Context, path string, into any) error {
	status, body, err := a.Call(ctx, http.MethodGet, path)
	for end := time.Now().Add(a.Patience); status == http.StatusServiceUnavailable && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		status, body, err = a.Call(ctx, http.MethodGet, path)
	}
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return &StatusError{path, status, string(body)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s: %w: %s", path, err, body)
	}
	return nil
}

// Message asks for a submission.
func (a API) Message(ctx context.Context, documentID, messageID string) (m Message, err error) {
	err = a.Get(ctx, "/v1/messages/"+url.PathEscape(messageID)+"?document_id="+url.QueryEscape(documentID), &m)
	return m, err
}

// Document asks for a document; known is false where the API knows none.
func (a API) Document(ctx context.Context, id string) (d Document, known bool, err error) {
	err = a.Get(ctx, "/v1/documents/"+url.PathEscape(id), &d)
	var se *StatusError
	if errors.As(err, &se) && se.Status == http.StatusNotFound {
		return d, false, nil
	}
	return d, err == nil, err
}

// Served lists all chunks of a document that readers see, by index.
func (a API) Served(ctx context.Context, documentID string) ([]Hit, error) {
	var answer struct {
		Hits []Hit `json:"hits"`
	}
	err := a.Get(ctx, "/v1/search?mode=vector&k=1000&q=anything&document_id="+url.QueryEscape(documentID), &answer)
	sort.Slice(answer.Hits, func(i, j int) bool { return answer.Hits[i].Index < answer.Hits[j].Index })
	return answer.Hits, err
}

// Letters lists all dead letters.
func (a API) Letters(ctx context.Context) ([]Letter, error) {
	var all []Letter
	for cursor := ""; ; {
		var page struct {
			DeadLetters []Letter `json:"dead_letters"`
			NextCursor  string   `json:"next_cursor"`
		}
		if err := a.Get(ctx, "/v1/dead-letters?limit=100&cursor="+url.QueryEscape(cursor), &page); err != nil {
			return nil, err
		}
		all = append(all, page.DeadLetters...)
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// Stats asks for the counts.
func (a API) Stats(ctx context.Context) (s Stats, err error) {
	err = a.Get(ctx, "/v1/stats", &s)
	return s, err
}
