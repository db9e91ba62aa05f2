package codecs

import (
	"bytes"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/stage"
)

// DefaultMaxBytes is the limit of an encoded value unless Limited says otherwise: that of the largest internal topics.
const DefaultMaxBytes = 13 << 20

// Codec is a stage.Codec whose values travel in an envelope. It is immutable and safe for concurrent use if the functions
// that it was given are.
type Codec[T any] struct {
	format    int
	newest    int // highest format that is read
	now       func() time.Time
	append    func(b []byte, v T) ([]byte, error)
	unmarshal map[int]func([]byte) (T, error)
	maxBytes  int
}

var _ stage.Codec[string] = (*Codec[string])(nil)

// New makes a codec that writes format (1 to MaxFormat) and reads it. now tells the write time. marshal must give equal
// bytes for equal values; unmarshal must not keep the bytes that it is given. Both may fail or panic: the codec returns
// an *Error. New panics on a format out of range and on a nil function, which are mistakes of the program.
func New[T any](format int, now func() time.Time, marshal func(T) ([]byte, error), unmarshal func([]byte) (T, error)) *Codec[T] {
	if marshal == nil {
		panic("codecs: marshal is nil")
	}
	return NewAppend(format, now, func(b []byte, v T) ([]byte, error) {
		p, err := marshal(v)
		return append(b, p...), err
	}, unmarshal)
}

// NewAppend is New for a payload that can be appended to a buffer, which saves a copy: appendTo returns b, unchanged, with the
// payload behind it. It is given a buffer without room for a payload, so that it can make one of the right size.
func NewAppend[T any](format int, now func() time.Time, appendTo func(b []byte, v T) ([]byte, error), unmarshal func([]byte) (T, error)) *Codec[T] {
	if now == nil || appendTo == nil {
		panic("codecs: a function is nil")
	}
	c := &Codec[T]{format: format, now: now, append: appendTo, maxBytes: DefaultMaxBytes}
	c = c.Reading(format, unmarshal)
	if reads, writes := fault.NextFormat(); reads { // never but in a test build
		c = c.Reading(format+1, unmarshal)
		if writes {
			c.format = format + 1
		}
	}
	return c
}

// Reading returns a codec that also reads format: an older one that still stands in the log, or a newer one that the next
// release will write. It panics as New does.
func (c *Codec[T]) Reading(format int, unmarshal func([]byte) (T, error)) *Codec[T] {
	if format < 1 || format > MaxFormat {
		panic(fmt.Sprintf("codecs: format %d is not between 1 and %d", format, MaxFormat))
	}
	if unmarshal == nil {
		panic("codecs: unmarshal is nil")
	}
	d := *c
	d.unmarshal = map[int]func([]byte) (T, error){format: unmarshal}
	for f, u := range c.unmarshal {
		if f != format {
			d.unmarshal[f] = u
		}
	}
	d.newest = max(c.newest, format)
	return &d
}

// Limited returns a codec that refuses, both ways, encoded values of more than n bytes.
func (c *Codec[T]) Limited(n int) *Codec[T] {
	d := *c
	d.maxBytes = n
	return &d
}

// Encode gives the enveloped bytes of v. Equal values give equal bytes apart from the write time. The error is an *Error
// with ReasonUnencodable, ReasonTooLarge or ReasonPanic.
func (c *Codec[T]) Encode(v T) ([]byte, error) {
	head := make([]byte, Overhead)
	b, err := c.marshalSafely(head[:Overhead:Overhead], v)
	if err != nil {
		return nil, err
	}
	if len(b) > c.maxBytes {
		return nil, &Error{Reason: ReasonTooLarge, Format: c.format, Err: c.limitError(len(b))}
	}
	seal(b, c.format, c.now())
	return b, nil
}

// Decode reads an enveloped value. It never panics and never keeps b. The error is an *Error that holds a copy of b; where a
// newer release wrote the value, it is (errors.Is) stage.ErrNewerFormat.
func (c *Codec[T]) Decode(b []byte) (T, error) {
	var zero T
	if len(b) > c.maxBytes {
		return zero, &Error{Reason: ReasonTooLarge, Raw: keep(b), Err: c.limitError(len(b))}
	}
	e, err := Open(b)
	if err != nil {
		return zero, err
	}
	unmarshal, ok := c.unmarshal[e.Format]
	if !ok {
		return zero, c.formatError(e.Format, b)
	}
	v, reason, err := unmarshalSafely(unmarshal, e.Payload)
	if err != nil {
		return zero, &Error{Reason: reason, Format: e.Format, Raw: keep(b), Err: err}
	}
	return v, nil
}

func (c *Codec[T]) formatError(format int, b []byte) error {
	if format > c.newest {
		return &Error{
			Reason: ReasonNewerFormat, Format: format, Raw: keep(b),
			Err: fmt.Errorf("%w: this release reads up to format %d", stage.ErrNewerFormat, c.newest),
		}
	}
	return &Error{Reason: ReasonUnknownFormat, Format: format, Raw: keep(b), Err: fmt.Errorf("this release does not read format %d", format)}
}

func (c *Codec[T]) limitError(n int) error {
	return fmt.Errorf("%d bytes are more than the limit of %d", n, c.maxBytes)
}

// marshalSafely recovers around the function that it was given and nothing else.
func (c *Codec[T]) marshalSafely(head []byte, v T) (b []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			b, err = nil, &Error{Reason: ReasonPanic, Format: c.format, Err: fmt.Errorf("panic while encoding: %v", r)}
		}
	}()
	b, err = c.append(head, v)
	if err != nil {
		return nil, &Error{Reason: ReasonUnencodable, Format: c.format, Err: err}
	}
	if len(b) < Overhead || !bytes.Equal(b[:Overhead], head) {
		return nil, &Error{Reason: ReasonUnencodable, Format: c.format, Err: fmt.Errorf("the payload was not appended to the buffer")}
	}
	return b, nil
}

func unmarshalSafely[T any](unmarshal func([]byte) (T, error), payload []byte) (v T, reason Reason, err error) {
	defer func() {
		if r := recover(); r != nil {
			reason, err = ReasonPanic, fmt.Errorf("panic while decoding: %v", r)
		}
	}()
	v, err = unmarshal(payload)
	return v, ReasonMalformed, err
}
