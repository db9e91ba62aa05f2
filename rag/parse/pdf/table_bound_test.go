package pdf

import (
	"fmt"
	"slices"
	"testing"
)

// rowsAt are lines with two cells each, one below the other.
func rowsAt(n int, label func(i int) string) []line {
	var lines []line
	for i := range n {
		lines = append(lines, line{text: "x", left: 10, right: 300, top: float64(n-i) * 12, height: 10,
			cells: []cell{{label(i), 10, 60}, {fmt.Sprint("value ", i), 100, 150}}})
	}
	return lines
}

// However many lines of a page look like rows and are none, looking for tables among them ends soon; what is a table is found first.
func TestLookingForTablesIsBounded(t *testing.T) {
	table := rowsAt(10, func(i int) string { return fmt.Sprint("name ", i) })
	for i := range table {
		table[i].top += 1e6 // far above what follows
	}
	form := rowsAt(20_000, func(i int) string { return fmt.Sprintf("label %d:", i) })
	steps := 100_000
	found := tables(slices.Concat(table, form), func(line) int { return 0 }, &steps)
	if len(found) != 1 || found[0].count != len(table) {
		t.Errorf("found %d tables", len(found))
	}
	if steps > 0 || steps < -2*len(form) {
		t.Errorf("%d steps are left", steps)
	}
}

// Rows whose cells stand in ever other places are not one table of all these columns.
func TestColumnsAreBounded(t *testing.T) {
	var c columns
	added := 0
	for i := range 3 * maxColumns {
		left := float64(20 * i)
		wider, ok := c.with(line{height: 10, cells: []cell{{"a", left, left + 2}, {"b", left + 10, left + 12}}})
		if ok {
			c = wider
			added++
		}
	}
	if len(c.spans) > maxColumns || added < maxColumns/2 {
		t.Errorf("%d columns of %d rows", len(c.spans), added)
	}
}
