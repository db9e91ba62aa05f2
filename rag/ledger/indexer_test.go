package ledger_test

import (
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

var settings = ledger.Settings{Attempts: 3, RemovalDelay: 30 * time.Second,
	Backoff: func(attempt int) time.Duration { return time.Duration(attempt) * time.Second }, Keep: ledger.DefaultKeep}

func rev(v rag.Version, generation int) rag.Revision {
	return rag.Revision{Version: v, Generation: generation}
}

// about is what every progress record on a revision carries. Message ids are m1 for version 1, and so on.
func about(kind rag.ProgressKind, r rag.Revision, attempt int) rag.Progress {
	return rag.Progress{Kind: kind, At: noon, Subject: rag.Subject{DocumentID: "d", MessageID: messageID(r.Version), Revision: r, Attempt: attempt, Partition: 3}}
}

func messageID(v rag.Version) string { return string([]byte{'m', byte('0' + v)}) }

func manifest(r rag.Revision, count int) rag.Progress {
	p := about(rag.ProgressManifest, r, 0)
	p.Count, p.ContentIdentity = count, hash("identity")
	return p
}

func receipt(r rag.Revision, from, to int) rag.Progress {
	p := about(rag.ProgressReceipt, r, 0)
	p.Confirmed = []rag.IndexRange{{From: from, To: to}}
	return p
}

func verdict(r rag.Revision, s rag.Status, attempt int) rag.Progress {
	p := about(rag.ProgressVerdict, r, attempt)
	p.Status, p.Failure = s, &rag.Failure{Stage: "embedder", Class: rag.ClassTransient, Reason: "hiccup"}
	return p
}

func deletion(r rag.Revision) rag.Progress { return about(rag.ProgressDelete, r, 0) }

// progress applies the records at positions 1, 2, 3, …
func progress(ps ...rag.Progress) *ledger.DocumentRow { return progressAfter(nil, ps...) }

func progressAfter(row *ledger.DocumentRow, ps ...rag.Progress) *ledger.DocumentRow {
	for _, p := range ps {
		at := rag.Version(1)
		if row != nil {
			at = row.Applied + 1
		}
		row = ledger.ApplyProgress(row, p, at, noon, settings)
	}
	return row
}

func wantFinal(t *testing.T, row *ledger.DocumentRow, r rag.Revision, s rag.Status) {
	t.Helper()
	if f := row.Finals[messageID(r.Version)]; f.Status != s || f.Revision != r {
		t.Errorf("final of %v is %v %q, want %q", r, f.Revision, f.Status, s)
	}
	if _, working := row.Work[r]; working {
		t.Errorf("%v is still in work", r)
	}
}

func wantDue(t *testing.T, row *ledger.DocumentRow, removals ...rag.Removal) {
	t.Helper()
	if len(row.Due) != len(removals) {
		t.Errorf("due are %v, want %v", row.Due, removals)
	}
	for _, r := range removals {
		if at, ok := row.Due[r]; !ok || !at.Equal(noon.Add(settings.RemovalDelay)) {
			t.Errorf("%+v is due at %v (%v)", r, at, ok)
		}
	}
}

func below(r rag.Revision) rag.Removal   { return rag.Removal{Revision: r} }
func exactly(r rag.Revision) rag.Removal { return rag.Removal{Exact: true, Revision: r} }

func TestAVersionIsServedWhenAllItsChunksAreConfirmed(t *testing.T) {
	v1 := rev(1, 0)
	for name, c := range map[string]struct {
		ps     []rag.Progress
		served bool
	}{
		"receipts in order":                  {[]rag.Progress{manifest(v1, 3), receipt(v1, 0, 2), receipt(v1, 2, 3)}, true},
		"receipts in any order":              {[]rag.Progress{manifest(v1, 3), receipt(v1, 2, 3), receipt(v1, 0, 2)}, true},
		"a receipt before the manifest":      {[]rag.Progress{receipt(v1, 0, 3), manifest(v1, 3)}, true},
		"a doubled receipt":                  {[]rag.Progress{manifest(v1, 2), receipt(v1, 0, 1), receipt(v1, 0, 1), receipt(v1, 1, 2)}, true},
		"a chunk is missing":                 {[]rag.Progress{manifest(v1, 3), receipt(v1, 0, 1), receipt(v1, 2, 3)}, false},
		"a chunk counts once":                {[]rag.Progress{manifest(v1, 2), receipt(v1, 0, 1), receipt(v1, 0, 1)}, false},
		"no manifest yet":                    {[]rag.Progress{receipt(v1, 0, 3)}, false},
		"no receipt yet":                     {[]rag.Progress{manifest(v1, 1)}, false},
		"nonsense in a receipt":              {[]rag.Progress{manifest(v1, 1), receipt(v1, -5, 0), receipt(v1, 3, 1<<60)}, false},
		"receipts across a word's border":    {[]rag.Progress{manifest(v1, 130), receipt(v1, 0, 65), receipt(v1, 65, 130)}, true},
		"one of many is missing":             {[]rag.Progress{manifest(v1, 130), receipt(v1, 0, 129)}, false},
		"receipts beyond a smaller manifest": {[]rag.Progress{receipt(v1, 0, 3), manifest(v1, 2)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			row := progress(c.ps...)
			if got := row.Served.Revision == v1; got != c.served {
				t.Fatalf("served: %v, row %+v", got, row)
			}
			if c.served {
				wantFinal(t, row, v1, rag.StatusIndexed)
				if row.Fence != 1 || row.Served.ContentIdentity != hash("identity") {
					t.Errorf("row %+v", row)
				}
			}
		})
	}
}

func TestTheFence(t *testing.T) {
	v1, v2, v3 := rev(1, 0), rev(2, 0), rev(3, 0)
	served1 := progress(manifest(v1, 1), receipt(v1, 0, 1))
	t.Run("an accepted version does not move it", func(t *testing.T) {
		if row := progressAfter(served1, manifest(v2, 1)); row.Fence != 1 {
			t.Errorf("fence %d", row.Fence)
		}
	})
	t.Run("a version that dies supersedes nothing", func(t *testing.T) {
		row := progressAfter(served1, manifest(v2, 1), verdict(v3, rag.StatusDead, 0))
		wantFinal(t, row, v3, rag.StatusDead)
		if _, working := row.Work[v2]; !working || row.Fence != 1 || row.Served.Revision != v1 {
			t.Errorf("row %+v", row)
		}
		row = progressAfter(row, receipt(v2, 0, 1))
		wantFinal(t, row, v2, rag.StatusIndexed)
		if row.Served.Revision != v2 {
			t.Errorf("serves %v", row.Served.Revision)
		}
	})
	t.Run("an indexed version supersedes what is in work below it", func(t *testing.T) {
		row := progressAfter(served1, manifest(v2, 1), manifest(v3, 1), receipt(v3, 0, 1))
		wantFinal(t, row, v2, rag.StatusSuperseded)
		wantFinal(t, row, v3, rag.StatusIndexed)
		wantDue(t, row, exactly(v2), below(v3))
	})
	t.Run("an unchanged version moves it and leaves what is served", func(t *testing.T) {
		row := progressAfter(served1, verdict(v2, rag.StatusUnchanged, 0))
		wantFinal(t, row, v2, rag.StatusUnchanged)
		if row.Fence != 2 || row.Served.Revision != v1 || row.Finals["m2"].Count != 1 {
			t.Errorf("row %+v", row)
		}
	})
	t.Run("a delete serves nothing and supersedes what is in work below it", func(t *testing.T) {
		row := progressAfter(served1, manifest(v2, 1), deletion(v3))
		wantFinal(t, row, v2, rag.StatusSuperseded)
		wantFinal(t, row, v3, rag.StatusDeleted)
		if row.Fence != 3 || row.Served.Revision != v3 || row.Served.Count != 0 {
			t.Errorf("row %+v", row)
		}
		wantDue(t, row, exactly(v2), below(v3))
	})
	for name, p := range map[string]rag.Progress{"manifest": manifest(v1, 1), "delete": deletion(v1),
		"dead": verdict(v1, rag.StatusDead, 0), "retry": verdict(v1, rag.StatusRetrying, 0), "unchanged": verdict(v1, rag.StatusUnchanged, 0)} {
		t.Run("below it a "+name+" is superseded", func(t *testing.T) {
			row := progress(manifest(v2, 1), receipt(v2, 0, 1), p)
			wantFinal(t, row, v1, rag.StatusSuperseded)
			wantDue(t, row, exactly(v1))
			if row.Fence != 2 || row.Served.Revision != v2 {
				t.Errorf("row %+v", row)
			}
		})
	}
	t.Run("a chunk may be written at or above it until its version has ended", func(t *testing.T) {
		row := progressAfter(served1, manifest(v3, 2), verdict(v2, rag.StatusDead, 0))
		for r, want := range map[rag.Revision]bool{v1: false, v2: false, rev(2, 1): true, v3: true} {
			if got := ledger.FenceAllows(row, messageID(r.Version), r); got != want {
				t.Errorf("%v: %v", r, got)
			}
		}
		row = progressAfter(row, receipt(v3, 0, 2))
		if ledger.FenceAllows(row, "m2", rev(2, 1)) || ledger.FenceAllows(row, "m4", rev(2, 1)) {
			t.Error("below the fence a replay may be written")
		}
		if !ledger.FenceAllows(nil, "m1", v1) {
			t.Error("the first chunk of a document may not be written")
		}
	})
}

func TestRemovals(t *testing.T) {
	v1, v2 := rev(1, 0), rev(2, 0)
	served1 := progress(manifest(v1, 1), receipt(v1, 0, 1))
	t.Run("none after the first version of a document", func(t *testing.T) { wantDue(t, served1) })
	t.Run("what was served before goes later, and only what is lower", func(t *testing.T) {
		wantDue(t, progressAfter(served1, manifest(v2, 1), receipt(v2, 0, 1)), below(v2))
	})
	t.Run("the first version after one that died removes what is lower", func(t *testing.T) {
		wantDue(t, progress(verdict(v1, rag.StatusDead, 0), manifest(v2, 1), receipt(v2, 0, 1)), exactly(v1), below(v2))
	})
	for s, p := range map[rag.Status]rag.Progress{rag.StatusDead: verdict(v2, rag.StatusDead, 0), rag.StatusUnchanged: verdict(v2, rag.StatusUnchanged, 0),
		rag.StatusSuperseded: verdict(v2, rag.StatusSuperseded, 0)} {
		t.Run("a version that ends "+string(s)+" schedules the removal of exactly its own chunks", func(t *testing.T) {
			row := progressAfter(served1, p)
			wantFinal(t, row, v2, s)
			wantDue(t, row, exactly(v2))
		})
	}
	t.Run("a stray receipt schedules the removal of exactly its own chunks", func(t *testing.T) {
		row := progressAfter(served1, verdict(v2, rag.StatusDead, 0))
		row = progressAfter(row, removed(exactly(v2), row.Due[exactly(v2)]))
		wantDue(t, row)
		wantDue(t, progressAfter(row, receipt(v2, 0, 1)), exactly(v2))
	})
	t.Run("a stray receipt below the fence, too", func(t *testing.T) {
		wantDue(t, progress(manifest(v2, 1), receipt(v2, 0, 1), receipt(v1, 0, 1)), exactly(v1))
	})
	t.Run("a receipt of what is served is not stray", func(t *testing.T) {
		wantDue(t, progressAfter(served1, receipt(v1, 0, 1)))
	})
	t.Run("a receipt of an earlier generation of what is served is stray", func(t *testing.T) {
		row := progress(verdict(v1, rag.StatusDead, 0), manifest(rev(1, 1), 1), receipt(rev(1, 1), 0, 1))
		row.Due = nil
		wantDue(t, progressAfter(row, receipt(v1, 0, 1)), exactly(v1))
	})
	t.Run("removed clears what was done", func(t *testing.T) {
		row := progressAfter(served1, manifest(v2, 1), receipt(v2, 0, 1))
		wantDue(t, progressAfter(row, removed(below(v2), row.Due[below(v2)])))
	})
	t.Run("removed leaves what was scheduled again since", func(t *testing.T) {
		row := progressAfter(served1, manifest(v2, 1), receipt(v2, 0, 1))
		wantDue(t, progressAfter(row, removed(below(v2), row.Due[below(v2)].Add(-time.Second))), below(v2))
	})
	t.Run("the first due: time, then revision, then the exact one", func(t *testing.T) {
		soon, late := noon, noon.Add(time.Second)
		row := &ledger.DocumentRow{Due: map[rag.Removal]time.Time{below(v1): late, exactly(v2): soon, below(v2): soon, below(rev(2, 1)): soon}}
		for _, want := range []rag.Removal{exactly(v2), below(v2), below(rev(2, 1)), below(v1)} {
			got, at, ok := ledger.FirstDue(row)
			if !ok || got != want || !at.Equal(row.Due[want]) {
				t.Errorf("first is %+v at %v, want %+v", got, at, want)
			}
			delete(row.Due, want)
		}
		if _, _, ok := ledger.FirstDue(row); ok {
			t.Error("an empty row has something due")
		}
	})
}

func removed(r rag.Removal, due time.Time) rag.Progress {
	return rag.Progress{Kind: rag.ProgressRemoved, Subject: rag.Subject{DocumentID: "d"}, Removal: r, Due: due}
}
