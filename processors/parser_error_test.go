package processors

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/stage"
)

func TestFailuresOfExternalParsersHaveTheStagesClasses(t *testing.T) {
	away := &external.Error{Class: rag.ClassOutage, Reason: external.ReasonUnavailable, After: time.Second, Err: errors.New("503")}
	var e *stage.Error
	if err := parserError(fmt.Errorf("parse: %w", away)); stage.ClassOf(err) != stage.ClassOutage || !errors.As(err, &e) || e.After != time.Second || e.Reason != external.ReasonUnavailable {
		t.Errorf("a parser that is away: %v", err)
	}
	failed := &external.Error{Class: rag.ClassTransient, Reason: external.ReasonFailed, Err: errors.New("exit status 1")}
	if err := parserError(failed); stage.ClassOf(err) != stage.ClassTransient || stage.ReasonOf(err, "") != external.ReasonFailed {
		t.Errorf("a parser that fails: %v", err)
	}
	if other := errors.New("other"); !errors.Is(parserError(other), other) || stage.ClassOf(parserError(other)) != stage.ClassTransient {
		t.Error("another error is changed")
	}
}
