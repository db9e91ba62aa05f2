package embed_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		vector []float32
		dims   int
		want   string // "" if it passes
	}{
		{"good", []float32{0.6, 0.8}, 2, ""},
		{"good, any length", []float32{0.6, 0.8}, 0, ""},
		{"nil", nil, 0, "bad_vector: the vector is empty"},
		{"empty", []float32{}, 2, "bad_vector: the vector is empty"},
		{"short", []float32{1}, 2, "bad_vector: the vector has 1 dimensions, expected 2"},
		{"long", []float32{1, 2, 3}, 2, "bad_vector: the vector has 3 dimensions, expected 2"},
		{"NaN", []float32{1, nan}, 2, "bad_vector: element 1 of the vector is NaN"},
		{"infinite", []float32{inf, 1}, 2, "bad_vector: element 0 of the vector is +Inf"},
		{"zero", []float32{0, 0}, 2, "bad_vector: the vector is zero"},
		{"its square underflows", []float32{1e-30, 1e-30}, 2, "bad_vector: the vector is zero"},
		{"its square overflows", []float32{1e30, 1}, 2, "bad_vector: the vector is too long to be normalised"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := embed.Check(c.vector, c.dims)
			if got := text(err); got != c.want {
				t.Fatalf("Check = %q, want %q", got, c.want)
			}
			if err != nil && embed.ClassOf(err) != rag.ClassTransient {
				t.Fatalf("class %q, want transient", embed.ClassOf(err))
			}
		})
	}
}

// TestCheckedVectorsHaveACosine: what passes can be normalised in single precision.
func TestCheckedVectorsHaveACosine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float32(), 0, 8).Draw(t, "vector")
		if embed.Check(v, len(v)) != nil {
			return
		}
		var square float64
		for _, x := range v {
			square += float64(x) * float64(x)
		}
		if k := 1 / float32(math.Sqrt(float64(float32(square)))); k == 0 || math.IsInf(float64(k), 0) || math.IsNaN(float64(k)) {
			t.Fatalf("%v passes and has no direction", v)
		}
	})
}

func TestErrorClass(t *testing.T) {
	cause := errors.New("connection refused")
	out := &embed.Error{Class: rag.ClassOutage, Reason: embed.ReasonUnavailable, RetryAfter: time.Second, Err: cause}
	if got := embed.ClassOf(fmt.Errorf("embed 3 texts: %w", out)); got != rag.ClassOutage {
		t.Errorf("wrapped outage has class %q", got)
	}
	if got := embed.ClassOf(cause); got != rag.ClassTransient {
		t.Errorf("an unknown error has class %q, want transient", got)
	}
	if !errors.Is(out, cause) {
		t.Error("the cause is lost")
	}
	if got, want := out.Error(), "embedder_unavailable: connection refused"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if got := (&embed.Error{Reason: embed.ReasonUnknown}).Error(); got != "embedder_error" {
		t.Errorf("without a cause Error() = %q", got)
	}
}

func TestDone(t *testing.T) {
	for _, c := range []struct {
		result embed.Result
		want   bool
	}{{embed.Result{}, false}, {embed.Result{Vector: []float32{1}}, true}, {embed.Result{Err: errors.New("refused")}, true}} {
		if got := c.result.Done(); got != c.want {
			t.Errorf("%+v: Done = %v", c.result, got)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
