package stage_test

import (
	"bytes"
	"errors"
	"strconv"
	"testing"

	"github.com/waymarkhq/waymark/stage"
)

type number struct{}

var errNegative = errors.New("negative")

func (number) Encode(n int) ([]byte, error) {
	if n < 0 {
		return nil, errNegative
	}
	return []byte(strconv.Itoa(n)), nil
}

func (number) Decode(b []byte) (int, error) { return strconv.Atoi(string(b)) }

func TestTopicMakesRecords(t *testing.T) {
	numbers := stage.Topic[int]{Name: "numbers", Codec: number{}}
	h := stage.Header{Key: []byte("h"), Value: nil}
	out := numbers.Record("k", 7, h)
	if out.Topic != "numbers" || string(out.Key) != "k" || string(out.Value) != "7" || out.Err != nil {
		t.Errorf("output %+v", out)
	}
	if len(out.Headers) != 1 || !bytes.Equal(out.Headers[0].Key, h.Key) || out.Headers[0].Value != nil {
		t.Errorf("headers %+v", out.Headers)
	}
	if empty := numbers.Record("", 7); empty.Key == nil {
		t.Error("an empty key became a null one")
	}
	if bad := numbers.Record("k", -1); !errors.Is(bad.Err, errNegative) || bad.Value != nil {
		t.Errorf("an output that cannot be encoded: %+v", bad)
	}
}

func TestJoined(t *testing.T) {
	table, other := stage.Topic[int]{Name: "table"}, stage.Topic[string]{Name: "other"}
	n := 7
	m := stage.Message[string]{Key: "k"}.WithJoined(map[string]any{"table": &n})
	if got := stage.Joined(m, table); got == nil || *got != 7 {
		t.Errorf("joined %v", got)
	}
	if stage.Joined(m, other) != nil || stage.Joined(stage.Message[string]{}, table) != nil {
		t.Error("a row of a table that is not joined")
	}
	if stage.Joined(m, stage.Topic[string]{Name: "table"}) != nil {
		t.Error("a row of another type")
	}
}
