package read_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/read"
)

// waiting is a parser that waits for others before it fails.
type waiting struct{ err error }

func (w waiting) Parse(ctx context.Context, _ parse.Input) (parse.Text, error) {
	release := flow.Hold(ctx)
	defer release()
	select {
	case <-time.After(time.Hour):
		return parse.Text{}, w.err
	case <-ctx.Done():
		return parse.Text{}, ctx.Err()
	}
}

// What a parser waits for is not the document's time, and a deadline that the parser has met is not the document's either.
func TestTimeIsNotThatOfAParsersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &external.Error{Class: rag.ClassOutage, Reason: external.ReasonUnavailable, Err: fmt.Errorf("dial: %w", context.DeadlineExceeded)}
		r := read.New(read.Options{Parser: waiting{away}, Time: time.Second})
		if _, err := r.Read(t.Context(), read.Input{Open: read.Bytes([]byte("x")), Size: 1}); !errors.Is(err, away) {
			t.Errorf("got %v", err)
		}
	})
}
