package parse

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

// tableRows are the lines of the blocks that are tables, without empty cells at their ends.
func tableRows(text Text) []string {
	var rows []string
	for _, b := range text.Blocks {
		if b.Kind != rag.BlockTable {
			continue
		}
		for line := range strings.Lines(text.Body[b.Start:b.End]) {
			rows = append(rows, strings.TrimRight(line, " |\n"))
		}
	}
	return rows
}

// Of the difficult PDF documents those have tables that are to have them, and their rows are whole; nothing else is a table.
func TestPDFTables(t *testing.T) {
	tables := 0
	for name, want := range hardFiles(t) {
		if filepath.Ext(name) != ".pdf" || name == "attached.pdf" { // whose attachment is a table of its own
			continue
		}
		var expected []string
		for line := range strings.Lines(want) {
			if strings.Contains(line, " | ") && name != "report.pdf" { // a table of two rows, one in the other
				expected = append(expected, strings.TrimSpace(line))
			}
		}
		text := mustParse(t, hardInput(t, name))
		rows := tableRows(text)
		if len(expected) > 0 {
			tables++
			header, without := expected[0], rows[:0:0]
			for i, r := range rows {
				if r != header || i == 0 {
					without = append(without, r)
				}
			}
			rows = without
		}
		if strings.Join(rows, "\n") != strings.Join(expected, "\n") {
			t.Errorf("%s: the rows are\n%s\nnot\n%s", name, strings.Join(rows, "\n"), strings.Join(expected, "\n"))
		}
	}
	if tables < 2 {
		t.Errorf("%d documents with tables", tables)
	}
}
