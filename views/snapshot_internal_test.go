package views

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// Whatever changes while snapshots are open, each says what was served when it was made; and what they keep is gone with the
// last of them.
func TestSnapshotsSayWhatWasServedThen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newDocumentIndex()
		d := &Documents{index: x}
		now := map[string]rag.Revision{}
		type open struct {
			s    *Snapshot
			then map[string]rag.Revision
		}
		var snapshots []open
		document := func() string { return fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "document")) }
		t.Repeat(map[string]func(*rapid.T){
			"serve": func(t *rapid.T) {
				id, rev := document(), rag.Revision{Version: rag.Version(rapid.Int64Range(1, 3).Draw(t, "version"))}
				x.put(0, id, &ledger.DocumentRow{Served: ledger.Served{Revision: rev, Count: 1}})
				now[id] = rev
			},
			"serve nothing": func(*rapid.T) {
				id := document()
				x.put(0, id, &ledger.DocumentRow{})
				delete(now, id)
			},
			"remove": func(*rapid.T) {
				id := document()
				x.remove(id, func() bool { return true })
				delete(now, id)
			},
			"open": func(*rapid.T) {
				s := &Snapshot{documents: d}
				x.open(s)
				then := map[string]rag.Revision{}
				for id, rev := range now {
					then[id] = rev
				}
				snapshots = append(snapshots, open{s, then})
			},
			"close": func(t *rapid.T) {
				if len(snapshots) == 0 {
					t.Skip("none is open")
				}
				i := rapid.IntRange(0, len(snapshots)-1).Draw(t, "which")
				snapshots[i].s.Close()
				snapshots[i].s.Close()
				snapshots = append(snapshots[:i:i], snapshots[i+1:]...)
			},
			"": func(t *rapid.T) {
				for _, o := range snapshots {
					for i := range 5 {
						id := fmt.Sprint(i)
						want, serves := o.then[id]
						if got, ok := o.s.Served(id); ok != serves || got != want {
							t.Fatalf("%s serves %v, %t in a snapshot in which it served %v, %t", id, got, ok, want, serves)
						}
					}
				}
				if len(snapshots) == 0 && len(x.history.before)+len(x.history.order) > 0 {
					t.Fatalf("kept for nobody: %v", x.history)
				}
			},
		})
	})
}
