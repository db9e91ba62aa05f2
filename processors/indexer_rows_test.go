package processors_test

import (
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

func TestVersionIsIndexed(t *testing.T) {
	s := subject("doc", "m1", 4)
	for name, history := range map[string][]stagetest.Step{
		"manifest first": {manifest(s, 3), receipt(s, 0, 2), receipt(s, 2, 3)},
		"manifest last":  {receipt(s, 2, 3), receipt(s, 0, 2), manifest(s, 3)},
		"receipts twice": {receipt(s, 2, 3), receipt(s, 2, 3), manifest(s, 3), receipt(s, 0, 2), receipt(s, 0, 3)},
	} {
		t.Run(name, func(t *testing.T) {
			run := newIndexer().kit(t).Run(history...)
			want(t, run.Outputs(), "event indexer doc/m1@4.0 embedded", "event indexer doc/m1@4.0 indexed")
			row := stagetest.Row[ledger.DocumentRow](run, "doc")
			if row.Served.Revision != s.Revision || row.Served.Count != 3 || row.Fence != s.Revision.Version || len(row.Work) != 0 {
				t.Errorf("the row is %+v", row)
			}
			for _, e := range stagetest.Sent(run, topics.Events) {
				if e.Chunks != 3 {
					t.Errorf("the event %s counts %d chunks", e.Status, e.Chunks)
				}
			}
		})
	}
}

// What is said waits for the row: an event that a crash makes untrue could not be taken back.
func TestWordsWaitForTheRow(t *testing.T) {
	w := newIndexer()
	s := subject("doc", "m1", 0)
	m := stage.Message[rag.Progress]{Record: stage.Record{Topic: "progress", Partition: home([]byte("doc")), Offset: 9}, Key: "doc",
		Value: rag.Progress{Kind: rag.ProgressDelete, Subject: s, At: noon}}
	res, err := w.Handle(t.Context(), m, nil)
	check(t, err)
	if len(res.Outputs) != 0 || res.Row == nil {
		t.Errorf("outputs %v are sent before the row %+v", told(t, res.Outputs), res.Row)
	}
	want(t, res.Said, "event indexer doc/m1@0.0 deleted")
	if res.Row.Applied != version(9) {
		t.Errorf("applied %v, want %v", res.Row.Applied, version(9))
	}
}

func TestFinalsOfVerdicts(t *testing.T) {
	first, second := subject("doc", "m1", 0), subject("doc", "m2", 1)
	served := []stagetest.Step{manifest(first, 1), receipt(first, 0, 1), stagetest.Settled()}
	for name, tc := range map[string]struct {
		step   stagetest.Step
		lines  []string
		served rag.Revision
	}{
		"unchanged":  {verdict(second, rag.StatusUnchanged), []string{"event indexer doc/m2@1.0 unchanged"}, first.Revision},
		"superseded": {verdict(second, rag.StatusSuperseded), []string{"event indexer doc/m2@1.0 superseded"}, first.Revision},
		"deleted":    {deletion(second), []string{"event indexer doc/m2@1.0 deleted"}, second.Revision},
		"dead": {verdict(second, rag.StatusDead), []string{"event indexer doc/m2@1.0 dead chunker:message:broken_json",
			"letter doc/m2@1.0 chunker:message:broken_json"}, first.Revision},
	} {
		t.Run(name, func(t *testing.T) {
			run := newIndexer().kit(t).Run(append(append([]stagetest.Step{}, served...), tc.step)...)
			want(t, finals(run)[2:], tc.lines...)
			if row := stagetest.Row[ledger.DocumentRow](run, "doc"); row.Served.Revision != tc.served {
				t.Errorf("served is %v, want %v", row.Served.Revision, tc.served)
			}
		})
	}
}

// finals are the records but those of removals.
func finals(run *stagetest.Run) []stage.Output {
	var outs []stage.Output
	for _, out := range run.Outputs() {
		if out.Topic != "progress" {
			outs = append(outs, out)
		}
	}
	return outs
}

func TestLaterVersionSupersedesWhatIsInWork(t *testing.T) {
	first, second := subject("doc", "m1", 0), subject("doc", "m2", 1)
	run := newIndexer().kit(t).Run(manifest(first, 2), receipt(first, 0, 1), manifest(second, 1), receipt(second, 0, 1), receipt(first, 1, 2))
	want(t, finals(run), "event indexer doc/m1@0.0 superseded", "event indexer doc/m2@1.0 embedded", "event indexer doc/m2@1.0 indexed")
}

func TestRetries(t *testing.T) {
	w := newIndexer()
	s := subject("doc", "m1", 5)
	raw := rag.Raw{Key: []byte("doc"), Value: []byte("the bytes"), Headers: []rag.Header{{Key: []byte("h"), Value: nil}}, Timestamp: noon.Add(-time.Hour)}
	w.keeps(s, raw)
	run := w.kit(t).Run(
		manifest(s, 2),
		verdict(s, rag.StatusRetrying), // each failing chunk says so; the first one counts
		verdict(s, rag.StatusRetrying),
		stagetest.Settled(),
		verdict(attempt(s, 1), rag.StatusRetrying),
		stagetest.Settled(),
		verdict(attempt(s, 2), rag.StatusRetrying), // the third failure is the last
	)
	id := positionOf(s).String()
	want(t, finals(run),
		"event indexer doc/m1@5.0+1 retrying embedder:transient:embedder_error",
		"schedule "+id+" doc/m1@5.0+1 retrying embedder:transient:embedder_error",
		"event indexer doc/m1@5.0+2 retrying embedder:transient:embedder_error",
		"schedule "+id+" doc/m1@5.0+2 retrying embedder:transient:embedder_error",
		"event indexer doc/m1@5.0+2 dead embedder:transient:embedder_error",
		"letter doc/m1@5.0+2 embedder:transient:embedder_error",
	)
	for i, c := range stagetest.Sent(run, topics.Commands) {
		if due := noon.Add(time.Duration(i+1) * time.Minute); !c.Due.Equal(due) {
			t.Errorf("retry %d is due at %v, want %v", i+1, c.Due, due)
		}
		wantRaw(t, c.Original, raw)
	}
}

func TestFinalsCloseLetters(t *testing.T) {
	s := subject("doc", "m1", 5)
	id := positionOf(s).String()
	w := newIndexer()
	w.keeps(s, rag.Raw{Key: []byte("doc"), Timestamp: noon})
	again := attempt(s, 1)
	run := w.kit(t).Run(manifest(s, 1), verdict(s, rag.StatusRetrying), stagetest.Settled(), manifest(again, 1), receipt(again, 0, 1))
	want(t, finals(run)[2:], "event indexer doc/m1@5.0+1 embedded", "event indexer doc/m1@5.0+1 indexed", "close "+id+" doc/m1@5.0+1 indexed")

	replay := generation(s, 1)
	run = newIndexer().kit(t).Run(verdict(s, rag.StatusDead), stagetest.Settled(), verdict(replay, rag.StatusSuperseded))
	want(t, finals(run)[2:], "event indexer doc/m1@5.1 superseded", "close "+id+" doc/m1@5.1 superseded")

	run = newIndexer().kit(t).Run(verdict(s, rag.StatusDead), stagetest.Settled(), manifest(replay, 1), receipt(replay, 0, 1))
	want(t, finals(run)[2:], "event indexer doc/m1@5.1 embedded", "event indexer doc/m1@5.1 indexed", "close "+id+" doc/m1@5.1 indexed")
}

func TestFinalsAreNotChanged(t *testing.T) {
	s := subject("doc", "m1", 5)
	run := newIndexer().kit(t).Run(verdict(s, rag.StatusDead), stagetest.Settled(), manifest(s, 1), receipt(s, 0, 1), verdict(s, rag.StatusSuperseded))
	want(t, finals(run), "event indexer doc/m1@5.0 dead chunker:message:broken_json", "letter doc/m1@5.0 chunker:message:broken_json")
}

func TestForeignProgressIsIgnored(t *testing.T) {
	run := newIndexer().kit(t).Run(
		stagetest.Raw(stage.Record{Topic: "progress", Key: []byte("doc"), Value: []byte("no progress")}),
		stagetest.Tombstone("progress", "doc"),
		stagetest.Message(topics.Progress, "another key", rag.Progress{Kind: rag.ProgressDelete, Subject: subject("doc", "m", 0), At: noon}),
	)
	want(t, run.Outputs())
	if stagetest.Row[ledger.DocumentRow](run, "doc") != nil || stagetest.Row[ledger.DocumentRow](run, "another key") != nil {
		t.Error("a row was written")
	}
}

func TestProgressBeyondAVersionHoldsThePartition(t *testing.T) {
	m := stage.Message[rag.Progress]{Record: stage.Record{Offset: rag.MaxOffset + 1}, Key: "doc", Value: rag.Progress{Kind: rag.ProgressDelete, Subject: subject("doc", "m", 0)}}
	if _, err := newIndexer().Handle(t.Context(), m, nil); stage.ClassOf(err) != stage.ClassOutage || stage.ReasonOf(err, "") != "epoch" {
		t.Errorf("the error is %v", err)
	}
}
