package embedtest

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// FaultKind names what a Fake does wrong.
type FaultKind string

// Kinds of faults. The first group concerns the call, the second the reply, the third single vectors of it.
const (
	FaultStatus FaultKind = "status" // answers Status with Body and RetryAfter
	FaultHang   FaultKind = "hang"   // no answer until the client gives up, the fault is cleared or the fake is closed
	FaultDelay  FaultKind = "delay"  // the right answer, Delay later
	FaultReset  FaultKind = "reset"  // the connection is reset without an answer

	FaultGarbage   FaultKind = "garbage"   // 200 with a body that is no JSON
	FaultCut       FaultKind = "cut"       // the connection ends in the middle of the reply
	FaultShort     FaultKind = "short"     // the last vector is missing
	FaultDoubled   FaultKind = "doubled"   // the first vector comes in place of the last one too; needs two texts
	FaultReordered FaultKind = "reordered" // in reverse order, each with its right index: legal

	FaultDimension FaultKind = "dimension" // a vector of one element more
	FaultEmpty     FaultKind = "empty"     // a vector without elements
	FaultZero      FaultKind = "zero"      // a vector of zeros
	FaultNaN       FaultKind = "nan"       // a vector with a bare NaN in it, as Python's json module writes it
	FaultNull      FaultKind = "null"      // a vector with a null in it
)

// Fault is something that a Fake does wrong, once or often. As JSON it is the body of POST /control/faults.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Match restricts the fault to calls with a text that contains it and, of the vector faults, to such texts.
	Match string `json:"match,omitempty"`
	// MinTexts restricts the fault to calls with so many texts or more.
	MinTexts int `json:"min_texts,omitempty"`
	// Times is how many calls are hit; 0 means all until Clear.
	Times int `json:"times,omitempty"`

	Status     int           `json:"status,omitempty"`      // of FaultStatus: 300 to 599
	RetryAfter string        `json:"retry_after,omitempty"` // of FaultStatus: the header, as it is
	Body       string        `json:"body,omitempty"`        // of FaultStatus; "" is an error as OpenAI words it
	Delay      time.Duration `json:"delay,omitempty"`       // of FaultDelay, in nanoseconds
}

func (f *Fault) validate() error {
	switch f.Kind {
	case FaultStatus:
		if f.Status < 300 || f.Status > 599 {
			return fmt.Errorf("fault %q: status %d is not between 300 and 599", f.Kind, f.Status)
		}
	case FaultDelay:
		if f.Delay <= 0 {
			return fmt.Errorf("fault %q: delay %v is not positive", f.Kind, f.Delay)
		}
	case FaultHang, FaultReset, FaultGarbage, FaultCut, FaultShort, FaultDoubled, FaultReordered,
		FaultDimension, FaultEmpty, FaultZero, FaultNaN, FaultNull:
	default:
		return fmt.Errorf("unknown fault %q", f.Kind)
	}
	if f.MinTexts < 0 || f.Times < 0 {
		return fmt.Errorf("fault %q: min_texts and times must not be negative", f.Kind)
	}
	return nil
}

// hits reports whether the fault concerns a call with these texts.
func (f *Fault) hits(texts []string) bool {
	least := f.MinTexts
	if f.Kind == FaultDoubled {
		least = max(least, 2)
	}
	if len(texts) < least {
		return false
	}
	for _, text := range texts {
		if strings.Contains(text, f.Match) {
			return true
		}
	}
	return false
}

// spoil changes the vector of a text as the fault wants it, into JSON.
func (f *Fault) spoil(text string, vector []float32) []byte {
	if !strings.Contains(text, f.Match) {
		return appendVector([]byte("["), vector)
	}
	switch f.Kind {
	case FaultDimension:
		return appendVector([]byte("["), append(vector, 1))
	case FaultEmpty:
		return []byte("[]")
	case FaultZero:
		clear(vector)
		return appendVector([]byte("["), vector)
	case FaultNaN:
		return appendVector([]byte("[NaN"), vector[1:])
	case FaultNull:
		return appendVector([]byte("[null"), vector[1:])
	}
	return appendVector([]byte("["), vector)
}

// rearrange changes the order of a reply's entries as the fault wants it.
func (f *Fault) rearrange(entries []entry) []entry {
	switch last := len(entries) - 1; f.Kind {
	case FaultShort:
		return entries[:last]
	case FaultDoubled:
		entries[last] = entries[0]
	case FaultReordered:
		for i := range len(entries) / 2 {
			entries[i], entries[last-i] = entries[last-i], entries[i]
		}
	}
	return entries
}

// retryAfter sets the header, if the fault has one.
func (f *Fault) retryAfter(h http.Header) {
	if f.RetryAfter != "" {
		h.Set("Retry-After", f.RetryAfter)
	}
}
