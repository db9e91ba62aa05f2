package ledger_test

import (
	"reflect"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

type said struct {
	revision rag.Revision
	status   rag.Status
	letter   ledger.LetterWord
}

func saidAt(row *ledger.DocumentRow, cause rag.Version) (s []said) {
	for _, w := range ledger.Say("d", row, cause) {
		s = append(s, said{w.Subject.Revision, w.Status, w.Letter})
	}
	return s
}

func TestWhatARowSays(t *testing.T) {
	v1, v2, replayed := rev(1, 0), rev(2, 0), rev(1, 1)
	for name, c := range map[string]struct {
		ps   []rag.Progress
		want []said
	}{
		"a manifest says nothing": {[]rag.Progress{manifest(v1, 2)}, nil},
		"a receipt in between says nothing": {
			[]rag.Progress{manifest(v1, 2), receipt(v1, 0, 1)}, nil},
		"the completing receipt says embedded, then indexed": {
			[]rag.Progress{manifest(v1, 2), receipt(v1, 0, 2)},
			[]said{{v1, rag.StatusEmbedded, ledger.LetterNone}, {v1, rag.StatusIndexed, ledger.LetterNone}}},
		"it says what it supersedes first": {
			[]rag.Progress{manifest(v1, 2), manifest(v2, 2), receipt(v2, 0, 2)},
			[]said{{v1, rag.StatusSuperseded, ledger.LetterNone}, {v2, rag.StatusEmbedded, ledger.LetterNone}, {v2, rag.StatusIndexed, ledger.LetterNone}}},
		"a delete": {[]rag.Progress{deletion(v1)}, []said{{v1, rag.StatusDeleted, ledger.LetterNone}}},
		"a dead version has a letter": {
			[]rag.Progress{verdict(v1, rag.StatusDead, 0)}, []said{{v1, rag.StatusDead, ledger.LetterDead}}},
		"a retry is scheduled": {
			[]rag.Progress{manifest(v1, 2), verdict(v1, rag.StatusRetrying, 0)}, []said{{v1, rag.StatusRetrying, ledger.LetterSchedule}}},
		"a later verdict of the same attempt says nothing": {
			[]rag.Progress{verdict(v1, rag.StatusRetrying, 0), verdict(v1, rag.StatusRetrying, 0)}, nil},
		"superseded while a retry waits closes its letter": {
			[]rag.Progress{verdict(v1, rag.StatusRetrying, 0), deletion(v2)},
			[]said{{v1, rag.StatusSuperseded, ledger.LetterClose}, {v2, rag.StatusDeleted, ledger.LetterNone}}},
		"a replay that ends well closes its letter": {
			[]rag.Progress{verdict(v1, rag.StatusDead, 0), manifest(replayed, 1), receipt(replayed, 0, 1)},
			[]said{{replayed, rag.StatusEmbedded, ledger.LetterNone}, {replayed, rag.StatusIndexed, ledger.LetterClose}}},
		"a replay that dies has a letter again": {
			[]rag.Progress{verdict(v1, rag.StatusDead, 0), verdict(replayed, rag.StatusDead, 0)}, []said{{replayed, rag.StatusDead, ledger.LetterDead}}},
	} {
		t.Run(name, func(t *testing.T) {
			row := progress(c.ps...)
			if got := saidAt(row, row.Applied); !reflect.DeepEqual(got, c.want) {
				t.Errorf("says %v, want %v", got, c.want)
			}
		})
	}
}

func TestARedeliverySaysItAgain(t *testing.T) {
	row := progress(manifest(rev(1, 0), 1), receipt(rev(1, 0), 0, 1), verdict(rev(2, 0), rag.StatusRetrying, 0))
	before := ledger.Say("d", row, 2)
	row = progressAfter(row, manifest(rev(2, 0), 1), manifest(rev(3, 0), 4))
	if again := ledger.Say("d", row, 2); len(before) != 2 || !reflect.DeepEqual(before, again) {
		t.Errorf("said %+v, again %+v", before, again)
	}
	if again := saidAt(row, 3); len(again) != 1 || again[0].status != rag.StatusRetrying {
		t.Errorf("the retry says %+v", again)
	}
}

func TestAWordCarriesWhatItsReadersNeed(t *testing.T) {
	p := verdict(rev(1, 0), rag.StatusRetrying, 0)
	row := progress(manifest(rev(1, 0), 7), p)
	w := ledger.Say("d", row, 2)[0]
	want := ledger.Word{Subject: rag.Subject{DocumentID: "d", MessageID: "m1", Revision: rev(1, 0), Attempt: 1, Partition: 3},
		Status: rag.StatusRetrying, Chunks: 7, Failure: p.Failure, Letter: ledger.LetterSchedule, Due: row.Work[rev(1, 0)].RetryDue,
		FirstFailed: noon, At: noon}
	if !reflect.DeepEqual(w, want) {
		t.Errorf("said %+v, want %+v", w, want)
	}
}

func TestTheLatestVersionForPeople(t *testing.T) {
	v1, v2 := rev(1, 0), rev(2, 0)
	warned := manifest(v1, 2)
	warned.Warnings = []string{"no text on page 3"}
	for name, c := range map[string]struct {
		ps    []rag.Progress
		want  rag.Status
		rev   rag.Revision
		count int
	}{
		"in work":                               {[]rag.Progress{warned}, rag.StatusChunked, v1, 2},
		"a retry lasts until the final":         {[]rag.Progress{verdict(v1, rag.StatusRetrying, 0), warned}, rag.StatusRetrying, v1, 2},
		"after the final its status":            {[]rag.Progress{warned, receipt(v1, 0, 2)}, rag.StatusIndexed, v1, 2},
		"the latest, though it died":            {[]rag.Progress{warned, receipt(v1, 0, 2), verdict(v2, rag.StatusDead, 0)}, rag.StatusDead, v2, 0},
		"unchanged has the chunks of the other": {[]rag.Progress{warned, receipt(v1, 0, 2), verdict(v2, rag.StatusUnchanged, 0)}, rag.StatusUnchanged, v2, 2},
		"a replay in work is later than its end": {[]rag.Progress{verdict(v2, rag.StatusDead, 0), manifest(rev(2, 1), 5)},
			rag.StatusChunked, rev(2, 1), 5},
	} {
		t.Run(name, func(t *testing.T) {
			cur, ok := ledger.Latest(progress(c.ps...))
			if !ok || cur.Status != c.want || cur.Revision != c.rev || cur.Chunks != c.count || cur.MessageID != messageID(c.rev.Version) {
				t.Errorf("latest is %+v", cur)
			}
			if c.rev == v1 && len(cur.Warnings) != 1 {
				t.Errorf("warnings are lost: %+v", cur)
			}
		})
	}
	if _, ok := ledger.Latest(&ledger.DocumentRow{Applied: 4}); ok {
		t.Error("a row without versions has a latest one")
	}
	if _, ok := ledger.Latest(nil); ok {
		t.Error("no row has a latest version")
	}
}
