package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// typePrefix is what the problem types of the API begin with.
const typePrefix = "urn:waymark:problem:"

// Error is an answer of 400 or above: an RFC 9457 problem. Programs look at Kind and Status, never at the texts.
type Error struct {
	Type      string         `json:"type"`
	Title     string         `json:"title"`
	Status    int            `json:"status"`
	Detail    string         `json:"detail"`
	In        string         `json:"in"`
	Field     string         `json:"field"`
	Reason    string         `json:"reason"`
	Limit     *Limit         `json:"limit"`
	Errors    []FieldProblem `json:"errors"`
	Documents []string       `json:"documents"`
	Reasons   []NotReady     `json:"reasons"`
	// RetryAfter is when the server wants to be asked again; 0 if it does not say.
	RetryAfter time.Duration `json:"-"`
}

// Limit that was exceeded.
type Limit struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

// FieldProblem is one fault of several.
type FieldProblem struct {
	In      string `json:"in"`
	Field   string `json:"field"`
	Message string `json:"message"`
}

// NotReady is one reason why the server is not ready.
type NotReady struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Kind is the stable name of the problem, e.g. "not-visible-yet"; "" where the answer was no problem of the API's, as from
// a proxy.
func (e *Error) Kind() string {
	kind, ok := strings.CutPrefix(e.Type, typePrefix)
	if !ok {
		return ""
	}
	return kind
}

// Kinds of problems that callers tell apart.
const (
	KindNotVisibleYet   = "not-visible-yet"
	KindNotFound        = "not-found"
	KindMessageIDReused = "message-id-reused"
)

// Error is one sentence: what, where, why.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Title)
	if e.Field != "" && e.Field != e.In && e.In != "path" {
		fmt.Fprintf(&b, ": %s", e.Field)
	}
	if e.Detail != "" {
		fmt.Fprintf(&b, ": %s", e.Detail)
	}
	for _, f := range e.Errors {
		fmt.Fprintf(&b, "; %s: %s", f.Field, f.Message)
	}
	for _, r := range e.Reasons {
		fmt.Fprintf(&b, "; %s: %s", r.Reason, r.Message)
	}
	fmt.Fprintf(&b, " (%d)", e.Status)
	return b.String()
}

// IsKind reports whether err is an Error of this kind.
func IsKind(err error, kind string) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind() == kind
}

// ConnectionError says that no answer came, or only a part of one: the request may or may not have been carried out.
type ConnectionError struct {
	Op  string
	Err error
}

func (e *ConnectionError) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *ConnectionError) Unwrap() error { return e.Err }

func connectionError(r request, err error) error {
	if err == nil {
		return nil
	}
	return &ConnectionError{Op: r.method + " " + r.path, Err: err}
}

// readError makes an Error of an answer that is no success. Answers that do not come from the API get a title of their
// own.
func readError(resp *http.Response, now time.Time) error {
	e := &Error{}
	mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || mt != "application/problem+json" || json.Unmarshal(body, e) != nil || e.Title == "" {
		e = &Error{Title: http.StatusText(resp.StatusCode)}
		if location := resp.Header.Get("Location"); location != "" {
			e.Detail = "redirected to " + location
		}
	}
	e.Status = resp.StatusCode
	e.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), now)
	return e
}

// retryAfter reads the header's two forms: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, int(maxWait/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return min(at.Sub(now), maxWait)
	}
	return 0
}
