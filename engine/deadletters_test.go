package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/stage"
)

func failureOf(r stage.Record, err error) engine.Failure {
	return engine.Failure{Group: "g", Record: r, Err: err, Class: stage.ClassOf(err), Attempts: 3}
}

func letterOf(t rapid.TB, topic string, maxBytes int, f engine.Failure) stage.Output {
	t.Helper()
	res, err := engine.ToDeadLetters[counts](topic, maxBytes)(context.Background(), f, nil)
	if err != nil || len(res.Outputs) != 1 || res.Row != nil || res.Said != nil {
		t.Fatalf("the handler gives %+v and %v", res, err)
	}
	return res.Outputs[0]
}

func headers(list []stage.Header) map[string]string {
	m := map[string]string{}
	for _, h := range list {
		m[string(h.Key)] = string(h.Value)
	}
	return m
}

func TestADeadLetterTellsWhatHappened(t *testing.T) {
	record := stage.Record{Topic: "in", Partition: 1, Offset: 42, Timestamp: time.UnixMilli(1234), Key: []byte("k"), Value: []byte("v"),
		Headers: []stage.Header{{Key: []byte("a"), Value: []byte("1")}, {Key: []byte("a"), Value: nil}}}
	out := letterOf(t, "bad", 0, failureOf(record, fmt.Errorf("reading: %w", stage.Reject("broken_json", "unexpected %q\nstack", "}"))))
	if out.Topic != "bad" || string(out.Key) != "k" || string(out.Value) != "v" || !reflect.DeepEqual(out.Headers[:2], record.Headers) {
		t.Errorf("the letter is %+v", out)
	}
	want := map[string]string{"__connect.errors.topic": "in", "__connect.errors.partition": "1", "__connect.errors.offset": "42",
		"__connect.errors.stage": "g", "__connect.errors.exception.class.name": "broken_json", "__connect.errors.exception.message": `unexpected "}"`,
		"waymark-class": "message", "waymark-reason": "broken_json", "waymark-attempts": "3", "waymark-original-timestamp": "1234", "waymark-original-headers": "2"}
	if got := headers(out.Headers[2:]); !maps.Equal(got, want) {
		t.Errorf("the headers are %v\nwant %v", got, want)
	}
	plain := headers(letterOf(t, "bad", 0, failureOf(record, errors.New(strings.Repeat("é", 1000)))).Headers)
	if plain["waymark-reason"] != "error" || plain["waymark-class"] != "transient" || len(plain["__connect.errors.exception.message"]) > 1100 {
		t.Errorf("of an error without a reason the headers are %v", plain)
	}
}

// Whatever a record is, its letter gives it back byte for byte; so does the letter of a letter.
func TestADeadLetterGivesItsOriginalBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bytesOrNull := rapid.OneOf(rapid.Just([]byte(nil)), rapid.SliceOfN(rapid.Byte(), 0, 20))
		header := rapid.Custom(func(t *rapid.T) stage.Header {
			name := rapid.OneOf(rapid.SampledFrom([]string{engine.HeaderOriginalHeaders, engine.HeaderErrorTopic, engine.HeaderLost}), rapid.String())
			return stage.Header{Key: []byte(name.Draw(t, "name")), Value: bytesOrNull.Draw(t, "value")}
		})
		record := stage.Record{Topic: "in", Key: bytesOrNull.Draw(t, "key"), Value: bytesOrNull.Draw(t, "value"), Headers: rapid.SliceOfN(header, 0, 4).Draw(t, "headers")}
		if len(record.Headers) == 0 {
			record.Headers = nil
		}
		out := letterOf(t, "bad", 0, failureOf(record, errors.New("no")))
		if rapid.Bool().Draw(t, "a tool has added a header") {
			out.Headers = append(out.Headers, stage.Header{Key: []byte("tool"), Value: []byte("was here")})
		}
		back, err := engine.OriginalOf(stage.Record{Key: out.Key, Value: out.Value, Headers: out.Headers})
		if err != nil {
			t.Fatal(err)
		}
		if want := (stage.Output{Topic: "in", Key: record.Key, Value: record.Value, Headers: record.Headers}); !reflect.DeepEqual(back, want) {
			t.Fatalf("the original was %+v, the letter gives %+v", want, back)
		}
	})
}

func TestWhatIsNoDeadLetter(t *testing.T) {
	count := func(v string) []stage.Header {
		return []stage.Header{{Key: []byte(engine.HeaderOriginalHeaders), Value: []byte(v)}}
	}
	for _, h := range [][]stage.Header{nil, count("x"), count("-1"), count("1"), count("0")} {
		if out, err := engine.OriginalOf(stage.Record{Headers: h}); err == nil {
			t.Errorf("%v gives %+v", h, out)
		}
	}
}

// A record that does not fit with its headers loses as little as it must, and the letter says what. It always fits.
func TestADeadLetterFits(t *testing.T) {
	const limit = 64 << 10
	big := bytes.Repeat([]byte{'x'}, limit)
	small := []byte("s")
	for _, c := range []struct {
		key, value, header []byte
		lost               string
		headers            int
	}{
		{small, small, small, "", 1},
		{small, big, small, "the value, of 65536 bytes", 1},
		{small, small, big, "the value, of 1 bytes; 1 headers", 0},
		{big, small, small, "the value, of 1 bytes; 1 headers; the key, of 65536 bytes", 0},
		{big, big, big, "the value, of 65536 bytes; 1 headers; the key, of 65536 bytes", 0},
	} {
		record := stage.Record{Topic: "in", Key: c.key, Value: c.value, Headers: []stage.Header{{Key: []byte("h"), Value: c.header}}}
		out := letterOf(t, "bad", limit, failureOf(record, errors.New("no")))
		h := headers(out.Headers)
		total := len(out.Key) + len(out.Value)
		for _, h := range out.Headers {
			total += len(h.Key) + len(h.Value)
		}
		if h[engine.HeaderLost] != c.lost || h[engine.HeaderOriginalHeaders] != fmt.Sprint(c.headers) || total > limit-16<<10 {
			t.Errorf("%d bytes, lost %q, with %s headers of the original; want %q and %d", total, h[engine.HeaderLost], h[engine.HeaderOriginalHeaders], c.lost, c.headers)
		}
		if _, err := engine.OriginalOf(stage.Record{Key: out.Key, Value: out.Value, Headers: out.Headers}); (err == nil) != (c.lost == "") {
			t.Errorf("the original of a letter that lost %q: %v", c.lost, err)
		}
		if (h[engine.HeaderValueSHA256] == "") != (c.lost == "") {
			t.Errorf("the hash of the value is %q", h[engine.HeaderValueSHA256])
		}
	}
}

// Through Kafka: whatever fails is in the topic as it was, and the group goes on, even where the letter would be too large.
func TestDeadLettersInKafka(t *testing.T) {
	w := newWorld(t)
	g := group(t,
		engine.Input(in, func(_ context.Context, m stage.Message[string], _ *counts) (stage.Result[counts], error) {
			if m.Value == "good" {
				return stage.Result[counts]{Outputs: []stage.Output{out.Record(m.Key, m.Value)}}, nil
			}
			return stage.Result[counts]{}, stage.Reject("refused", "never")
		}),
		engine.Output(bad),
		engine.Table(countsCodec{}, mergeCounts),
		engine.OnFailure(engine.ToDeadLetters[counts]("bad", 0)))
	records := []kafka.Record{
		{Topic: "in", Key: []byte("k"), Value: []byte{0xff, 0}, Headers: []kafka.Header{{Key: []byte("b"), Value: nil}, {Key: []byte("a"), Value: []byte{0}}}},
		{Topic: "in", Key: []byte("k")},
		{Topic: "in", Key: []byte("k"), Value: bytes.Repeat([]byte{'x'}, kafka.DefaultTopicBytes-17<<10)},
		{Topic: "in", Key: []byte("k"), Value: []byte("good")},
	}
	kafkatest.Produce(t, w.cfg, records...)
	w.run("a", g)
	w.waitFor("out", 1)
	w.waitCommitted("k", 4)
	letters := kafkatest.ReadAll(t, w.cfg, "bad")
	if len(letters) != 3 {
		t.Fatalf("%d letters, want 3", len(letters))
	}
	for i, l := range letters {
		n := len(records[i].Headers)
		if !bytes.Equal(l.Key, records[i].Key) || !slices.EqualFunc(l.Headers[:n], records[i].Headers, func(a, b kafka.Header) bool {
			return bytes.Equal(a.Key, b.Key) && bytes.Equal(a.Value, b.Value)
		}) {
			t.Errorf("letter %d is %+v", i, l)
		}
		if i < 2 && ((l.Value == nil) != (records[i].Value == nil) || !bytes.Equal(l.Value, records[i].Value)) {
			t.Errorf("letter %d has the value %q, want %q", i, l.Value, records[i].Value)
		}
	}
	if letters[2].Value != nil {
		t.Error("the large letter kept its value")
	}
}
