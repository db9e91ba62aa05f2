package codecs_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/stage"
)

var update = flag.Bool("update", false, "write the golden files again")

var writtenAt = time.Date(2026, 3, 4, 5, 6, 7, 89e6, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func marshalText(s string) ([]byte, error)   { return []byte(s), nil }
func unmarshalText(b []byte) (string, error) { return string(b), nil }

func text(format int, t time.Time) *codecs.Codec[string] {
	return codecs.New(format, at(t), marshalText, unmarshalText)
}

func encode[T any](t testing.TB, c stage.Codec[T], v T) []byte {
	t.Helper()
	b, err := c.Encode(v)
	if err != nil {
		t.Fatalf("Encode(%v): %v", v, err)
	}
	return b
}

func wantReason(t testing.TB, err error, want codecs.Reason) *codecs.Error {
	t.Helper()
	var e *codecs.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %T (%v), want *codecs.Error with reason %s", err, err, want)
	}
	if e.Reason != want {
		t.Fatalf("reason is %s (%v), want %s", e.Reason, err, want)
	}
	return e
}

func TestEnvelopeIsWhatItHasAlwaysBeen(t *testing.T) {
	path := filepath.Join("testdata", "envelope.golden")
	got := hex.EncodeToString(encode(t, text(7, writtenAt), "payload")) + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Fatalf("the envelope has changed:\n got %s\nwant %s", got, want)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOf(rapid.Byte()).Draw(t, "payload")
		format := rapid.IntRange(1, codecs.MaxFormat).Draw(t, "format")
		written := time.UnixMilli(rapid.Int64().Draw(t, "unix ms")).UTC()
		c := text(format, written)
		b, err := c.Encode(string(payload))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != len(payload)+codecs.Overhead {
			t.Fatalf("%d bytes for a payload of %d", len(b), len(payload))
		}
		got, err := c.Decode(b)
		if err != nil || got != string(payload) {
			t.Fatalf("Decode = %q, %v", got, err)
		}
		if w, ok := codecs.WrittenAt(b); !ok || !w.Equal(written) {
			t.Fatalf("WrittenAt = %v, %v, want %v", w, ok, written)
		}
		e, err := codecs.Open(b)
		if err != nil || e.Format != format || !bytes.Equal(e.Payload, payload) || !e.WrittenAt.Equal(written) {
			t.Fatalf("Open = %+v, %v", e, err)
		}
	})
}

func TestDamageIsNoticed(t *testing.T) {
	c := text(1, writtenAt)
	whole := encode(t, c, "some payload")
	t.Run("cut anywhere", func(t *testing.T) {
		for n := range whole {
			if _, err := c.Decode(whole[:n]); err == nil {
				t.Errorf("no error for the first %d of %d bytes", n, len(whole))
			}
		}
	})
	t.Run("any flipped bit", func(t *testing.T) {
		for i := range len(whole) * 8 {
			b := bytes.Clone(whole)
			b[i/8] ^= 1 << (i % 8)
			if _, err := c.Decode(b); err == nil || errors.Is(err, stage.ErrNewerFormat) {
				t.Errorf("bit %d: %v, want an error that is not a newer format", i, err)
			}
		}
	})
	t.Run("bytes behind", func(t *testing.T) {
		_, err := c.Decode(append(bytes.Clone(whole), 0))
		_ = wantReason(t, err, codecs.ReasonCorrupt)
	})
	for name, b := range map[string][]byte{"null": nil, "empty": {}, "JSON": []byte(`{"id":"news-17","text":"hello"}`)} {
		t.Run(name, func(t *testing.T) {
			_, err := c.Decode(b)
			e := wantReason(t, err, codecs.ReasonNotEnveloped)
			if !bytes.Equal(e.Raw, b) {
				t.Errorf("Raw = %q, want %q", e.Raw, b)
			}
			if stage.ClassOf(err) != stage.ClassMessage || stage.ReasonOf(err, "") != "unknown_format" {
				t.Errorf("class %v, reason %q", stage.ClassOf(err), stage.ReasonOf(err, ""))
			}
		})
	}
}

func TestNewerFormatIsAnOutageOfThisPod(t *testing.T) {
	b := encode(t, text(3, writtenAt), "from the future")
	_, err := text(2, writtenAt).Decode(b)
	e := wantReason(t, err, codecs.ReasonNewerFormat)
	if !errors.Is(err, stage.ErrNewerFormat) || stage.ClassOf(err) != stage.ClassOutage {
		t.Errorf("%v has class %v", err, stage.ClassOf(err))
	}
	if e.Format != 3 || !bytes.Equal(e.Raw, b) {
		t.Errorf("format %d, raw %x", e.Format, e.Raw)
	}
}

func TestReadingOtherFormats(t *testing.T) {
	upper := func(b []byte) (string, error) { return strings.ToUpper(string(b)), nil }
	one, three := text(1, writtenAt), text(3, writtenAt)

	t.Run("a release that reads what the next one writes", func(t *testing.T) {
		c := one.Reading(3, upper)
		if got, err := c.Decode(encode(t, three, "x")); err != nil || got != "X" {
			t.Errorf("Decode = %q, %v", got, err)
		}
		if e, err := codecs.Open(encode(t, c, "x")); err != nil || e.Format != 1 {
			t.Errorf("writes format %d (%v), want the old one", e.Format, err)
		}
	})
	t.Run("a release that still reads what the last one wrote", func(t *testing.T) {
		c := three.Reading(1, upper)
		if got, err := c.Decode(encode(t, one, "x")); err != nil || got != "X" {
			t.Errorf("Decode = %q, %v", got, err)
		}
		_, err := c.Decode(encode(t, text(2, writtenAt), "x"))
		_ = wantReason(t, err, codecs.ReasonUnknownFormat)
		if errors.Is(err, stage.ErrNewerFormat) {
			t.Error("a format between the known ones is taken for a newer one")
		}
	})
	t.Run("the codec it was made from stays as it was", func(t *testing.T) {
		one.Reading(3, upper)
		if _, err := one.Decode(encode(t, three, "x")); !errors.Is(err, stage.ErrNewerFormat) {
			t.Errorf("error is %v", err)
		}
	})
}

func TestFailuresOfThePayload(t *testing.T) {
	boom := errors.New("boom")
	failing := codecs.New(1, at(writtenAt),
		func(string) ([]byte, error) { return nil, boom },
		func([]byte) (string, error) { return "half", boom })
	panicking := codecs.New(1, at(writtenAt),
		func(string) ([]byte, error) { panic("marshal") },
		func([]byte) (string, error) { panic("unmarshal") })
	notAppended := codecs.NewAppend(1, at(writtenAt),
		func(_ []byte, s string) ([]byte, error) { return []byte(s), nil }, unmarshalText)
	rejecting := codecs.New(1, at(writtenAt),
		func(string) ([]byte, error) { return nil, stage.Reject("invalid_field", "title: not UTF-8") }, unmarshalText)
	b := encode(t, text(1, writtenAt), "payload")

	for _, tc := range []struct {
		name        string
		err         error
		reason      codecs.Reason
		stageReason string
	}{
		{"marshal fails", second(failing.Encode("x")), codecs.ReasonUnencodable, "unencodable"},
		{"marshal panics", second(panicking.Encode("x")), codecs.ReasonPanic, "panic"},
		{"marshal forgets the header", second(notAppended.Encode("longer than the header is")), codecs.ReasonUnencodable, "unencodable"},
		{"marshal says a reason", second(rejecting.Encode("x")), codecs.ReasonUnencodable, "invalid_field"},
		{"unmarshal fails", second(failing.Decode(b)), codecs.ReasonMalformed, "unknown_format"},
		{"unmarshal panics", second(panicking.Decode(b)), codecs.ReasonPanic, "panic"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_ = wantReason(t, tc.err, tc.reason)
			if stage.ClassOf(tc.err) != stage.ClassMessage || stage.ReasonOf(tc.err, "") != tc.stageReason {
				t.Errorf("class %v, reason %q", stage.ClassOf(tc.err), stage.ReasonOf(tc.err, ""))
			}
		})
	}
	if v, err := failing.Decode(b); v != "" || !errors.Is(err, boom) {
		t.Errorf("Decode = %q, %v: want the zero value and the cause", v, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestLimit(t *testing.T) {
	c := text(1, writtenAt).Limited(codecs.Overhead + 3)
	if _, err := c.Decode(encode(t, c, "abc")); err != nil {
		t.Fatalf("at the limit: %v", err)
	}
	_, err := c.Encode("abcd")
	_ = wantReason(t, err, codecs.ReasonTooLarge)
	if stage.ReasonOf(err, "") != "too_large" {
		t.Errorf("reason for the engine is %q", stage.ReasonOf(err, ""))
	}
	_, err = c.Decode(encode(t, text(1, writtenAt), "abcd"))
	_ = wantReason(t, err, codecs.ReasonTooLarge)
}

func TestErrorKeepsACopyOfBoundedSize(t *testing.T) {
	c := text(1, writtenAt)
	b := make([]byte, codecs.MaxRawBytes+1)
	b[0] = 'x'
	_, err := c.Decode(b)
	b[0] = 'y'
	e := wantReason(t, err, codecs.ReasonTooLarge)
	if len(e.Raw) != codecs.MaxRawBytes || e.Raw[0] != 'x' {
		t.Errorf("keeps %d bytes beginning with %q", len(e.Raw), e.Raw[0])
	}
}

func TestSamePayload(t *testing.T) {
	early, late := text(1, writtenAt), text(1, writtenAt.Add(time.Hour))
	a := encode(t, early, "row")
	for _, tc := range []struct {
		name string
		b    []byte
		want bool
	}{
		{"written later", encode(t, late, "row"), true},
		{"another payload", encode(t, late, "Row"), false},
		{"another format", encode(t, text(2, writtenAt), "row"), false},
		{"not enveloped", []byte("row"), false},
		{"null", nil, false},
	} {
		if got := codecs.SamePayload(a, tc.b); got != tc.want {
			t.Errorf("%s: SamePayload = %v", tc.name, got)
		}
		if got := codecs.SamePayload(tc.b, a); got != tc.want {
			t.Errorf("%s, the other way round: SamePayload = %v", tc.name, got)
		}
	}
	if !codecs.SamePayload(nil, nil) || !codecs.SamePayload([]byte("x"), []byte("x")) {
		t.Error("equal bytes that are not enveloped differ")
	}
	if bytes.Equal(a, encode(t, late, "row")) {
		t.Error("the write time is not in the value")
	}
}

func TestWrittenAtOfForeignBytes(t *testing.T) {
	for _, b := range [][]byte{nil, {}, []byte("{}"), encode(t, text(1, writtenAt), "")[:codecs.Overhead-1]} {
		if _, ok := codecs.WrittenAt(b); ok {
			t.Errorf("WrittenAt(%x) says that it knows", b)
		}
	}
}

func TestMistakesOfTheProgramPanic(t *testing.T) {
	for name, make := range map[string]func(){
		"format 0":          func() { text(0, writtenAt) },
		"format 256":        func() { text(256, writtenAt) },
		"reading format -1": func() { text(1, writtenAt).Reading(-1, unmarshalText) },
		"no clock":          func() { codecs.New(1, nil, marshalText, unmarshalText) },
		"no marshal":        func() { codecs.New(1, at(writtenAt), nil, unmarshalText) },
		"no unmarshal":      func() { codecs.New(1, at(writtenAt), marshalText, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			make()
		})
	}
}

func FuzzDecode(f *testing.F) {
	c := text(2, writtenAt)
	f.Add([]byte(nil))
	f.Add([]byte(`{"id":"x"}`))
	f.Add(encode(f, c, "payload"))
	f.Add(encode(f, text(9, writtenAt), "payload"))
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := c.Decode(b)
		if err != nil {
			var e *codecs.Error
			if !errors.As(err, &e) || !bytes.Equal(e.Raw, b) || v != "" {
				t.Fatalf("Decode = %q, %v", v, err)
			}
			return
		}
		again := encode(t, c, v)
		if !codecs.SamePayload(again, b) {
			t.Fatalf("%x was read as %q and is written as %x", b, v, again)
		}
	})
}
