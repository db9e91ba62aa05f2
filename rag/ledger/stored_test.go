package ledger_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

func TestStored(t *testing.T) {
	at := func(version rag.Version, generation int) rag.Revision {
		return rag.Revision{Version: version, Generation: generation}
	}
	row := &ledger.DocumentRow{
		Fence:  7,
		Served: ledger.Served{Revision: at(7, 1), Count: 3},
		Work: map[rag.Revision]ledger.Work{
			at(9, 0): {Confirmed: ledger.Bitmap{}.With(2, 4)},
			at(5, 0): {Confirmed: ledger.Bitmap{}.With(0, 9)},
		},
	}
	for _, tc := range []struct {
		name  string
		row   *ledger.DocumentRow
		rev   rag.Revision
		index int
		want  bool
	}{
		{"served", row, at(7, 1), 2, true},
		{"behind the served ones", row, at(7, 1), 3, false},
		{"another generation of what is served", row, at(7, 0), 2, false},
		{"in work and confirmed", row, at(9, 0), 3, true},
		{"in work and not confirmed", row, at(9, 0), 4, false},
		{"below the fence", row, at(5, 0), 2, false},
		{"an unknown version", row, at(8, 0), 2, false},
		{"no row", nil, at(7, 1), 0, false},
		{"a negative index", row, at(7, 1), -1, false},
		{"deleted", &ledger.DocumentRow{Fence: 7, Served: ledger.Served{Revision: at(7, 0)}}, at(7, 0), 0, false},
	} {
		if got := ledger.Stored(tc.row, tc.rev, tc.index); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}
