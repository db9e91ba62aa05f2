package views_test

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/views"
)

func letter(i int, state rag.LetterState, stage, reason, document string) ledger.LetterRow {
	return ledger.LetterRow{
		ID: fmt.Sprintf("w.documents@0-0-%d", i), State: state, Cause: rag.Version(i + 1), CauseTopic: topics.Commands,
		Subject:    rag.Subject{DocumentID: document, MessageID: "m", Revision: rag.Revision{Version: rag.Version(i + 1)}},
		Position:   rag.Position{Topic: topics.Documents, Offset: int64(i)},
		Failure:    rag.Failure{Stage: stage, Class: rag.ClassMessage, Reason: reason},
		LastFailed: at(i / 3), FirstFailed: at(0), Attempts: 1,
		Original: rag.Raw{Key: []byte(document), Value: []byte("the bytes")},
	}
}

func newLetters(cfg kafka.Config, dir string) *views.Letters {
	return views.NewLetters(options(cfg, dir), letterTable, ledger.MergeLetterRow)
}

func TestLetters(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := start3(t)
	row := letter(1, rag.LetterWaiting, "chunker", "no_text", "d")
	kafkatest.Produce(t, cfg, record(t, letterTable, row.ID, row))
	l := newLetters(cfg, t.TempDir())
	run(t, l)
	ctx := kafkatest.Context(t)
	if got, err := l.Get(ctx, row.ID); err != nil || got == nil || string(got.Original.Value) != "the bytes" {
		t.Fatalf("letter %+v, %v", got, err)
	}
	page, err := l.List(ctx, views.LetterQuery{Limit: 5})
	if err != nil || len(page) != 1 || page[0].Original.Value != nil {
		t.Fatalf("list %+v, %v: the bytes are not for lists", page, err)
	}
	row.State, row.Cause = rag.LetterResolved, 50
	kafkatest.Produce(t, cfg, record(t, letterTable, row.ID, row))
	if _, err := l.Wait(ctx, row.ID, func(r *ledger.LetterRow) bool { return r.State == rag.LetterResolved }); err != nil {
		t.Fatal(err)
	}
	if got := l.Counts(); got[rag.LetterResolved] != 1 || len(got) != 1 {
		t.Fatalf("counts %v", got)
	}
}

// Pages put together are what a plain filter gives, for any filter and page size.
func TestLetterPages(t *testing.T) {
	cfg := start3(t)
	states := []rag.LetterState{rag.LetterWaiting, rag.LetterScheduled, rag.LetterSent, rag.LetterReplaying, rag.LetterResolved, rag.LetterDiscarded}
	stages, reasons, documents := []string{"chunker", "embedder", "indexer"}, []string{"no_text", "bad_vector"}, []string{"d1", "d2", "d3", "d4", "d5"}
	var all []ledger.LetterRow
	var records []kafka.Record
	for i := range 150 {
		row := letter(i, states[i%len(states)], stages[i%len(stages)], reasons[i/7%len(reasons)], documents[i/2%len(documents)])
		all = append(all, row)
		records = append(records, record(t, letterTable, row.ID, row))
	}
	slices.SortFunc(all, func(a, b ledger.LetterRow) int {
		return cmp.Or(b.LastFailed.Compare(a.LastFailed), cmp.Compare(a.ID, b.ID))
	})
	kafkatest.Produce(t, cfg, records...)
	l := newLetters(cfg, t.TempDir())
	run(t, l)
	times := []time.Time{{}, at(-1), at(0), at(7), at(7).Add(time.Nanosecond), at(8), at(49), at(50)}
	rapid.Check(t, func(t *rapid.T) {
		q := views.LetterQuery{
			State: rapid.SampledFrom(append(states, "")).Draw(t, "state"), Stage: rapid.SampledFrom(append(stages, "", "x")).Draw(t, "stage"),
			Reason: rapid.SampledFrom(append(reasons, "")).Draw(t, "reason"), DocumentID: rapid.SampledFrom(append(documents, "")).Draw(t, "document"),
			Limit: rapid.IntRange(1, 160).Draw(t, "limit"),
			Since: rapid.SampledFrom(times).Draw(t, "since"), Until: rapid.SampledFrom(times).Draw(t, "until"),
		}
		var want, got []string
		for _, r := range all {
			state := r.State == q.State || q.State == "" || q.State == rag.LetterReplaying && r.State == rag.LetterSent
			if state && (q.Stage == "" || r.Failure.Stage == q.Stage) && (q.Reason == "" || r.Failure.Reason == q.Reason) &&
				(q.DocumentID == "" || r.Subject.DocumentID == q.DocumentID) &&
				(q.Since.IsZero() || !r.LastFailed.Before(q.Since)) && (q.Until.IsZero() || r.LastFailed.Before(q.Until)) {
				want = append(want, r.ID)
			}
		}
		for {
			page, err := l.List(t.Context(), q)
			if err != nil || len(page) > q.Limit {
				t.Fatalf("%d letters, %v", len(page), err)
			}
			for _, r := range page {
				got = append(got, r.ID)
				q.After = views.Mark{At: r.LastFailed, ID: r.ID}
			}
			if len(page) < q.Limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("query %+v: %v, want %v", q, got, want)
		}
	})
}
