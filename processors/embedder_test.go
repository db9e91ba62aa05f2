package processors_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestOneVectorForEveryChunk(t *testing.T) {
	for name, service := range map[string]*fakeService{"paid": {}, "free": {free: true}} {
		t.Run(name, func(t *testing.T) {
			a, b := chunksOf(t, "a", "one", "three", "one"), chunksOf(t, "b", "one")
			run := embedderKit(t, service).Run(steps(a[0], a[1], a[2], b[0], a[1])...) // the last one comes again
			want(t, run.Outputs(),
				"vector a/m@0.0 0/3 [3 111]", "vector a/m@0.0 1/3 [5 116]", "vector a/m@0.0 2/3 [3 111]", "vector b/m@0.0 0/1 [3 111]", "vector a/m@0.0 1/3 [5 116]")
			for i, out := range run.Outputs() {
				if key := []string{"a", "a", "a", "b", "a"}[i]; string(out.Key) != key {
					t.Errorf("vector %d has the key %q, want %q", i, out.Key, key)
				}
			}
			row := stagetest.Row[wire.CachedVector](run, string(a[0].Key))
			if (row != nil) != service.Paid() {
				t.Errorf("the cache holds %v", row)
			}
		})
	}
}

func TestVectorKeepsItsChunk(t *testing.T) {
	outs := chunksOf(t, "a", "one", "two")
	run := embedderKit(t, &fakeService{}).Run(steps(outs...)...)
	for i, v := range stagetest.Sent(run, topics.Vectors) {
		if chunk := decode(t, topics.Chunks, outs[i]); fmt.Sprint(v.Chunk) != fmt.Sprint(chunk) {
			t.Errorf("the vector's chunk is %+v, want %+v", v.Chunk, chunk)
		}
	}
}

func TestEqualTextsInABatchShareOneCall(t *testing.T) {
	for name, service := range map[string]*fakeService{"paid": {}, "free": {free: true}} {
		t.Run(name, func(t *testing.T) {
			res := batch(t, newEmbedder(service), nil, slices.Concat(chunksOf(t, "a", "one", "two", "one"), chunksOf(t, "b", "two"))...)
			if len(service.calls) != 1 || !slices.Equal(service.asked(), []string{"one", "two"}) {
				t.Errorf("asked for %q", service.calls)
			}
			if len(res.Outputs) != 4 || len(res.Errors) != 0 {
				t.Errorf("sent %v, errors %v", told(t, res.Outputs), res.Errors)
			}
		})
	}
}

func TestCacheSavesTheCallNotTheOutput(t *testing.T) {
	service := &fakeService{}
	outs := chunksOf(t, "a", "one", "two")
	cached := map[string]*wire.CachedVector{string(outs[0].Key): {Values: []float32{7, 7}}}
	res := batch(t, newEmbedder(service), cached, outs...)
	want(t, res.Outputs, "vector a/m@0.0 0/2 [7 7]", "vector a/m@0.0 1/2 [3 116]")
	if !slices.Equal(service.asked(), []string{"two"}) {
		t.Errorf("asked for %q", service.asked())
	}
	if len(res.Rows) != 1 || res.Rows[string(outs[1].Key)] == nil {
		t.Errorf("rows %v: what was cached is written again, or what was embedded is not", res.Rows)
	}
	service.calls = nil
	cached[string(outs[1].Key)] = res.Rows[string(outs[1].Key)]
	res = batch(t, newEmbedder(service), cached, outs...)
	want(t, res.Outputs, "vector a/m@0.0 0/2 [7 7]", "vector a/m@0.0 1/2 [3 116]")
	if len(service.calls) != 0 || len(res.Rows) != 0 {
		t.Errorf("asked for %q, rows %v", service.calls, res.Rows)
	}
}

func TestUnusableCacheRows(t *testing.T) {
	outs := chunksOf(t, "a", "one")
	for name, values := range map[string][]float32{"empty": nil, "another length": {1, 2, 3}, "zero": {0, 0}} {
		service := &fakeService{}
		res := batch(t, newEmbedder(service), map[string]*wire.CachedVector{string(outs[0].Key): {Values: values}}, outs...)
		want(t, res.Outputs, "vector a/m@0.0 0/1 [3 111]")
		if len(service.asked()) != 1 || len(res.Rows) != 1 {
			t.Errorf("%s: asked for %q, rows %v", name, service.asked(), res.Rows)
		}
	}
}

// While a change of the model rolls through the pods, chunks come whose key names another model than this pod's: their
// vectors must neither be read from the cache of that model nor written into it.
func TestChunksOfAnotherModelPassTheCacheBy(t *testing.T) {
	c := newChunker()
	c.Model = "another model"
	res, err := c.Handle(t.Context(), message(document("a", "m", "one")), nil)
	check(t, err)
	chunk := res.Outputs[1]
	service := &fakeService{}
	got := batch(t, newEmbedder(service), map[string]*wire.CachedVector{string(chunk.Key): {Values: []float32{7, 7}}}, chunk)
	want(t, got.Outputs, "vector a/m@0.0 0/1 [3 111]")
	if len(got.Rows) != 0 || len(service.asked()) != 1 {
		t.Errorf("rows %v, asked for %q", got.Rows, service.asked())
	}
}

func TestMergeCachedVector(t *testing.T) {
	codec := topics.EmbedderTable.Codec
	same := func(a, b *wire.CachedVector) bool {
		x, err := codec.Encode(*a)
		check(t, err)
		y, err := codec.Encode(*b)
		check(t, err)
		return bytes.Equal(x, y)
	}
	rapid.Check(t, func(rt *rapid.T) {
		row := func(name string) *wire.CachedVector {
			return &wire.CachedVector{Values: rapid.SliceOfN(rapid.Float32(), 0, 3).Draw(rt, name)}
		}
		a, b, c := row("a"), row("b"), row("c")
		merge := processors.MergeCachedVector
		if !same(merge(a, a), a) || !same(merge(a, b), merge(b, a)) || !same(merge(merge(a, b), c), merge(a, merge(b, c))) {
			rt.Errorf("the merge of %v, %v and %v breaks a law", a, b, c)
		}
	})
}

func TestEmbedderCanary(t *testing.T) {
	service := &fakeService{canary: errors.New("away")}
	if err := newEmbedder(service).Canary(t.Context(), embed.ReasonUnavailable); !errors.Is(err, service.canary) || service.canaries != 1 {
		t.Errorf("the canary says %v after %d calls", err, service.canaries)
	}
}

func TestForeignChunksAreIgnored(t *testing.T) {
	run := embedderKit(t, &fakeService{}).Run(
		stagetest.Raw(stage.Record{Topic: "chunks", Key: []byte("k"), Value: []byte("no chunk")}),
		stagetest.Tombstone("chunks", "k"),
	)
	want(t, run.Outputs())
}

// Where the partition is lost, or a row could not be read, nobody is paid: the batch comes again.
func TestNothingIsAskedForABatchThatComesAgain(t *testing.T) {
	service, valid, read := &fakeService{}, true, 0
	b := stage.Batch[rag.Chunk, wire.CachedVector]{Valid: func() bool { return valid }, Row: func(string) *wire.CachedVector {
		read, valid = read+1, false
		return nil
	}}
	out := chunksOf(t, "a", "one")[0]
	b.Messages = append(b.Messages, stage.Message[rag.Chunk]{Key: string(out.Key), Value: decode(t, topics.Chunks, out)})
	res := newEmbedder(service).HandleBatch(t.Context(), b)
	if read != 1 || len(service.asked()) != 0 || len(res.Outputs) != 0 || stage.ClassOf(res.Errors[0]) != stage.ClassOutage {
		t.Errorf("read %d rows, asked %v, sent %d, errors %v", read, service.asked(), len(res.Outputs), res.Errors)
	}
}
