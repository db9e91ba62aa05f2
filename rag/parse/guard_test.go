package parse

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
)

func TestAReaderThatCrashesIsTheDocumentsFailure(t *testing.T) {
	p := ownParser(t)
	p.readers[TypeMarkdown] = func(context.Context, source) (Text, error) { panic("index out of range") }
	_, err := p.Parse(context.Background(), Input{Content: []byte("# a"), DeclaredType: TypeMarkdown})
	var e *Error
	if !errors.As(err, &e) || e.Reason != rag.ReasonPanic || !strings.Contains(e.Message, "index out of range") {
		t.Errorf("got %v", err)
	}
	if text, err := p.Parse(context.Background(), Input{Content: []byte("a")}); err != nil || text.Body != "a" {
		t.Errorf("the next one: %q, %v", text.Body, err)
	}
}

func TestAReaderThatHangsIsGivenUpAndTooManyAreNotBegun(t *testing.T) {
	p, err := New(Limits{Time: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.grace = time.Millisecond
	free, ended := make(chan struct{}), make(chan struct{}, maxStrays)
	p.readers[TypeMarkdown] = func(context.Context, source) (Text, error) {
		<-free
		ended <- struct{}{}
		return Text{}, nil
	}
	hang := func() error {
		_, err := p.Parse(context.Background(), Input{Content: []byte("# a"), DeclaredType: TypeMarkdown})
		return err
	}
	var e *Error
	for range maxStrays {
		if err := hang(); !errors.As(err, &e) || e.Reason != rag.ReasonTimeout {
			t.Fatalf("a reader that hangs: %v", err)
		}
	}
	if err := hang(); errors.As(err, &e) || !errors.Is(err, errStrays) {
		t.Errorf("one too many: %v", err)
	}
	close(free)
	for range maxStrays {
		<-ended
	}
	deadline := time.Now().Add(10 * time.Second)
	for p.strays.Load() > 0 {
		if time.Now().After(deadline) {
			t.Fatal("those that have ended are still counted")
		}
	}
}
