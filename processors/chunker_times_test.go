package processors_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// A submission is accepted at the time of its record, which its producer has set and which may be any. What became of it
// happens now: a document does not die before it was read.
func TestTimes(t *testing.T) {
	old := noon.AddDate(-3, 0, 0)
	c := newChunker()
	value := func(key string, value []byte, headers ...stage.Header) stage.Record {
		return stage.Record{Topic: "documents", Partition: home([]byte(key)), Offset: 7, Timestamp: old, Key: []byte(key), Value: value, Headers: headers}
	}
	plain := header("content-type", "text/plain")
	for name, tc := range map[string]struct {
		record stage.Record
		row    *ledger.DocumentRow
		status rag.Status
	}{
		"indexed in the end": {value("doc", []byte("one line"), plain), nil, ""},
		"no key":             {stage.Record{Topic: "documents", Partition: home(nil), Offset: 7, Timestamp: old, Value: []byte("x"), Headers: []stage.Header{plain}}, nil, rag.StatusDead},
		"broken":             {value("doc", []byte(`{"text":`)), nil, rag.StatusDead},
		"no text":            {value("doc", []byte("scan"), plain), nil, rag.StatusDead},
		"deleted":            {value("doc", nil), nil, ""},
		"unchanged":          {value("doc", []byte("same"), plain), served(c, 3, "same"), rag.StatusUnchanged},
		"superseded":         {value("doc", []byte("late"), plain), served(c, 9, "later"), rag.StatusSuperseded},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.record
			before.Offset, before.Timestamp = 3, noon
			run := chunkerKit(t, c, func(r stage.Record) *ledger.DocumentRow {
				if r.Offset == before.Offset {
					return nil
				}
				return tc.row
			}).Run(stagetest.Raw(before), stagetest.Raw(tc.record))
			said := stagetest.Sent(run, topics.Progress)
			if len(said) != 2 || said[1].Status != tc.status || !said[1].At.Equal(noon) {
				t.Errorf("the indexer is told %+v", said)
			}
			for _, e := range stagetest.Sent(run, topics.Events) {
				if v := e.Revision.Version; v == version(7) && e.At.Equal(old) != (e.Status == rag.StatusAccepted) {
					t.Errorf("%s at %v", e.Status, e.At)
				}
			}
		})
	}
}
