package stage

import (
	"errors"
	"fmt"
	"time"
)

// ErrNewerFormat is what a codec returns for a value that a newer release has written.
var ErrNewerFormat = errors.New("written in a newer format than this release reads")

// Class of an error. It decides what the engine does; nothing looks at error texts.
type Class int

// Classes of errors.
const (
	// ClassTransient: unknown or passing. Retried in place a few times, then given to OnFailure.
	ClassTransient Class = iota
	// ClassMessage: this message can never succeed. Given to OnFailure at once.
	ClassMessage
	// ClassOutage: something that all messages need is away. The partition is held; no attempt is counted.
	ClassOutage
)

func (c Class) String() string {
	switch c {
	case ClassMessage:
		return "message"
	case ClassOutage:
		return "outage"
	}
	return "transient"
}

// Error is an error with its class and, for people and machines, a reason.
type Error struct {
	Class  Class
	Reason string        // stable, lower case, e.g. "broken_json"
	After  time.Duration // outage or transient: do not try again sooner (Retry-After); 0 if nobody said
	Err    error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return e.Reason
	}
	return fmt.Sprintf("%s: %v", e.Reason, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Reject makes an error of the message: it can never succeed. reason is stable; the format is a sentence for people.
func Reject(reason, format string, args ...any) error {
	return &Error{Class: ClassMessage, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Transient makes an error that may pass when the message is tried again later.
func Transient(reason string, err error) error {
	return &Error{Class: ClassTransient, Reason: reason, Err: err}
}

// Outage makes an error of something that every message needs. after is the least time to wait; 0 if nobody said.
func Outage(dependency string, after time.Duration, err error) error {
	return &Error{Class: ClassOutage, Reason: dependency, After: after, Err: err}
}

// ClassOf is the class of err: that of the first *Error in its chain; a newer format is an outage; everything else is
// transient, because an unknown error must neither kill a healthy message nor hold a partition.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	if errors.Is(err, ErrNewerFormat) {
		return ClassOutage
	}
	return ClassTransient
}

// ReasonOf is the reason of the first *Error in the chain, or fallback.
func ReasonOf(err error, fallback string) string {
	var e *Error
	if errors.As(err, &e) && e.Reason != "" {
		return e.Reason
	}
	return fallback
}
