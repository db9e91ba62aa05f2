package embed

import (
	"fmt"
	"math"

	"github.com/waymarkhq/waymark/rag"
)

// smallestNormal is the smallest float32 with full precision.
const smallestNormal = 0x1p-126

// Check reports why a vector must not be stored: another length than dims (0: any but none), a value that is not
// finite, or a length that single precision cannot tell from zero or from infinity, where cosine distance is undefined.
// The error is an *Error of class transient with rag.ReasonBadVector: a service may answer better next time.
func Check(vector []float32, dims int) error {
	switch {
	case len(vector) == 0:
		return badVector("the vector is empty")
	case dims > 0 && len(vector) != dims:
		return badVector("the vector has %d dimensions, expected %d", len(vector), dims)
	}
	var square float64
	for i, x := range vector {
		f := float64(x)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return badVector("element %d of the vector is %v", i, x)
		}
		square += f * f
	}
	if square < smallestNormal {
		return badVector("the vector is zero")
	}
	if square > math.MaxFloat32 {
		return badVector("the vector is too long to be normalised")
	}
	return nil
}

func badVector(format string, args ...any) error {
	return &Error{Class: rag.ClassTransient, Reason: rag.ReasonBadVector, Err: fmt.Errorf(format, args...)}
}
