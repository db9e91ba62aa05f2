package weaviate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

// Whatever a text consists of, an object that was written is not missing.
func TestNothingIsMissingWhateverItsText(t *testing.T) {
	s := openStore(t, Options{URL: needServer(t).url, GRPC: realServer.grpc, Collection: "AnyText"})
	dropCollections(t, s)
	var objects []sinks.Object
	for i, text := range []string{
		"the the a an and", "a", "I", ".", "— … !", " ", "", "\x00", "\U0001F600", "日本語の文章です。", "日", "ประเทศไทยเป็นประเทศ", "слово", "И", "C++ C# .NET", "e-mail@example.org",
		"it's l’été naïve Straße", strings.Repeat("QmFzZTY0", 2000), strings.Repeat("日本語", 3000), `"quoted" \back\ {brace} ^2 ~1 *`, "ﬁ ﷺ İ ǆ", "\u202Ertl\u202C שלום عربى",
		"0 1.5 1,000,000", "\u200b\u200b", "e\u0301", "NULL", "true", "a\nb\tc", "100%", "--", "OR", "AND NOT",
	} {
		subject := rag.Subject{DocumentID: fmt.Sprint("any ", i, " \"'\\ ☃"), Revision: rag.Revision{Version: 1}}
		v := make([]float32, testDimensions)
		for j := range v {
			v[j] = float32((i*7+j*j+3)%11) - 4.5
		}
		objects = append(objects, sinks.Object{ID: rag.ChunkID("", subject.DocumentID, subject.Revision, 0).String(), Vector: v,
			Chunk: rag.Chunk{Subject: subject, Count: 1, Text: text}})
	}
	for i, r := range s.Upsert(context.Background(), objects, nil) {
		if r.Err != nil {
			t.Errorf("%q: %s: %v", objects[i].Chunk.Text, r.Outcome, r.Err)
		}
	}
	missing, err := s.Missing(context.Background(), objects)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range missing {
		t.Errorf("%.40q is missing", objects[i].Chunk.Text)
	}
}

// An object whose insertion was cut short can be the point at which searches begin: it is found itself, and nothing else is.
func TestAnObjectWithoutLinksIsMissing(t *testing.T) {
	for count, missing := range map[int]int{0: 0, 1: 0, neighbours - 1: 0, neighbours: 1, 500: 1} {
		f := newFake()
		f.finds, f.count = true, count
		s := openFake(t, f, Options{})
		written := objects(1)
		if r := s.Upsert(t.Context(), written, nil); r[0].Outcome != sinks.Done {
			t.Fatalf("%+v", r)
		}
		if got, err := s.Missing(t.Context(), written); err != nil || len(got) != missing {
			t.Errorf("found alone in a store of %d: missing are %v, %v", count, got, err)
		}
	}
}
