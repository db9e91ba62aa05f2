package processors_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// wantRaw compares document records byte for byte; null is not empty.
func wantRaw(t testing.TB, got, want rag.Raw) {
	t.Helper()
	got.Timestamp, want.Timestamp = got.Timestamp.UTC(), want.Timestamp.UTC()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the record is\n  %.200s\nwant\n  %.200s", fmt.Sprintf("%q", got), fmt.Sprintf("%q", want))
	}
}

// letterOf is the one letter of a run.
func letterOf(t testing.TB, run *stagetest.Run) rag.Letter {
	t.Helper()
	var letters []rag.Letter
	for _, out := range run.Outputs() {
		if out.Topic != "dead-letters" {
			continue
		}
		l, err := wire.DecodeLetter(out.Key, out.Value, out.Headers, noon)
		check(t, err)
		letters = append(letters, l)
	}
	if len(letters) != 1 {
		t.Fatalf("%d letters among %v", len(letters), told(t, run.Outputs()))
	}
	return letters[0]
}

func TestLetterHasTheExactBytes(t *testing.T) {
	for name, raw := range map[string]rag.Raw{
		"text":            {Key: []byte("doc"), Value: []byte(`{"text":`), Timestamp: noon},
		"bytes":           {Key: []byte("doc"), Value: []byte{0, 0xff, '\n'}, Headers: []rag.Header{{Key: []byte("a"), Value: nil}, {Key: []byte("a"), Value: []byte{0xfe}}}, Timestamp: noon},
		"null":            {Key: []byte("doc"), Value: nil, Timestamp: noon},
		"empty":           {Key: []byte("doc"), Value: []byte{}, Timestamp: noon},
		"our own headers": {Key: []byte("doc"), Value: []byte("x"), Headers: []rag.Header{{Key: []byte(wire.HeaderLetterReason), Value: []byte("theirs")}}, Timestamp: noon},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			s := subject("doc", "m1", 7)
			w.keeps(s, raw)
			run := w.kit(t).Run(verdict(s, rag.StatusDead))
			l := letterOf(t, run)
			wantRaw(t, l.Original, raw)
			if l.ID != positionOf(s).String() || l.Position != positionOf(s) || l.Subject != s || l.Lost != "" || l.Failure.Message != "it is broken" || !l.FirstFailed.Equal(noon) {
				t.Errorf("the letter is %+v", l)
			}
		})
	}
}

// The version and the partition of the subject are the record's position, also where the key belongs elsewhere.
func TestLetterOfARecordWithoutAKey(t *testing.T) {
	w := newIndexer()
	id := "documents@3-2-9"
	s := rag.Subject{DocumentID: id, MessageID: id, Revision: revision(9, 0), Partition: 2}
	raw := rag.Raw{Value: []byte("no key"), Timestamp: noon}
	w.keeps(s, raw)
	l := letterOf(t, w.kit(t).Run(verdict(s, rag.StatusDead)))
	wantRaw(t, l.Original, raw)
	if l.ID != id || l.DocumentID != id {
		t.Errorf("the letter is %+v", l)
	}
}

func TestLetterOfARecordThatIsGone(t *testing.T) {
	s := subject("doc", "m1", 7)
	l := letterOf(t, newIndexer().kit(t).Run(verdict(s, rag.StatusDead)))
	wantRaw(t, l.Original, rag.Raw{})
	if !strings.Contains(l.Lost, "no longer in the log") || l.Position != positionOf(s) || l.Failure.Reason != rag.ReasonBrokenJSON {
		t.Errorf("the letter is %+v", l)
	}
}

// A letter that does not fit into its topic keeps position, hash and error, and says so.
func TestLetterThatDoesNotFit(t *testing.T) {
	value := []byte(strings.Repeat("x", 100<<10))
	headers := func(n int) (hs []rag.Header) {
		for range n {
			hs = append(hs, rag.Header{Key: []byte("h"), Value: []byte("v")})
		}
		return hs
	}
	for name, tc := range map[string]struct {
		raw  rag.Raw
		lost bool
	}{
		"it fits":                 {rag.Raw{Key: []byte("doc"), Value: value[:60<<10], Timestamp: noon}, false},
		"the value is too large":  {rag.Raw{Key: []byte("doc"), Value: value, Timestamp: noon}, true},
		"it fits but for ours":    {rag.Raw{Key: []byte("doc"), Value: value[:84<<10], Timestamp: noon}, true},
		"the key is too large":    {rag.Raw{Key: value, Value: []byte("x"), Timestamp: noon}, true},
		"there are many headers":  {rag.Raw{Key: []byte("doc"), Headers: headers(9_000), Timestamp: noon}, true},
		"it fits with its header": {rag.Raw{Key: []byte("doc"), Value: value[:20<<10], Headers: headers(1000), Timestamp: noon}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newIndexer()
			w.MaxLetterBytes = 100 << 10
			s := subject("doc", "m1", 7)
			w.keeps(s, tc.raw)
			run := w.kit(t).Run(verdict(s, rag.StatusDead))
			for _, out := range run.Outputs() {
				if n := recordSize(out); n > w.MaxLetterBytes-producerMargin {
					t.Errorf("a record of %s has %d bytes", out.Topic, n)
				}
			}
			l := letterOf(t, run)
			if l.Position != positionOf(s) || l.Failure.Message != "it is broken" || l.DocumentID != "doc" {
				t.Errorf("the letter is %+v", l)
			}
			if !tc.lost {
				wantRaw(t, l.Original, tc.raw)
				return
			}
			wantRaw(t, l.Original, rag.Raw{Timestamp: noon})
			if sum := fmt.Sprintf("%x", sha256.Sum256(tc.raw.Value)); !strings.Contains(l.Lost, sum) || !strings.Contains(l.Lost, "too large") {
				t.Errorf("it says %q, without the hash %s", l.Lost, sum)
			}
		})
	}
}

// producerMargin is what a producer keeps free of a topic's limit, and recordSize how it counts.
const producerMargin = 16 << 10

func recordSize(out stage.Output) int {
	n := len(out.Key) + len(out.Value) + 36
	for _, h := range out.Headers {
		n += len(h.Key) + len(h.Value) + 10
	}
	return n
}

// A retry whose document record cannot be sent again would come back with nothing: the version dies of its failure now.
func TestRetryWithoutTheRecord(t *testing.T) {
	s := subject("doc", "m1", 7)
	gone := newIndexer()
	large := newIndexer()
	large.MaxLetterBytes = 100 << 10
	large.keeps(s, rag.Raw{Key: []byte("doc"), Value: make([]byte, 100<<10), Timestamp: noon})
	for name, tc := range map[string]struct {
		w    *indexed
		says string
	}{"gone": {gone, "no longer in the log"}, "too large": {large, "too large"}} {
		t.Run(name, func(t *testing.T) {
			run := tc.w.kit(t).Run(manifest(s, 1), verdict(s, rag.StatusRetrying))
			want(t, finals(run), "event indexer doc/m1@7.0 dead embedder:transient:embedder_error", "letter doc/m1@7.0 embedder:transient:embedder_error")
			l := letterOf(t, run)
			if l.Failure.Message != "it was odd" || !strings.Contains(l.Lost, tc.says) {
				t.Errorf("the letter is %+v", l)
			}
		})
	}
}

func TestLogThatCannotBeReadIsAnOutage(t *testing.T) {
	for _, status := range []rag.Status{rag.StatusDead, rag.StatusRetrying} {
		w := newIndexer()
		w.log.err = errors.New("reset")
		step := verdict(subject("doc", "m1", 7), status)
		m := stage.Message[rag.Progress]{Record: step.Record(), Key: "doc", Value: decode(t, topics.Progress, stage.Output{Value: step.Record().Value})}
		if _, err := w.Handle(t.Context(), m, nil); stage.ClassOf(err) != stage.ClassOutage || stage.ReasonOf(err, "") != "kafka" || !errors.Is(err, w.log.err) {
			t.Errorf("%s: the error is %v", status, err)
		}
	}
}

func TestLetterOfARetriedVersionKnowsItsFirstFailure(t *testing.T) {
	w := newIndexer()
	s := subject("doc", "m1", 7)
	w.keeps(s, rag.Raw{Key: []byte("doc"), Timestamp: noon})
	later := rag.Progress{Kind: rag.ProgressVerdict, Subject: attempt(s, 1), At: noon.Add(time.Hour), Status: rag.StatusDead,
		Failure: &rag.Failure{Stage: "indexer", Class: rag.ClassMessage, Reason: rag.ReasonStoreRefused, Message: "no"}}
	l := letterOf(t, w.kit(t).Run(verdict(s, rag.StatusRetrying), stagetest.Settled(), in(topics.Progress, "doc", later)))
	if !l.FirstFailed.Equal(noon) || !l.LastFailed.Equal(noon.Add(time.Hour)) || l.Attempt != 1 {
		t.Errorf("the letter is %+v", l)
	}
}
