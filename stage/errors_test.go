package stage_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/stage"
)

func TestClassAndReason(t *testing.T) {
	cause := errors.New("cause")
	for name, tc := range map[string]struct {
		err    error
		class  stage.Class
		reason string // "fallback" where the error has none
	}{
		"unknown":               {cause, stage.ClassTransient, "fallback"},
		"the end of a context":  {context.DeadlineExceeded, stage.ClassTransient, "fallback"},
		"rejected":              {stage.Reject("broken_json", "at %d", 7), stage.ClassMessage, "broken_json"},
		"transient":             {stage.Transient("store_transient", cause), stage.ClassTransient, "store_transient"},
		"outage":                {stage.Outage("store", time.Second, cause), stage.ClassOutage, "store"},
		"without a reason":      {&stage.Error{Class: stage.ClassMessage}, stage.ClassMessage, "fallback"},
		"without a cause":       {&stage.Error{Class: stage.ClassOutage, Reason: "kafka"}, stage.ClassOutage, "kafka"},
		"wrapped":               {fmt.Errorf("more: %w", stage.Reject("no_text", "none")), stage.ClassMessage, "no_text"},
		"joined with others":    {errors.Join(cause, stage.Outage("store", 0, cause)), stage.ClassOutage, "store"},
		"the first of two":      {stage.Outage("store", 0, stage.Reject("no_text", "none")), stage.ClassOutage, "store"},
		"the first of joined":   {errors.Join(stage.Transient("a", cause), stage.Reject("b", "none")), stage.ClassTransient, "a"},
		"a newer format":        {stage.ErrNewerFormat, stage.ClassOutage, "fallback"},
		"a newer format inside": {fmt.Errorf("format 7: %w", stage.ErrNewerFormat), stage.ClassOutage, "fallback"},
		"a class wins over a newer format": {stage.Reject("unknown_format", "it is %w", stage.ErrNewerFormat),
			stage.ClassMessage, "unknown_format"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stage.ClassOf(tc.err); got != tc.class {
				t.Errorf("class %v, want %v", got, tc.class)
			}
			if got := stage.ReasonOf(tc.err, "fallback"); got != tc.reason {
				t.Errorf("reason %q, want %q", got, tc.reason)
			}
		})
	}
}

func TestErrorKeepsItsCause(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		text string
	}{
		"rejected":        {stage.Reject("broken_json", "line %d: %w", 3, io.ErrUnexpectedEOF), "broken_json: line 3: unexpected EOF"},
		"transient":       {stage.Transient("store_transient", io.ErrUnexpectedEOF), "store_transient: unexpected EOF"},
		"outage":          {stage.Outage("store", 0, io.ErrUnexpectedEOF), "store: unexpected EOF"},
		"without a cause": {&stage.Error{Reason: "store"}, "store"},
	} {
		if tc.err.Error() != tc.text {
			t.Errorf("%s says %q, want %q", name, tc.err, tc.text)
		}
		if has := errors.Is(tc.err, io.ErrUnexpectedEOF); has == (name == "without a cause") {
			t.Errorf("%s: it is an io.ErrUnexpectedEOF: %v", name, has)
		}
	}
}

func TestOutageSaysHowLongToWait(t *testing.T) {
	var e *stage.Error
	if !errors.As(fmt.Errorf("batch: %w", stage.Outage("store", 3*time.Second, io.EOF)), &e) || e.After != 3*time.Second {
		t.Errorf("the wait is lost: %+v", e)
	}
}

func TestClassNames(t *testing.T) {
	for class, want := range map[stage.Class]string{
		stage.ClassTransient: "transient", stage.ClassMessage: "message", stage.ClassOutage: "outage", stage.Class(9): "transient",
	} {
		if class.String() != want {
			t.Errorf("class %d is called %q, want %q", int(class), class, want)
		}
	}
}
