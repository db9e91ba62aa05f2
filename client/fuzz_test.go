package client_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"testing"

	"github.com/waymarkhq/waymark/client"
)

// stubborn is a server that says always the same.
type stubborn struct {
	status int
	kind   string
	body   []byte
}

func (a stubborn) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {a.kind}, "Retry-After": {string(a.body)}}, Body: io.NopCloser(bytes.NewReader(a.body))}, nil
}

// Whatever answers in the API's place: the client gives an error, or what it was asked for.
func FuzzAnswers(f *testing.F) {
	f.Add(202, "application/json", []byte(`{"message_id":"m"}`))
	f.Add(200, "application/x-ndjson", []byte(`{"line":1,"status":202}`+"\n"+`{"line":2}`))
	f.Add(422, "application/problem+json", []byte(`{"title":"No","errors":[{"message":"x"}]}`))
	f.Add(503, "text/html; charset", []byte(`99999999999999999999`))
	f.Add(200, "application/json", []byte(`{"dead_letters":null,"next_cursor":"x"}`))
	f.Fuzz(func(t *testing.T, status int, kind string, body []byte) {
		if status < 200 || status > 599 {
			status = 200 + int(uint(status)%400)
		}
		c, err := client.New("http://127.0.0.1:1", client.Options{HTTP: &http.Client{Transport: stubborn{status, kind, body}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := t.Context()
		check := func(what string, err error) {
			t.Helper()
			var said *client.Error
			if errors.As(err, &said) && (said.Status != status && what != "batch" || said.Title == "" && http.StatusText(status) != "") {
				t.Fatalf("%s: %+v for status %d", what, said, status)
			}
			if err == nil && status >= 300 && what != "batch" {
				t.Fatalf("%s: no error for status %d", what, status)
			}
		}
		_, err = c.Submit(ctx, client.Document{ID: "d", Text: "x"})
		check("submit", err)
		results, err := c.Batch(ctx, [][]byte{[]byte(`{"id":"d","text":"x"}`)})
		check("batch", err)
		if err == nil && len(results) != 1 {
			t.Fatalf("%d results of one line", len(results))
		}
		_, err = c.Message(ctx, "m", "d")
		check("message", err)
		_, err = c.Payload(ctx, "l", io.Discard)
		check("payload", err)
		n := 0
		for _, err := range c.DeadLetters(ctx, client.LetterFilter{}) {
			if n++; err != nil || n > 100 { // a list that never ends is the server's affair
				break
			}
		}
		_, err = c.Stats(ctx)
		check("stats "+strconv.Itoa(n), err)
	})
}
