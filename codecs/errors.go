package codecs

import (
	"bytes"
	"fmt"

	"github.com/waymarkhq/waymark/stage"
)

// Reason says why a value could not be encoded or decoded. Reasons are stable.
type Reason string

// Reasons.
const (
	// ReasonNotEnveloped: the bytes do not begin with an envelope: a foreign record, or an empty one.
	ReasonNotEnveloped Reason = "not_enveloped"
	// ReasonCorrupt: the checksum does not match.
	ReasonCorrupt Reason = "corrupt"
	// ReasonNewerFormat: a newer release wrote the value. The error is stage.ErrNewerFormat.
	ReasonNewerFormat Reason = "newer_format"
	// ReasonUnknownFormat: a format that was never written, or that this release does not read any more.
	ReasonUnknownFormat Reason = "unknown_format"
	// ReasonMalformed: the payload is not what its format promises.
	ReasonMalformed Reason = "malformed"
	// ReasonUnencodable: the value has no encoding, e.g. text that is not UTF-8.
	ReasonUnencodable Reason = "unencodable"
	// ReasonTooLarge: the encoded value is larger than the codec's limit.
	ReasonTooLarge Reason = "too_large"
	// ReasonPanic: the function that encodes or decodes the payload panicked.
	ReasonPanic Reason = "panic"
)

// MaxRawBytes is how much of an undecodable value an Error keeps.
const MaxRawBytes = 13 << 20

// Error says why a value could not be encoded or decoded.
//
// stage.ClassOf gives ClassOutage for ReasonNewerFormat and ClassMessage otherwise; stage.ReasonOf gives the reason of a
// *stage.Error in Err if there is one, "too_large", "panic" or "unencodable" for these, and "unknown_format" for the others.
type Error struct {
	Reason Reason
	// Format that the value says it has; 0 if it could not be read. When encoding: the format to be written.
	Format int
	// Raw is a copy of the value that could not be decoded, at most its first MaxRawBytes; nil when encoding.
	Raw []byte
	Err error
}

func (e *Error) Error() string {
	if e.Format == 0 {
		return fmt.Sprintf("%s: %v", e.Reason, e.Err)
	}
	return fmt.Sprintf("%s (format %d): %v", e.Reason, e.Format, e.Err)
}

// Unwrap gives the cause and, unless a newer release wrote the value, the class of the error.
func (e *Error) Unwrap() []error {
	if e.Reason == ReasonNewerFormat {
		return []error{e.Err}
	}
	return []error{e.Err, &stage.Error{Class: stage.ClassMessage, Reason: e.stageReason(), Err: e.Err}}
}

func (e *Error) stageReason() string {
	switch e.Reason {
	case ReasonTooLarge, ReasonPanic, ReasonUnencodable:
		return string(e.Reason)
	}
	return string(ReasonUnknownFormat)
}

func keep(b []byte) []byte {
	return bytes.Clone(b[:min(len(b), MaxRawBytes)])
}
