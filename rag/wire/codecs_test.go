package wire_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
	"github.com/waymarkhq/waymark/stage"
)

var update = flag.Bool("update", false, "write the golden files again")

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func clock(t time.Time) func() time.Time { return func() time.Time { return t } }

// behaviour is what every codec must do, whatever its type.
type behaviour struct {
	roundTrip func(*testing.T)
	sample    func(testing.TB) []byte
	readBack  func(*testing.T, []byte)
	decode    func([]byte) error
	fuzz      func(*testing.T, []byte)
}

func behaviours() map[string]behaviour {
	c, later := wire.NewCodecs(clock(now)), wire.NewCodecs(clock(now.Add(time.Hour)))
	return map[string]behaviour{
		"Chunk":        of(c.Chunk, later.Chunk),
		"Vector":       of(c.Vector, later.Vector),
		"Progress":     of(c.Progress, later.Progress),
		"Event":        of(c.Event, later.Event),
		"Command":      of(c.Command, later.Command),
		"Replay":       of(c.Replay, later.Replay),
		"ChunkerRow":   of(c.ChunkerRow, later.ChunkerRow),
		"DocumentRow":  of(c.DocumentRow, later.DocumentRow),
		"TrackerRow":   of(c.TrackerRow, later.TrackerRow),
		"LetterRow":    of(c.LetterRow, later.LetterRow),
		"CachedVector": of(c.CachedVector, later.CachedVector),
	}
}

func of[T any](c, later stage.Codec[T]) behaviour {
	return behaviour{
		roundTrip: func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				v := random[T](t)
				b := encode(t, c, v)
				got, err := c.Decode(b)
				if err != nil || !reflect.DeepEqual(got, v) {
					t.Fatalf("Decode gives\n%+v (%v), encoded was\n%+v", got, err, v)
				}
				if again := encode(t, later, got); !codecs.SamePayload(b, again) {
					t.Fatalf("equal values are encoded as\n%x and\n%x", b, again)
				}
			})
		},
		sample: func(t testing.TB) []byte { return encode(t, c, sample[T]()) },
		readBack: func(t *testing.T, b []byte) {
			got, err := c.Decode(b)
			if want := sample[T](); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Decode gives\n%+v (%v), want\n%+v", got, err, want)
			}
		},
		decode: func(b []byte) error { _, err := c.Decode(b); return err },
		fuzz: func(t *testing.T, payload []byte) {
			v, err := c.Decode(seal(t, payload))
			if err != nil {
				var e *codecs.Error
				if !errors.As(err, &e) || e.Reason != codecs.ReasonMalformed {
					t.Fatalf("error is %T: %v", err, err)
				}
				return
			}
			once := encode(t, c, v)
			v, err = c.Decode(once)
			if err != nil {
				t.Fatalf("what was encoded is not decoded: %v", err)
			}
			if again := encode(t, c, v); !codecs.SamePayload(once, again) {
				t.Fatalf("encoded as\n%x, then as\n%x", once, again)
			}
		},
	}
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func encode[T any](t fataler, c stage.Codec[T], v T) []byte {
	t.Helper()
	b, err := c.Encode(v)
	if err != nil {
		t.Fatalf("Encode(%+v): %v", v, err)
	}
	return b
}

// seal puts any payload into an envelope of the format that the codecs read.
func seal(t fataler, payload []byte) []byte {
	t.Helper()
	same := func(b []byte) ([]byte, error) { return b, nil }
	return encode(t, codecs.New(1, clock(now), same, same), payload)
}

func TestRoundTrip(t *testing.T) {
	for name, b := range behaviours() {
		t.Run(name, b.roundTrip)
	}
}

// A golden file that changes means a release that cannot read the log and the tables of the one before, unless the change
// is one that readers may ignore or comes with another format number.
func TestBytesAreWhatTheyHaveAlwaysBeen(t *testing.T) {
	for name, b := range behaviours() {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("testdata", "golden", name+".hex")
			if *update {
				if err := os.WriteFile(path, lines(b.sample(t)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := lines(b.sample(t)); !bytes.Equal(got, want) {
				t.Errorf("encoded as\n%s, not any more as\n%s", got, want)
			}
			old, err := hex.DecodeString(strings.ReplaceAll(string(want), "\n", ""))
			if err != nil {
				t.Fatal(err)
			}
			b.readBack(t, old)
		})
	}
}

func lines(b []byte) []byte {
	var out bytes.Buffer
	for len(b) > 0 {
		n := min(len(b), 48)
		fmt.Fprintf(&out, "%x\n", b[:n])
		b = b[n:]
	}
	return out.Bytes()
}

func TestCutRecordsAreNoticed(t *testing.T) {
	for name, b := range behaviours() {
		t.Run(name, func(t *testing.T) {
			whole := b.sample(t)
			for n := range whole {
				if err := b.decode(whole[:n]); err == nil {
					t.Fatalf("the first %d of %d bytes are taken for a whole value", n, len(whole))
				}
			}
		})
	}
}

func TestZeroRowsRoundTrip(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	zeroRow(t, c.ChunkerRow)
	zeroRow(t, c.DocumentRow)
	zeroRow(t, c.TrackerRow)
	zeroRow(t, c.LetterRow)
	zeroRow(t, c.CachedVector)
}

func zeroRow[T any](t *testing.T, c stage.Codec[T]) {
	var zero T
	got, err := c.Decode(encode(t, c, zero))
	if err != nil || !reflect.DeepEqual(got, zero) {
		t.Errorf("the zero %T comes back as %+v (%v)", zero, got, err)
	}
}

func TestOptionalStatus(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	for _, status := range append([]rag.Status{""}, statuses...) {
		p, err := c.Progress.Decode(encode(t, c.Progress, rag.Progress{Kind: rag.ProgressVerdict, Status: status}))
		if err != nil || p.Status != status {
			t.Errorf("progress with status %q: %q, %v", status, p.Status, err)
		}
		m, err := c.Command.Decode(encode(t, c.Command, rag.Command{Kind: rag.CommandClose, Status: status}))
		if err != nil || m.Status != status {
			t.Errorf("command with status %q: %q, %v", status, m.Status, err)
		}
	}
}

func TestRawIsExact(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	h := func(k, v []byte) rag.Header { return rag.Header{Key: k, Value: v} }
	for name, raw := range map[string]rag.Raw{
		"null":                {},
		"empty key and value": {Key: []byte{}, Value: []byte{}},
		"not UTF-8":           {Key: []byte{0xff, 0}, Value: []byte{0xfe}},
		"headers in their order, doubled, null and empty": {Headers: []rag.Header{
			h([]byte("b"), []byte("1")), h([]byte("a"), nil), h([]byte("b"), []byte{}), h([]byte("b"), []byte("1")),
			h([]byte{}, []byte("x")), h(nil, nil), h([]byte{0xff}, []byte{0xff}),
		}},
		"at the epoch":      {Timestamp: time.Unix(0, 0).UTC()},
		"in the far future": {Timestamp: time.UnixMilli(math.MaxInt64).UTC()},
		"in the far past":   {Timestamp: time.UnixMilli(math.MinInt64).UTC()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.Replay.Decode(encode(t, c.Replay, rag.Replay{Original: raw}))
			if err != nil || !reflect.DeepEqual(got.Original, raw) {
				t.Errorf("got\n%#v (%v), want\n%#v", got.Original, err, raw)
			}
		})
	}
}

func TestVectorKeepsEveryBit(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	bits := []uint32{0, 1, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00001, 0x7f7fffff}
	var v rag.Vector
	for _, b := range bits {
		v.Values = append(v.Values, math.Float32frombits(b))
	}
	got, err := c.Vector.Decode(encode(t, c.Vector, v))
	if err != nil || len(got.Values) != len(bits) {
		t.Fatalf("%v, %v", got.Values, err)
	}
	for i, b := range bits {
		if g := math.Float32bits(got.Values[i]); g != b {
			t.Errorf("value %d: bits %#x, want %#x", i, g, b)
		}
	}
}

func TestDecodeKeepsNothingOfItsInput(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	want := sample[rag.Command]()
	b := encode(t, c.Command, want)
	got, err := c.Command.Decode(b)
	for i := range b {
		b[i] = 0xee
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("after the input was overwritten the value is %+v (%v)", got, err)
	}
}

func TestUnencodableValuesAreRefused(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	for name, err := range map[string]error{
		"progress without a kind":        refused(c.Progress, rag.Progress{}),
		"progress of an unknown kind":    refused(c.Progress, rag.Progress{Kind: 6}),
		"progress of an unknown status":  refused(c.Progress, rag.Progress{Kind: 1, Status: "lost"}),
		"progress with a negative count": refused(c.Progress, rag.Progress{Kind: 1, Count: -1}),
		"range that ends before it starts": refused(c.Progress, rag.Progress{
			Kind: 4, Confirmed: []rag.IndexRange{{From: 2, To: 1}}}),
		"command without a kind":     refused(c.Command, rag.Command{}),
		"event without a status":     refused(c.Event, rag.Event{}),
		"failure of an unknown kind": refused(c.Event, rag.Event{Status: rag.StatusDead, Failure: &rag.Failure{Class: "fatal"}}),
		"final without a status":     refused(c.DocumentRow, ledger.DocumentRow{Finals: map[string]ledger.Final{"m": {}}}),
		"letter in an unknown state": refused(c.LetterRow, ledger.LetterRow{State: "shredded"}),
		"text that is not UTF-8":     refused(c.Chunk, rag.Chunk{Text: "\xff"}),
		"too many chunks":            refused(c.Chunk, rag.Chunk{Count: maxTestChunks + 1}),
		"negative version":           refused(c.Chunk, rag.Chunk{Subject: rag.Subject{Revision: rag.Revision{Version: -1}}}),
	} {
		if stage.ClassOf(err) != stage.ClassMessage || stage.ReasonOf(err, "") != rag.ReasonInvalidField {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func refused[T any](c stage.Codec[T], v T) error {
	_, err := c.Encode(v)
	return err
}

func TestMalformedPayloadsAreRefused(t *testing.T) {
	long := make([]uint64, maxTestChunks/64+1)
	event := func(s wirepb.Status) *wirepb.Event { return &wirepb.Event{Status: s} }
	all := behaviours()
	for name, tc := range map[string]struct {
		codec string
		m     proto.Message
	}{
		"kind 0 of progress":     {"Progress", &wirepb.Progress{}},
		"unknown progress":       {"Progress", &wirepb.Progress{Kind: 6}},
		"negative kind":          {"Progress", &wirepb.Progress{Kind: -1}},
		"unknown status":         {"Event", event(10)},
		"status 0 of an event":   {"Event", event(0)},
		"unknown failure class":  {"Event", &wirepb.Event{Status: 1, Failure: &wirepb.Failure{Class: 4}}},
		"kind 0 of a command":    {"Command", &wirepb.Command{}},
		"unknown command":        {"Command", &wirepb.Command{Kind: 6}},
		"unknown letter state":   {"LetterRow", &wirepb.LetterRow{State: 8}},
		"count above 2^31":       {"Chunk", &wirepb.Chunk{Page: math.MaxUint32}},
		"too many chunks":        {"Event", &wirepb.Event{Status: 1, Chunks: maxTestChunks + 1}},
		"negative version":       {"Chunk", &wirepb.Chunk{Subject: &wirepb.Subject{Version: -1}}},
		"hash of 31 bytes":       {"Progress", &wirepb.Progress{Kind: 1, ContentIdentity: make([]byte, 31)}},
		"too many nanoseconds":   {"Progress", &wirepb.Progress{Kind: 1, At: &wirepb.Time{Nanos: 1e9}}},
		"range that ends early":  {"Progress", &wirepb.Progress{Kind: 4, Confirmed: []*wirepb.IndexRange{{From: 1}}}},
		"bitmap that is too big": {"DocumentRow", &wirepb.DocumentRow{Work: []*wirepb.DocumentRow_Work{{Confirmed: long}}}},
		"message id twice": {"DocumentRow", &wirepb.DocumentRow{
			Finals: []*wirepb.DocumentRow_Final{{MessageId: "m", Status: 9}, {MessageId: "m", Status: 9}}}},
	} {
		t.Run(name, func(t *testing.T) {
			payload, err := proto.Marshal(tc.m)
			if err != nil {
				t.Fatal(err)
			}
			err = all[tc.codec].decode(seal(t, payload))
			var e *codecs.Error
			if !errors.As(err, &e) || e.Reason != codecs.ReasonMalformed || stage.ReasonOf(err, "") != rag.ReasonUnknownFormat {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestSentencesForPeopleAreMadeEncodable(t *testing.T) {
	c := wire.NewCodecs(clock(now))
	warnings := []string{"fine", "bad \xff", "worse \xfe"}
	got, err := c.Progress.Decode(encode(t, c.Progress, rag.Progress{
		Kind: rag.ProgressVerdict, Failure: &rag.Failure{Message: "reply was \xff\x00"}, Warnings: warnings,
	}))
	if err != nil || got.Failure.Message != "reply was \uFFFD\x00" || !reflect.DeepEqual(got.Warnings, []string{"fine", "bad \uFFFD", "worse \uFFFD"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if warnings[1] != "bad \xff" {
		t.Error("the caller's value was changed")
	}
}
