package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
)

// maxRetryAfter bounds what a service may ask for: with a canary asked in between, nothing is lost by asking earlier.
const maxRetryAfter = time.Hour

// maxMessage is what of a service's own words goes into an error.
const maxMessage = 300

// refusal is the answer to a batch that the service does not want as it is: too many texts, one too long, one against
// its rules.
type refusal struct {
	status  int
	message string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("the service answers %d: %s", r.status, r.message)
}

// statusError decides what an answer other than 2xx means. It is the one place that does.
func (c *Client) statusError(resp *http.Response, message string) error {
	status := resp.StatusCode
	e := &embed.Error{
		Class: rag.ClassOutage, RetryAfter: retryAfter(resp.Header, c.now),
		Err: fmt.Errorf("the service answers %d: %s", status, message),
	}
	switch {
	case status == http.StatusBadRequest, status == http.StatusRequestEntityTooLarge, status == http.StatusUnprocessableEntity:
		// About the texts of this call: smaller calls find out which.
		return &refusal{status, message}
	case status == http.StatusTooManyRequests:
		// Concerns every call until the time is over or the quota is raised.
		e.Reason = embed.ReasonOverloaded
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		// The key, or the account behind it: an operator can mend it, no text can.
		e.Reason = embed.ReasonUnauthorized
	case status >= 500, status == http.StatusRequestTimeout:
		e.Reason = embed.ReasonUnavailable
	case status < 400, status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusGone:
		// Another address, or a model that is not there.
		e.Reason = embed.ReasonMisconfigured
	default:
		e.Class, e.Reason = rag.ClassTransient, embed.ReasonUnknown
	}
	return e
}

// transportError decides what a call without a whole answer means.
func transportError(ctx context.Context, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return &embed.Error{Class: rag.ClassTransient, Reason: embed.ReasonCanceled, Err: err}
	}
	// Refused, reset, unknown host, certificate, time spent: nothing that a text could cause. Should one do it after
	// all, the canary tells.
	return &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonUnavailable, Err: err}
}

// badReply is an outage to be confirmed, like a connection that breaks: whoever answers so is not the service.
func badReply(err error) error {
	return &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonBadReply, Err: fmt.Errorf("the reply cannot be used: %w", err)}
}

// retryAfter reads the header in its two forms, seconds and a date; 0 if there is none or it makes no sense.
func retryAfter(h http.Header, now func() time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		// The comparison is false for NaN.
		if !(seconds > 0) {
			return 0
		}
		return time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	from, err := http.ParseTime(h.Get("Date")) // the service's clock, which the date was made with
	if err != nil {
		from = now()
	}
	return min(max(0, date.Sub(from)), maxRetryAfter)
}

// message finds the service's own words in the body of an error, in the shapes that are common, and cuts them.
func message(body []byte) string {
	var shapes struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	text := string(body)
	if json.Unmarshal(body, &shapes) == nil {
		var nested struct {
			Message string `json:"message"`
		}
		var plain string
		switch {
		case json.Unmarshal(shapes.Error, &nested) == nil && nested.Message != "":
			text = nested.Message
		case json.Unmarshal(shapes.Error, &plain) == nil && plain != "":
			text = plain
		case json.Unmarshal(shapes.Detail, &plain) == nil && plain != "":
			text = plain
		case shapes.Message != "":
			text = shapes.Message
		}
	}
	return text
}

// redact takes the key out of a service's words, then brings them to one short line.
func redact(text, key string) string {
	if key != "" {
		text = strings.ReplaceAll(text, key, "[key]")
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "?"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "…"
	}
	if text == "" {
		return "(nothing said)"
	}
	return text
}
