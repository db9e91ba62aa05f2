package sinks

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/waymarkhq/waymark/rag"
)

// Limits of what every sink takes.
const (
	// MaxK is the highest K of a query.
	MaxK = 1000
	// MaxDimensions is the highest number of dimensions of a vector.
	MaxDimensions = 8192

	maxVersion = 1 << 53 // integers above lose precision in some stores

	// Squares of the elements are summed in float32 by the stores: a norm outside of these overflows or vanishes there.
	minNorm = 1e-15
	maxNorm = 1e15
)

// Validate says why an object can never be stored in a store of vectors with the given dimensions: an id that is not a
// UUID in its canonical form, a vector of another length, not finite or without a direction, text that is not UTF-8.
// The error is an *ObjectError.
func Validate(o Object, dimensions int) error {
	fail := func(field, format string, args ...any) error {
		return &ObjectError{ID: o.ID, Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if len(o.ID) != 36 || uuid.Validate(o.ID) != nil {
		return fail("id", "is not a UUID")
	}
	if problem := vectorProblem(o.Vector, dimensions); problem != "" {
		return fail("vector", "%s", problem)
	}
	c := &o.Chunk
	if c.DocumentID == "" || len(c.DocumentID) > rag.MaxDocumentIDBytes {
		return fail("document_id", "is empty or longer than %d bytes", rag.MaxDocumentIDBytes)
	}
	if v := c.Revision.Version; v < 0 || v > maxVersion || c.Revision.Generation < 0 {
		return fail("version", "%s is negative or above 2^53", c.Revision)
	}
	if c.Index < 0 {
		return fail("index", "%d is negative", c.Index)
	}
	for _, f := range []struct{ name, value string }{
		{"document_id", c.DocumentID}, {"text", c.Text}, {"title", c.Title}, {"source", c.Source}, {"heading", c.Heading}, {"parent", c.Parent.Text},
	} {
		if !utf8.ValidString(f.value) {
			return fail(f.name, "is not UTF-8")
		}
	}
	return validateMetadata(c.Metadata, fail)
}

func validateMetadata(m rag.Metadata, fail func(field, format string, args ...any) error) error {
	for _, pair := range m {
		if !utf8.ValidString(pair) {
			return fail("metadata", "%q is not UTF-8", pair)
		}
		if !strings.Contains(pair, "=") {
			return fail("metadata", "%q is not key=value", pair)
		}
	}
	return nil
}

// vectorProblem says what is wrong with a vector; "" if nothing is.
func vectorProblem(v []float32, dimensions int) string {
	if len(v) != dimensions {
		return fmt.Sprintf("has %d dimensions, not %d", len(v), dimensions)
	}
	var sum float64
	for i, x := range v {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Sprintf("is not finite at %d", i)
		}
		sum += f * f
	}
	switch norm := math.Sqrt(sum); {
	case norm == 0:
		return "is zero: it has no direction"
	case norm < minNorm || norm > maxNorm:
		return fmt.Sprintf("has the norm %g, outside of %g to %g", norm, minNorm, maxNorm)
	}
	return ""
}

// Validate says which part of a query is unusable, as a *QueryError. The vector is looked at where the mode needs it.
func (q Query) Validate(dimensions int) error {
	if q.K < 1 || q.K > MaxK {
		return &QueryError{"k", fmt.Sprintf("%d is not between 1 and %d", q.K, MaxK)}
	}
	switch q.Mode {
	case ModeHybrid, ModeVector:
		if problem := vectorProblem(q.Vector, dimensions); problem != "" {
			return &QueryError{"vector", problem}
		}
	case ModeText:
	default:
		return &QueryError{"mode", fmt.Sprintf("%q is not one of %s, %s and %s", q.Mode, ModeHybrid, ModeVector, ModeText)}
	}
	if len(q.Metadata) > rag.MaxMetadata {
		return &QueryError{"metadata", fmt.Sprintf("has %d filters, more than %d", len(q.Metadata), rag.MaxMetadata)}
	}
	for _, pair := range q.Metadata {
		if !strings.Contains(pair, "=") {
			return &QueryError{"metadata", fmt.Sprintf("filter %q is not key=value", pair)}
		}
	}
	return nil
}
