package stagetest_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/stage"
)

// jsonCodec is enough of a codec for these tests.
type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(b []byte) (v T, err error) {
	err = json.Unmarshal(b, &v)
	return v, err
}

func topic[T any](name string) stage.Topic[T] {
	return stage.Topic[T]{Name: name, Codec: jsonCodec[T]{}}
}

// fakeTB keeps the failures of what runs under it.
type fakeTB struct {
	testing.TB
	texts []string
}

func (f *fakeTB) Helper() {}

func (f *fakeTB) Errorf(format string, args ...any) {
	f.texts = append(f.texts, fmt.Sprintf(format, args...))
}

func (f *fakeTB) Fatalf(format string, args ...any) {
	f.Errorf(format, args...)
	runtime.Goexit()
}

// failures runs f with a test of its own and returns the texts with which that failed.
func failures(t *testing.T, f func(t testing.TB)) []string {
	t.Helper()
	fake := &fakeTB{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(fake)
	}()
	<-done
	return fake.texts
}

// wantFailure asserts that one of the failures of f says all of the parts.
func wantFailure(t *testing.T, f func(t testing.TB), parts ...string) {
	t.Helper()
	texts := failures(t, f)
	for _, text := range texts {
		found := 0
		for _, p := range parts {
			if strings.Contains(text, p) {
				found++
			}
		}
		if found == len(parts) {
			return
		}
	}
	t.Errorf("no failure says %q; there are %d:\n%s", parts, len(texts), strings.Join(texts, "\n"))
}
