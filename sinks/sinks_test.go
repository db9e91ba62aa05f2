package sinks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
)

func good() Object {
	return Object{
		ID: "0193d9ae-6f0e-7c3e-8d52-2f1d3f7c9a11", Vector: []float32{1, 2, 3},
		Chunk: rag.Chunk{Subject: rag.Subject{DocumentID: "d"}, Text: "text", Metadata: rag.Metadata{"a=b"}},
	}
}

func TestValidate(t *testing.T) {
	if err := Validate(good(), 3); err != nil {
		t.Fatal(err)
	}
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		field  string
		change func(*Object)
	}{
		{"id", func(o *Object) { o.ID = "" }},
		{"id", func(o *Object) { o.ID = "0193d9ae6f0e7c3e8d522f1d3f7c9a11" }},
		{"id", func(o *Object) { o.ID = "urn:uuid:" + o.ID }},
		{"vector", func(o *Object) { o.Vector = nil }},
		{"vector", func(o *Object) { o.Vector = []float32{1, 2} }},
		{"vector", func(o *Object) { o.Vector = []float32{1, 2, 3, 4} }},
		{"vector", func(o *Object) { o.Vector = []float32{1, nan, 3} }},
		{"vector", func(o *Object) { o.Vector = []float32{1, 2, -inf} }},
		{"vector", func(o *Object) { o.Vector = []float32{0, 0, 0} }},
		{"vector", func(o *Object) { o.Vector = []float32{1e-20, 0, 0} }},
		{"vector", func(o *Object) { o.Vector = []float32{1e20, 0, 0} }},
		{"document_id", func(o *Object) { o.Chunk.DocumentID = "" }},
		{"document_id", func(o *Object) { o.Chunk.DocumentID = "\xff" }},
		{"document_id", func(o *Object) { o.Chunk.DocumentID = string(make([]byte, 513)) }},
		{"version", func(o *Object) { o.Chunk.Revision.Version = -1 }},
		{"version", func(o *Object) { o.Chunk.Revision.Version = 1<<53 + 1 }},
		{"version", func(o *Object) { o.Chunk.Revision.Generation = -1 }},
		{"index", func(o *Object) { o.Chunk.Index = -1 }},
		{"text", func(o *Object) { o.Chunk.Text = "\xc3" }},
		{"title", func(o *Object) { o.Chunk.Title = "\xc3" }},
		{"source", func(o *Object) { o.Chunk.Source = "\xc3" }},
		{"heading", func(o *Object) { o.Chunk.Heading = "\xc3" }},
		{"metadata", func(o *Object) { o.Chunk.Metadata = rag.Metadata{"a=\xc3"} }},
		{"metadata", func(o *Object) { o.Chunk.Metadata = rag.Metadata{"a"} }},
	} {
		o := good()
		c.change(&o)
		var objectError *ObjectError
		if err := Validate(o, 3); !errors.As(err, &objectError) || objectError.Field != c.field || objectError.ID != o.ID {
			t.Errorf("Validate(%+v) = %v, want an error of %s", o, err, c.field)
		}
	}
}

func TestSpace(t *testing.T) {
	if err := (Space{Model: "m", Dimensions: MaxDimensions}).Validate(); err != nil {
		t.Error(err)
	}
	for _, s := range []Space{{}, {Model: "m"}, {Dimensions: 3}, {Model: "m", Dimensions: -1}, {Model: "m", Dimensions: MaxDimensions + 1}} {
		if s.Validate() == nil {
			t.Errorf("%+v is valid", s)
		}
	}
}

func TestFuse(t *testing.T) {
	for _, c := range []struct{ cosine, bm25, best, want float64 }{
		{0.5, 0, 0, 0.5}, {0.5, 3, 3, 0.5 + TextWeight}, {0.5, 1, 4, 0.5 + TextWeight/4}, {-1, 0, 2, -1},
	} {
		if got := Fuse(c.cosine, c.bm25, c.best); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("Fuse(%v, %v, %v) = %v, want %v", c.cosine, c.bm25, c.best, got, c.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	err := fmt.Errorf("upsert: %w", &RetryAfterError{After: 3 * time.Second, Err: errors.New("busy")})
	if got := RetryAfter(err); got != 3*time.Second {
		t.Errorf("RetryAfter = %v", got)
	}
	if got := RetryAfter(errors.New("x")); got != 0 {
		t.Errorf("RetryAfter of another error = %v", got)
	}
}

// Whatever is filtered out, Widen gives the first n that are left, as long as the last limit reaches them.
func TestWiden(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kept := rapid.SliceOfN(rapid.Bool(), 0, 3000).Draw(rt, "kept")
		n := rapid.IntRange(1, 50).Draw(rt, "n")
		limit := rapid.IntRange(1, 4000).Draw(rt, "max")
		limits := Limits(n, limit)
		if !slices.IsSorted(limits) || limits[len(limits)-1] != limit {
			rt.Fatalf("Limits(%d, %d) = %v", n, limit, limits)
		}
		fetch := func(_ context.Context, limit int, each func(int) bool) error {
			for i := range min(limit, len(kept)) {
				if !each(i) {
					return nil
				}
			}
			return nil
		}
		got, err := Widen(context.Background(), n, limits, fetch, func(i int) bool { return kept[i] })
		if err != nil {
			rt.Fatal(err)
		}
		var want []int
		for i := range min(len(kept), limit) {
			if kept[i] && len(want) < n {
				want = append(want, i)
			}
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("Widen = %v, want %v", got, want)
		}
	})
	failed := errors.New("failed")
	_, err := Widen(context.Background(), 1, []int{1}, func(context.Context, int, func(int) bool) error { return failed }, func(int) bool { return true })
	if !errors.Is(err, failed) {
		t.Errorf("a failing fetch gives %v", err)
	}
}

func TestQueryKeeps(t *testing.T) {
	if !(Query{}).Keeps("d", rag.Revision{}) {
		t.Error("without Served a chunk is not let through")
	}
	q := Query{Served: func(document string, rev rag.Revision) bool { return document == "d" && rev.Version == 2 }}
	if q.Keeps("d", rag.Revision{Version: 1}) || q.Keeps("e", rag.Revision{Version: 2}) || !q.Keeps("d", rag.Revision{Version: 2}) {
		t.Error("Served is not asked")
	}
}
