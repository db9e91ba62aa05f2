package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Query is a search.
type Query struct {
	Text string
	// K is how many hits at most, up to 1,000; 0 leaves it to the server.
	K int
	// Mode is hybrid, vector or text; "" leaves it to the server.
	Mode string
	// DocumentID restricts the search to one document.
	DocumentID string
	// Filters are key:value pairs of the metadata that must all be there.
	Filters []string
}

// Search finds chunks, the best first.
func (c *Client) Search(ctx context.Context, q Query) ([]Hit, error) {
	query := url.Values{"q": {q.Text}}
	if q.K != 0 {
		query.Set("k", strconv.Itoa(q.K))
	}
	if q.Mode != "" {
		query.Set("mode", q.Mode)
	}
	if q.DocumentID != "" {
		query.Set("document_id", q.DocumentID)
	}
	if len(q.Filters) > 0 {
		query["filter"] = q.Filters
	}
	var answer struct {
		Hits []Hit `json:"hits"`
	}
	err := c.call(ctx, request{method: http.MethodGet, path: "/v1/search", query: query, safe: true}, &answer)
	return answer.Hits, err
}

// Stats counts what is there.
func (c *Client) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	return s, c.call(ctx, request{method: http.MethodGet, path: "/v1/stats", safe: true}, &s)
}

// Ready returns nil when the server does all of its work, and an Error with the reasons when it does not. It asks once.
func (c *Client) Ready(ctx context.Context) error { return c.probe(ctx, "/readyz") }

// Alive returns nil when the server answers at all. It asks once.
func (c *Client) Alive(ctx context.Context) error { return c.probe(ctx, "/healthz") }

func (c *Client) probe(ctx context.Context, path string) error {
	resp, err := c.send(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
