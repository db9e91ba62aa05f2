//go:build unix

package external

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// transport answers after a time, or with an error when the request is given up.
type transport struct {
	connects, begins bool
	after            time.Duration
}

func (s transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.connects {
		httptrace.ContextClientTrace(r.Context()).GotConn(httptrace.GotConnInfo{})
	}
	body := func() (io.ReadCloser, error) {
		select {
		case <-time.After(s.after):
			return io.NopCloser(strings.NewReader("text")), nil
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/plain"}}, Request: r}
	if s.begins {
		resp.Body = io.NopCloser(lazy(body))
		return resp, nil
	}
	var err error
	resp.Body, err = body()
	return resp, err
}

// lazy is a body that is waited for when it is read.
type lazy func() (io.ReadCloser, error)

func (l lazy) Read(p []byte) (int, error) {
	r, err := l()
	if err != nil {
		return 0, err
	}
	n, _ := r.Read(p)
	return n, io.EOF
}

func service(t *testing.T, s transport) *Parser {
	t.Helper()
	x := one(t, 1000, Config{URL: "http://parser.test/"})
	x.program.time, x.program.client = 30*time.Second, &http.Client{Transport: s}
	return x
}

// The wait for a place is not the document's time; what its program then takes has a limit of its own.
func TestExternalProgramsAreWaitedForWithoutALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := service(t, transport{connects: true, after: 29 * time.Second})
		hold := func() {
			for range concurrent {
				x.slots <- struct{}{}
			}
		}
		free := func() {
			for range concurrent {
				<-x.slots
			}
		}
		hold()
		document, cancel := flow.WithTime(t.Context(), 30*time.Second)
		defer cancel()
		<-time.After(29 * time.Second)
		time.AfterFunc(time.Hour, free)
		if got := outcome(x.Read(document, Input{})); got != `text/plain "" 0:"text"` || document.Err() != nil {
			t.Errorf("after a wait: %s, %v", got, document.Err())
		}
		hold()
		caller, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, end)
		if _, err := x.Read(caller, Input{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller's end: %v", err)
		}
		free()
	})
}

func TestExternalServicesThatGiveNoAnswerHaveFailed(t *testing.T) {
	for name, c := range map[string]struct {
		service transport
		want    string
	}{
		"no answer":     {transport{connects: true, after: time.Hour}, "transient parser_failed: the parser gives no answer within 30s"},
		"half":          {transport{connects: true, begins: true, after: time.Hour}, "transient parser_failed: the parser gives no answer within 30s"},
		"no connection": {transport{after: time.Hour}, "outage parser_unavailable: the parser cannot be reached"},
		"in time":       {transport{connects: true, begins: true, after: 29 * time.Second}, `text/plain "" 0:"text"`},
	} {
		synctest.Test(t, func(t *testing.T) {
			result, err := service(t, c.service).Read(t.Context(), Input{})
			if got := outcome(result, err); !strings.HasPrefix(got, c.want) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}
