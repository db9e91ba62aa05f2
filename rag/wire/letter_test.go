package wire_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// letterHeaders are the names that a letter uses, which its original may use too.
var letterHeaders = []string{
	"__connect.errors.topic", "__connect.errors.partition", "__connect.errors.offset", "__connect.errors.stage",
	"__connect.errors.exception.class.name", "__connect.errors.exception.message", "waymark-message-id", "waymark-class",
	"waymark-reason", "waymark-attempts", "waymark-first-failed-at", "waymark-key", "waymark-document-id", "waymark-version",
	"waymark-generation", "waymark-epoch", "waymark-original-headers", "waymark-last-failed-at", "waymark-original-timestamp", "waymark-lost",
}

// letters draws letters whose originals carry anything, our own headers included.
func letters() *rapid.Generator[rag.Letter] {
	return rapid.Custom(func(t *rapid.T) rag.Letter {
		l := random[rag.Letter](t)
		l.ID = l.Position.String()
		l.Partition = l.Position.Partition
		for range rapid.IntRange(0, 5).Draw(t, "spoofed headers") {
			h := rag.Header{Key: []byte(rapid.SampledFrom(letterHeaders).Draw(t, "name"))}
			h.Value = rapid.SampledFrom([][]byte{nil, {}, []byte("0"), []byte("7"), []byte("99999999999999999999"), {0xff}}).Draw(t, "value")
			l.Original.Headers = append(l.Original.Headers, h)
		}
		if !l.Original.Timestamp.IsZero() {
			l.Original.Timestamp = l.Original.Timestamp.Truncate(time.Millisecond)
		}
		return l
	})
}

func TestLetterRoundTrip(t *testing.T) {
	written := now.Add(time.Minute)
	rapid.Check(t, func(t *rapid.T) {
		want := letters().Draw(t, "letter")
		key, value, hs := wire.LetterRecord(want)
		if string(key) != want.ID || !reflect.DeepEqual(value, want.Original.Value) {
			t.Fatalf("key %q, value %#v", key, value)
		}
		for i, h := range want.Original.Headers {
			if !reflect.DeepEqual(rag.Header(hs[i]), h) {
				t.Fatalf("header %d is %q, of the original %q", i, hs[i], h)
			}
		}
		if rapid.Bool().Draw(t, "a tool adds its header") {
			hs = append(hs, headers("mirror-maker", "x", "waymark-key", "late")...)
		}
		got, err := wire.DecodeLetter(key, value, hs, written)
		if want.FirstFailed.IsZero() {
			want.FirstFailed = written
		}
		if want.LastFailed.IsZero() {
			want.LastFailed = written
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%+v (%v), want\n%+v", got, err, want)
		}
	})
}

func TestLetterRecord(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.FixedZone("", 3600))
	l := rag.Letter{
		ID: foreign,
		Subject: rag.Subject{DocumentID: "d", MessageID: "m", Revision: rag.Revision{Version: 46, Generation: 1},
			Attempt: 2, Partition: 3},
		Position: place,
		Failure:  rag.Failure{Stage: "chunker", Class: rag.ClassMessage, Reason: rag.ReasonBrokenFile, Message: "not a PDF"},
		Original: rag.Raw{
			Key: []byte("d"), Value: []byte("%PDF"), Timestamp: at,
			Headers: []rag.Header{{Key: []byte("content-type"), Value: []byte("application/pdf")}},
		},
		FirstFailed: at, LastFailed: at.Add(time.Hour),
	}
	key, value, hs := wire.LetterRecord(l)
	want := headers(
		"content-type", "application/pdf",
		"__connect.errors.topic", "waymark.documents",
		"__connect.errors.partition", "3",
		"__connect.errors.offset", "45",
		"__connect.errors.stage", "chunker",
		"__connect.errors.exception.class.name", "broken_file",
		"__connect.errors.exception.message", "not a PDF",
		"waymark-message-id", "m",
		"waymark-document-id", "d",
		"waymark-class", "message",
		"waymark-reason", "broken_file",
		"waymark-attempts", "3",
		"waymark-version", "46",
		"waymark-generation", "1",
		"waymark-epoch", "2",
		"waymark-first-failed-at", "2026-03-04T04:06:07.089Z",
		"waymark-last-failed-at", "2026-03-04T05:06:07.089Z",
		"waymark-key", "d",
		"waymark-original-timestamp", "1772597167089",
		"waymark-original-headers", "1",
	)
	if string(key) != foreign || string(value) != "%PDF" || !reflect.DeepEqual(hs, want) {
		t.Errorf("got %q %q\n%q, want\n%q", key, value, hs, want)
	}
}

func TestLetterSaysWhatIsLost(t *testing.T) {
	l := rag.Letter{ID: foreign, Position: place, Lost: "compacted away"}
	l.Partition = place.Partition
	key, value, hs := wire.LetterRecord(l)
	got, err := wire.DecodeLetter(key, value, hs, time.Time{})
	if err != nil || value != nil || !reflect.DeepEqual(got, l) {
		t.Errorf("got %+v (%v), want %+v", got, err, l)
	}
}

// Some clients hand out an empty header value as a null one: the header's presence alone says that the key is not null.
func TestEmptyKeyOfAnOriginalStaysEmpty(t *testing.T) {
	key, value, hs := wire.LetterRecord(rag.Letter{ID: foreign, Position: place, Original: rag.Raw{Key: []byte{}}})
	for i := range hs {
		if string(hs[i].Key) == "waymark-key" {
			hs[i].Value = nil
		}
	}
	got, err := wire.DecodeLetter(key, value, hs, now)
	if err != nil || got.Original.Key == nil || len(got.Original.Key) != 0 {
		t.Errorf("key %#v, %v", got.Original.Key, err)
	}
}

func TestSentencesOfALetterAreBounded(t *testing.T) {
	for _, message := range []string{strings.Repeat("é", 1<<20), strings.Repeat("xé", 1<<20), "bad \xff byte", strings.Repeat("x", 4<<10)} {
		l := rag.Letter{ID: foreign, Position: place, Failure: rag.Failure{Message: message}, Lost: message}
		key, value, hs := wire.LetterRecord(l)
		got, err := wire.DecodeLetter(key, value, hs, now)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{got.Failure.Message, got.Lost} {
			if len(s) > 4<<10 || len(s) < min(len(message), 4<<10-8) || !utf8.ValidString(s) {
				t.Errorf("%d bytes become %d: %.20q…", len(message), len(s), s)
			}
		}
	}
}

// A producer that mistakes microseconds for milliseconds writes years that RFC 3339 does not have.
func TestLettersOfTheFarFuture(t *testing.T) {
	for _, at := range []time.Time{
		time.UnixMilli(now.UnixMicro()).UTC(), time.UnixMilli(math.MinInt64).UTC(), time.Unix(0, 0).UTC(),
		time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		l := rag.Letter{ID: foreign, Position: place, FirstFailed: at, LastFailed: at, Original: rag.Raw{Timestamp: at}}
		key, value, hs := wire.LetterRecord(l)
		got, err := wire.DecodeLetter(key, value, hs, now)
		if err != nil || !got.FirstFailed.Equal(at) || !got.LastFailed.Equal(at) || !got.Original.Timestamp.Equal(at) {
			t.Errorf("%v: %v, %v, %v (%v)", at, got.FirstFailed, got.LastFailed, got.Original.Timestamp, err)
		}
	}
}

func TestDecodeLetterRefuses(t *testing.T) {
	key, value, whole := wire.LetterRecord(rag.Letter{ID: foreign, Position: place})
	set := func(name, v string) []stage.Header {
		hs := append([]stage.Header(nil), whole...)
		for i := range hs {
			if string(hs[i].Key) == name {
				hs[i].Value = []byte(v)
				return hs
			}
		}
		return append(headers(name, v), hs...)
	}
	without := func(name string) (hs []stage.Header) {
		for _, h := range whole {
			if string(h.Key) != name {
				hs = append(hs, h)
			}
		}
		return hs
	}
	for name, tc := range map[string]struct {
		key     []byte
		headers []stage.Header
		field   string
	}{
		"no headers":               {key, nil, "waymark-original-headers"},
		"no key":                   {nil, whole, "key"},
		"no count":                 {key, without("waymark-original-headers"), "waymark-original-headers"},
		"no document id":           {key, without("waymark-document-id"), "waymark-document-id"},
		"no offset":                {key, without("__connect.errors.offset"), "__connect.errors.offset"},
		"a count that is none":     {key, set("waymark-original-headers", "many"), "waymark-original-headers"},
		"a negative count":         {key, set("waymark-original-headers", "-1"), "waymark-original-headers"},
		"more than there are":      {key, set("waymark-original-headers", "100"), "waymark-original-headers"},
		"a count over ours":        {key, set("waymark-original-headers", "1"), "__connect.errors.topic"},
		"a partition out of range": {key, set("__connect.errors.partition", "2147483648"), "__connect.errors.partition"},
		"a negative version":       {key, set("waymark-version", "-1"), "waymark-version"},
		"no attempts at all":       {key, set("waymark-attempts", "0"), "waymark-attempts"},
		"an unknown class":         {key, set("waymark-class", "fatal"), "waymark-class"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := wire.DecodeLetter(tc.key, value, tc.headers, now)
			var f *wire.FieldError
			if !errors.As(err, &f) || f.Field != tc.field || !reflect.DeepEqual(l, rag.Letter{}) {
				t.Errorf("got %+v, %v; want an error of %s", l, err, tc.field)
			}
		})
	}
	_, _, timed := wire.LetterRecord(rag.Letter{ID: foreign, Position: place, FirstFailed: now, Original: rag.Raw{Timestamp: now}})
	for _, name := range []string{"waymark-first-failed-at", "waymark-original-timestamp"} {
		for i := range timed {
			if string(timed[i].Key) == name {
				timed[i].Value = []byte("yesterday")
			}
		}
		var f *wire.FieldError
		if _, err := wire.DecodeLetter(key, value, timed, now); !errors.As(err, &f) {
			t.Errorf("%s of yesterday: %v", name, err)
		}
	}
}

func FuzzDecodeLetter(f *testing.F) {
	f.Add([]byte("id"), []byte("value"), "waymark-original-headers", []byte("1"), "waymark-class", []byte("message"), 3)
	f.Add([]byte(nil), []byte(nil), "content-type", []byte("text/html"), "waymark-key", []byte(nil), 0)
	f.Add([]byte("id"), []byte("value"), "waymark-first-failed-at", []byte("2026-03-04T05:06:07Z"), "waymark-lost", []byte("gone"), 14)
	f.Fuzz(func(t *testing.T, key, value []byte, name1 string, value1 []byte, name2 string, value2 []byte, at int) {
		_, _, hs := wire.LetterRecord(rag.Letter{ID: foreign, Position: place, FirstFailed: now})
		if at < 0 || at > len(hs) {
			return
		}
		mixed := append([]stage.Header{{Key: []byte(name1), Value: value1}}, hs[:at]...)
		mixed = append(append(mixed, stage.Header{Key: []byte(name2), Value: value2}), hs[at:]...)
		l, err := wire.DecodeLetter(key, value, mixed, now)
		if err != nil {
			var e *wire.FieldError
			if !errors.As(err, &e) || e.Field == "" {
				t.Fatalf("error is %#v", err)
			}
			return
		}
		k, v, h := wire.LetterRecord(l)
		again, err := wire.DecodeLetter(k, v, h, now)
		if err != nil || again.Position != l.Position || again.Subject != l.Subject || !reflect.DeepEqual(again.Original, l.Original) {
			t.Fatalf("%+v comes back as %+v (%v)", l, again, err)
		}
	})
}
