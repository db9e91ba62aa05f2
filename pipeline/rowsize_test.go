package pipeline_test

import (
	"fmt"
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
