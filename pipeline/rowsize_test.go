package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// A document may have thousands of versions in work, and thousands that have died, all with the longest ids and reasons: its
// row fits into a record all the same, or its partition would stand still.
func TestLargestDocumentRowFits(t *testing.T) {
	noon := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	id := func(v rag.Version) string {
		return fmt.Sprintf("%s%08d", strings.Repeat("m", rag.MaxMessageIDBytes-8), v)
	}
	failure := &rag.Failure{Stage: "indexer", Class: rag.ClassTransient, Reason: rag.ReasonStoreRefused, Message: strings.Repeat("s", 1<<10)}
	row := &ledger.DocumentRow{Applied: 1, Work: map[rag.Revision]ledger.Work{}, Finals: map[string]ledger.Final{}, Due: map[rag.Removal]time.Time{}}
	for v := rag.Version(1); v <= 10_000; v++ {
		rev := rag.Revision{Version: v}
		row.Finals[id(v)] = ledger.Final{Revision: rev, Status: rag.StatusDead, Cause: v, Count: 100, Failure: failure, FirstFailed: noon, At: noon}
		row.Due[rag.Removal{Exact: true, Revision: rev}] = noon
	}
	row.Applied = 10_001
	for v := rag.Version(10_001); len(row.Work) < 1_000; v++ { // that many keep the sentences of their failures
		row.Work[rag.Revision{Version: v}] = ledger.Work{MessageID: id(v), Count: 100, Confirmed: ledger.Bitmap{1, 2}, Attempt: 1, RetryCause: 1, RetryDue: noon, Failure: failure, FirstFailed: noon, At: noon}
	}
	for v := rag.Version(11_001); len(row.Work) < ledger.MaxInWork; v++ {
		row.Work[rag.Revision{Version: v}] = ledger.Work{MessageID: id(v), Count: 100, Confirmed: ledger.Bitmap{1, 2}, At: noon}
	}
	row = ledger.ForgetFinals(row, row.Applied, noon, ledger.DefaultKeep)
	checkFits(t, row)
}

// Versions in work may have many warnings and the bitmaps of huge documents, and so may those that have ended: whatever the
// next record does, the row fits.
func TestLargeEntriesOfDocumentRowFit(t *testing.T) {
	noon := time.Date(2026, 5, 6, 12, 0, 0, 0, time.UTC)
	id := func(v rag.Version) string {
		return fmt.Sprintf("%s%08d", strings.Repeat("m", rag.MaxMessageIDBytes-8), v)
	}
	const at = rag.Version(1) << 48
	warnings := slices.Repeat([]string{strings.Repeat("w", 512)}, 32)
	failure := &rag.Failure{Stage: "indexer", Class: rag.ClassTransient, Reason: rag.ReasonStoreRefused, Message: strings.Repeat("s", 1<<10)}
	settings := ledger.Settings{Keep: ledger.DefaultKeep}
	for _, c := range []struct {
		name   string
		finals int // all of them with warnings and a sentence
		work   int
		chunks int // confirmed of each
	}{
		{"warnings", 10_000, 10_000, 10},
		{"huge documents", 10_000, 1_000, 250_000},
		{"the largest documents", 256, 300, ledger.MaxChunks - 100},
		{"large documents", 5_000, 9_000, 5_000},
	} {
		confirmed := ledger.Bitmap{}.With(0, c.chunks)
		base := &ledger.DocumentRow{Applied: at + 1, Work: map[rag.Revision]ledger.Work{}, Finals: map[string]ledger.Final{}, Due: map[rag.Removal]time.Time{}}
		v := at
		for range c.finals {
			v++
			rev := rag.Revision{Version: v}
			base.Finals[id(v)] = ledger.Final{Revision: rev, Status: rag.StatusDead, Cause: at + 1, Count: c.chunks, Failure: failure, Warnings: warnings, FirstFailed: noon, At: noon}
			base.Due[rag.Removal{Exact: true, Revision: rev}] = noon
		}
		for n := range c.work {
			v++
			w := ledger.Work{MessageID: id(v), Count: ledger.MaxChunks, Confirmed: confirmed, Warnings: warnings, ContentIdentity: rag.Hash{1}, RetryCause: at, RetryDue: noon, FirstFailed: noon, At: noon}
			if n < 1_000 {
				w.Failure = failure
			}
			base.Work[rag.Revision{Version: v}] = w
		}
		last := rag.Subject{DocumentID: "doc", MessageID: id(v), Revision: rag.Revision{Version: v}}
		for name, p := range map[string]rag.Progress{
			"a receipt":             {Kind: rag.ProgressReceipt, Subject: last, At: noon, Confirmed: []rag.IndexRange{{From: 0, To: c.chunks + 1}}},
			"a manifest":            {Kind: rag.ProgressManifest, Subject: last, At: noon, Count: ledger.MaxChunks, Warnings: warnings},
			"a delete, and all end": {Kind: rag.ProgressDelete, Subject: last, At: noon},
		} {
			t.Run(c.name+" and "+name, func(t *testing.T) {
				checkFits(t, ledger.ApplyProgress(base, p, at+2, noon, settings))
			})
		}
	}
}

func checkFits(t *testing.T, row *ledger.DocumentRow) {
	t.Helper()
	out := pipeline.Topics(kafka.NewTopics("waymark"), time.Now).IndexerTable.Record("doc", *row)
	const frame, perHeader, producerMargin = 36, 10, 16 << 10 // as a producer counts, and what it keeps free
	n := frame + len(out.Key) + len(out.Value)
	for _, h := range out.Headers {
		n += perHeader + len(h.Key) + len(h.Value)
	}
	t.Logf("%d ends, %d versions in work: %d bytes", len(row.Finals), len(row.Work), n)
	if out.Err != nil || n > kafka.MaxRecordBytes-producerMargin {
		t.Errorf("the row has %d bytes (%v)", n, out.Err)
	}
}
