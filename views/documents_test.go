package views_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/views"
)

func TestDocumentsAnswerWhatTheTableSays(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := start3(t)
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(5)), record(t, documentTable, "b", dead(6)))
	d := newDocuments(cfg, t.TempDir())
	ctx := kafkatest.Context(t)

	var notReady *views.NotReadyError
	if _, err := d.Get(ctx, "a"); !errors.As(err, &notReady) || notReady.Reason != views.ReasonRecovering {
		t.Fatalf("before Run: %v", err)
	}
	run(t, d)

	row, err := d.Get(ctx, "a")
	if err != nil || row == nil || row.Served.Revision.Version != 5 {
		t.Fatalf("row %+v, %v", row, err)
	}
	if row, err := d.Get(ctx, "missing"); row != nil || err != nil {
		t.Fatalf("missing row %+v, %v", row, err)
	}
	if rev, ok := d.Served("a"); !ok || rev.Version != 5 {
		t.Fatalf("served %v, %v", rev, ok)
	}
	for _, id := range []string{"b", "missing"} {
		if rev, ok := d.Served(id); ok {
			t.Fatalf("%s serves %v", id, rev)
		}
	}
	if got := d.Counts(); got[rag.StatusIndexed] != 1 || got[rag.StatusDead] != 1 || len(got) != 2 {
		t.Fatalf("counts %v", got)
	}

	// What comes later is seen, and takes its old place in the indexes away.
	kafkatest.Produce(t, cfg, record(t, documentTable, "b", indexed(7)))
	if _, err := d.Wait(ctx, "b", func(r *ledger.DocumentRow) bool { return r.Applied == 7 }); err != nil {
		t.Fatal(err)
	}
	if got := d.Counts(); got[rag.StatusIndexed] != 2 || len(got) != 1 {
		t.Fatalf("counts %v", got)
	}
	// A deleted document is served no more.
	gone := indexed(8)
	gone.Served.Count = 0
	kafkatest.Produce(t, cfg, record(t, documentTable, "b", gone))
	if _, err := d.Wait(ctx, "b", func(r *ledger.DocumentRow) bool { return r.Applied == 8 }); err != nil {
		t.Fatal(err)
	}
	if _, ok := d.Served("b"); ok {
		t.Fatal("a deleted document is served")
	}
	// A tombstone takes the row away.
	kafkatest.Produce(t, cfg, kafka.Record{Topic: documentTable.Name, Key: []byte("b")})
	if _, err := d.Wait(ctx, "b", func(r *ledger.DocumentRow) bool { return r == nil }); err != nil {
		t.Fatal(err)
	}
	if got := d.Counts(); got[rag.StatusIndexed] != 1 {
		t.Fatalf("counts %v", got)
	}
}

// A process that was stopped and goes on writes rows from before: they must not be shown again.
func TestDocumentsMergeInsteadOfOverwriting(t *testing.T) {
	cfg := start3(t)
	d := newDocuments(cfg, t.TempDir())
	run(t, d)
	ctx := kafkatest.Context(t)
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(9)), record(t, documentTable, "a", indexed(3)))
	drain(t, cfg, d)
	if row, err := d.Get(ctx, "a"); err != nil || row.Applied != 9 {
		t.Fatalf("row %+v, %v", row, err)
	}
	if rev, _ := d.Served("a"); rev.Version != 9 {
		t.Fatalf("served %v", rev)
	}
	page, err := d.List(ctx, views.DocumentQuery{Limit: 10})
	if err != nil || len(page) != 1 || page[0].ID != "a" || !page[0].At.Equal(at(9)) {
		t.Fatalf("list %+v, %v", page, err)
	}
}

func TestDocumentsStartFromTheLocalStore(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg, dir := start3(t), t.TempDir()
	var records []kafka.Record
	for i := range 50 {
		records = append(records, record(t, documentTable, fmt.Sprint(i), indexed(i+1)))
	}
	kafkatest.Produce(t, cfg, records...)
	stop := run(t, newDocuments(cfg, dir))
	stop()
	kafkatest.Produce(t, cfg, record(t, documentTable, "new", dead(99)))
	d := newDocuments(cfg, dir)
	run(t, d)
	if got := d.Counts(); got[rag.StatusIndexed] != 50 || got[rag.StatusDead] != 1 {
		t.Fatalf("counts %v", got)
	}
	page, err := d.List(t.Context(), views.DocumentQuery{Limit: 3})
	if err != nil || len(page) != 3 || page[0].ID != "new" || page[1].ID != "49" {
		t.Fatalf("list %+v, %v", page, err)
	}
	if rev, ok := d.Served("7"); !ok || rev.Version != 8 {
		t.Fatalf("served %v, %v", rev, ok)
	}
}

// Pages put together are the whole list, in order, for every status and page size.
func TestDocumentPages(t *testing.T) {
	cfg := start3(t)
	var records []kafka.Record
	type doc struct {
		id     string
		at     int
		status rag.Status
	}
	var all []doc
	statuses := []rag.Status{rag.StatusIndexed, rag.StatusDead, rag.StatusUnchanged, rag.StatusDeleted, rag.StatusSuperseded}
	for i := range 120 {
		d := doc{id: fmt.Sprintf("d%03d", i*7%120), at: i / 4, status: statuses[i%len(statuses)]} // four at a time
		all = append(all, d)
		row := indexed(i + 1)
		row.Finals["m"] = ledger.Final{Revision: rag.Revision{Version: rag.Version(i + 1)}, Status: d.status, At: at(d.at)}
		records = append(records, record(t, documentTable, d.id, row))
	}
	slices.SortFunc(all, func(a, b doc) int { return cmp.Or(cmp.Compare(b.at, a.at), cmp.Compare(a.id, b.id)) })
	kafkatest.Produce(t, cfg, records...)
	d := newDocuments(cfg, t.TempDir())
	run(t, d)
	rapid.Check(t, func(t *rapid.T) {
		status := rapid.SampledFrom(append(statuses, "", "chunked")).Draw(t, "status")
		limit := rapid.IntRange(1, 130).Draw(t, "limit")
		var want, got []string
		for _, d := range all {
			if status == "" || d.status == status {
				want = append(want, d.id)
			}
		}
		var after views.Mark
		for {
			page, err := d.List(t.Context(), views.DocumentQuery{Status: status, After: after, Limit: limit})
			if err != nil || len(page) > limit {
				t.Fatalf("%d entries, %v", len(page), err)
			}
			for _, e := range page {
				got = append(got, e.ID)
				after = views.Mark{At: e.At, ID: e.ID}
			}
			if len(page) < limit {
				break
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("status %q, %d a page: %v, want %v", status, limit, got, want)
		}
	})
}

func TestEachDocument(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := start3(t)
	d := newDocuments(cfg, t.TempDir())
	if err := d.Each(t.Context(), func(string, *ledger.DocumentRow) error { return nil }); err == nil {
		t.Error("a view that is not complete was walked through")
	}
	run(t, d)
	want := map[string]rag.Version{}
	for i := range 20 {
		id := fmt.Sprint("d", i)
		row := indexed(i + 1)
		if i == 3 {
			row = ledger.DocumentRow{Applied: 4} // nothing that lists show
		}
		want[id] = row.Applied
		kafkatest.Produce(t, cfg, record(t, documentTable, id, row))
	}
	if err := d.Fresh(kafkatest.Context(t)); err != nil { // what was acknowledged before is there, without waiting for it
		t.Fatal(err)
	}
	got := map[string]rag.Version{}
	if err := d.Each(t.Context(), func(id string, row *ledger.DocumentRow) error { got[id] = row.Applied; return nil }); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	stop := errors.New("stop")
	calls := 0
	if err := d.Each(t.Context(), func(string, *ledger.DocumentRow) error { calls++; return stop }); !errors.Is(err, stop) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}

func TestFreshEndsWithItsContext(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg := start3(t)
	d := newDocuments(cfg, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var notReady *views.NotReadyError
	if err := d.Fresh(ctx); !errors.As(err, &notReady) {
		t.Errorf("before it runs: %v", err)
	}
	run(t, d)
	if err := d.Fresh(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
