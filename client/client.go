// Package client calls the HTTP API of Waymark: it submits documents, waits until each has its final status, searches,
// and looks after dead letters.
//
// Every submission carries a message id, made here where the caller gives none, so that a call can be repeated without
// making a second submission. Refusals are an *Error with the problem's stable type.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"
)

// maxAnswer bounds the answers that are decoded as a whole.
const maxAnswer = 64 << 20

// Options of a Client. The zero value works.
type Options struct {
	// HTTP sends the requests; nil means a client of its own. Redirects are never followed.
	HTTP *http.Client
	// Token is sent with every request where it is not empty.
	Token string
	// UserAgent of the requests; "waymark-client" where it is empty.
	UserAgent string
	// Retry says how patient calls are; the zero value: not at all.
	Retry Retry
}

// Client calls the API at one address. It may be used by many goroutines at once.
type Client struct {
	base  *url.URL
	opts  Options
	http  *http.Client
	clock clock
}

// New makes a client of the API at a URL such as http://127.0.0.1:8484. It does not connect.
func New(baseURL string, opts Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not a URL such as http://127.0.0.1:8484", baseURL)
	case u.User != nil:
		return nil, errors.New("the URL of the API must not hold a user or a password")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, fmt.Errorf("the URL %s must have no ? or #", baseURL)
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), ""
	if opts.UserAgent == "" {
		opts.UserAgent = "waymark-client"
	}
	c := &Client{base: u, opts: opts, clock: systemClock{}}
	if opts.HTTP != nil {
		shallow := *opts.HTTP
		c.http = &shallow
	} else {
		c.http = &http.Client{Transport: newTransport()}
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// newTransport keeps more connections than the default one does: many uploads go to one host.
func newTransport() *http.Transport {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		t = &http.Transport{}
	}
	t = t.Clone()
	t.MaxIdleConnsPerHost = 64
	return t
}

// URL of the API.
func (c *Client) URL() string { return c.base.String() }

// Close lets go of idle connections. Calls may still be made.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// request is one call of the API.
type request struct {
	method string
	path   string // escaped, without the base
	query  url.Values
	header http.Header
	body   *Body
	// safe says that the call can be repeated where nobody knows whether it arrived.
	safe bool
}

// call sends a request until it is answered or the retries are spent, and decodes the answer into out (nil: dropped).
func (c *Client) call(ctx context.Context, r request, out any) error {
	return c.retry(ctx, r.safe, func() error {
		resp, err := c.send(ctx, r)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if out == nil {
			_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
			return connectionError(r, err)
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(out)
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return &ConnectionError{Op: r.method + " " + r.path, Err: fmt.Errorf("read the answer: %w", err)}
		}
		return nil
	})
}

// send makes one attempt. The response has a status below 300 and its body must be closed.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	req, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var unread *BodyError
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.As(err, &unread):
			return nil, unread
		}
		return nil, connectionError(r, err)
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, readError(resp, c.clock.Now())
}

func (c *Client) newRequest(ctx context.Context, r request) (*http.Request, error) {
	target := c.base.String() + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, nil)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	for name, values := range r.header {
		req.Header[name] = values
	}
	req.Header.Set("User-Agent", c.opts.UserAgent)
	req.Header.Set("Accept", "application/json, application/problem+json")
	if c.opts.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Token)
	}
	if r.body == nil {
		return req, nil
	}
	body, size, err := r.body.Open()
	if err != nil {
		return nil, &BodyError{err}
	}
	req.Body, req.ContentLength = &bodyReader{body, size}, size
	if size == 0 {
		_ = body.Close() // nothing is read from it
		req.Body = http.NoBody
	}
	return req, nil
}

// jsonRequest makes a request with a JSON body.
func jsonRequest(method, path string, v any) (request, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return request{}, fmt.Errorf("%s %s: %w", method, path, err)
	}
	body := Bytes(b)
	return request{method: method, path: path, body: &body, header: http.Header{"Content-Type": {"application/json"}}}, nil
}

// NewMessageID makes a message id that no other submission has.
func NewMessageID() string { return uuid.Must(uuid.NewV7()).String() }

// segment escapes an id as one segment of a path, whatever it holds.
func segment(id string) string {
	if strings.Trim(id, ".") == "" {
		return strings.ReplaceAll(id, ".", "%2E")
	}
	return url.PathEscape(id)
}
