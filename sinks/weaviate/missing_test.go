package weaviate

import (
	"context"
	"errors"
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

// The first object that is whole is found alone, and is not repaired for that: it would be for ever.
func TestTheFirstWholeObjectNeedsNoOthers(t *testing.T) {
	f := newFake()
	f.finds, f.count = true, 100
	s := openFake(t, f, Options{})
	if r := s.Upsert(t.Context(), objects(1), map[int]bool{0: true}); r[0].Outcome != sinks.Done {
		t.Fatalf("%+v", r)
	}
}

// Of several records of an object the last is written, and repaired if any of them is to be.
func TestARepairIsNotLostToALaterRecord(t *testing.T) {
	f := newFake()
	f.finds = true
	s := openFake(t, f, Options{})
	o := objects(1)[0]
	for _, r := range s.Upsert(t.Context(), []sinks.Object{o, o}, map[int]bool{0: true}) {
		if r.Outcome != sinks.Done {
			t.Errorf("%+v", r)
		}
	}
	if deleted, written := f.seen(); len(deleted) != 1 || len(written) != 1 || len(written[0]) != 1 {
		t.Errorf("deleted at %v, written %d times", deleted, len(written))
	}
}

// A server that does not answer is not asked to delete every object before that is said.
func TestDeletionsEndWithTheFirstThatFails(t *testing.T) {
	f := newFake()
	f.refuses = true
	s := openFake(t, f, Options{})
	var ids []string
	for _, o := range objects(100) {
		ids = append(ids, o.ID)
	}
	if err := s.deleteIDs(t.Context(), ids); err == nil {
		t.Error("no error")
	}
	if deleted, _ := f.seen(); len(deleted) == 0 || len(deleted) > 2*deleters {
		t.Errorf("%d deletions were tried", len(deleted))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := s.deleteIDs(ended, ids); !errors.Is(err, context.Canceled) || classify(err).suspect {
		t.Errorf("what was not sent: %v, %+v", err, classify(err))
	}
}
