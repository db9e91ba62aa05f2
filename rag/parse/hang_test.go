//go:build unix

package parse

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
)

// A service that does not answer is the service's failure, also in an attachment, and those that wait behind what hangs are read.
func TestExternalServicesThatHangBlameNoDocument(t *testing.T) {
	const hangs, limit = 4, time.Second
	asked := make(chan struct{}, 2*hangs)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // to be told when the client goes away
		if r.Header.Get("Waymark-Name") != "hangs.png" {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, "From a picture.")
			return
		}
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer service.Close()
	p, err := New(Limits{Time: limit}, External(external.Config{Types: []string{"image/png"}, URL: service.URL}))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	failed := make(chan error, hangs)
	for range hangs {
		go func() {
			_, err := p.Parse(context.Background(), Input{Content: []byte(picture), Name: "hangs.png"})
			failed <- err
		}()
	}
	<-asked
	<-asked // both places are taken
	if text, err := p.Parse(context.Background(), Input{Content: []byte(picture), Name: "sound.png"}); err != nil || text.Body != "From a picture." {
		t.Errorf("a document that waits: %q, %v", text.Body, err)
	}
	isHang := func(what string, err error) {
		t.Helper()
		var x *external.Error
		if !errors.As(err, &x) || x.Class != rag.ClassTransient || x.Reason != external.ReasonFailed || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range hangs {
		isHang("a document that hangs", <-failed)
	}
	message := mailHeaders + "Subject: x\r\n" + multi("mixed", "b", part("Content-Type: text/plain", "Words."),
		part("Content-Type: image/png; name=hangs.png\r\nContent-Transfer-Encoding: base64", base64Lines([]byte(picture))))
	_, err = p.Parse(context.Background(), Input{Content: []byte(message)})
	isHang("an attachment", err)
}
