package external

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

const (
	maxHeaderBytes = 32 << 10
	maxRetryAfter  = time.Hour
)

// newClient follows no redirects: the document goes to the address that is configured, or nowhere.
func newClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxResponseHeaderBytes = maxHeaderBytes
	transport.MaxIdleConnsPerHost = concurrent
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// post sends a document to the service. No error of it is a deadline, which a caller might take for its own.
func (x *program) post(ctx context.Context, in Input) (Result, error) {
	limited, cancel := context.WithTimeout(ctx, x.time)
	defer cancel()
	var connected atomic.Bool
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected.Store(true) }})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, x.URL, bytes.NewReader(in.Content))
	if err != nil {
		return Result{}, outage("the parser's address: %w", err)
	}
	req.Header.Set("Content-Type", in.Type)
	req.Header.Set("Accept", "application/json, text/plain, text/markdown, text/html")
	req.Header.Set("User-Agent", "waymark")
	if in.Name != "" {
		req.Header.Set("Waymark-Name", url.PathEscape(in.Name))
	}
	resp, err := x.client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return Result{}, ctx.Err()
		}
		if limited.Err() != nil && connected.Load() {
			return Result{}, x.noAnswer()
		}
		return Result{}, outage("the parser cannot be reached: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(x.limit)+1))
	switch {
	case ctx.Err() != nil:
		return Result{}, ctx.Err()
	case err != nil && limited.Err() != nil:
		return Result{}, x.noAnswer()
	case err != nil:
		return Result{}, outage("the parser's reply breaks off: %v", err)
	case len(body) > x.limit:
		return Result{}, errTooMuch(x.limit)
	case resp.StatusCode != http.StatusOK:
		return Result{}, x.refusal(resp, body)
	}
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case kind == "application/json":
		return understand(body)
	case err == nil && slices.Contains(formats, kind):
		return plain(body, kind), nil
	}
	return Result{}, failed("the parser's reply is %q, not JSON or text", resp.Header.Get("Content-Type"))
}

func (x *program) noAnswer() error { return failed("%w within %v", ErrNoAnswer, x.time) }

// refusal says what a status means: that the document cannot be read, that the service is away, or that it failed.
func (x *program) refusal(resp *http.Response, body []byte) error {
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
		var reject *flow.Error
		if _, err := understand(body); errors.As(err, &reject) {
			body = []byte(reject.Message)
			if resp.StatusCode == http.StatusUnprocessableEntity {
				return reject
			}
		}
	}
	text := describe(string(body))
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return flow.Reject(rag.ReasonBrokenFile, "the parser cannot read the document%s", text)
	case http.StatusRequestEntityTooLarge:
		return flow.Reject(rag.ReasonTooLarge, "the document is too large for the parser%s", text)
	case http.StatusUnsupportedMediaType:
		return flow.Reject(rag.ReasonUnsupportedType, "the parser does not read this type%s", text)
	case http.StatusInternalServerError: // this document alone may be the cause
		return failed("the parser failed (%s)%s", resp.Status, text)
	}
	away := outage("the parser answered %s%s", resp.Status, text)
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		away.After = min(time.Duration(min(seconds, int(maxRetryAfter.Seconds())))*time.Second, maxRetryAfter)
	}
	return away
}
