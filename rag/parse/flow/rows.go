package flow

import (
	"strconv"
	"strings"
)

// RowGroup is about how many bytes of rows stand in one table before the header is repeated: what fits into a chunk of the
// default size with it.
const RowGroup = 500

// Rows writes rows of data as tables that stay readable in parts: the header is repeated with each group of rows.
type Rows struct {
	W       Writer
	header  []string
	open    bool
	size    int // of the rows of the group
	width   int // of the header
	waiting bool
}

// Header sets the header of the rows that follow. It is written with them.
func (r *Rows) Header(cells []string) {
	r.Finish()
	r.header, r.waiting, r.width = append([]string(nil), cells...), true, 0
	for _, c := range cells {
		r.width += len(c) + len(" | ")
	}
}

// Row writes a row.
func (r *Rows) Row(cells []string) {
	r.waiting = false
	if r.open && r.size >= max(RowGroup-r.width, 2*r.width) {
		r.End()
	}
	if !r.open {
		r.W.Table()
		r.open, r.size = true, 0
		if r.header != nil {
			r.write(r.header)
		}
	}
	r.size += r.write(cells)
}

func (r *Rows) write(cells []string) int {
	size := 0
	r.W.Row()
	for _, c := range cells {
		r.W.Cell()
		r.W.Text(c)
		size += len(c) + len(" | ")
	}
	return size
}

// End ends the table in hand. The header stays in force.
func (r *Rows) End() {
	if r.open {
		r.W.EndTable()
	}
	r.open = false
}

// Finish ends the rows; a header without rows is written as a row.
func (r *Rows) Finish() {
	r.End()
	if r.waiting {
		header := r.header
		r.header, r.width = nil, 0
		r.Row(header)
		r.End()
	}
}

// numberSigns are what numbers are written with, beside digits.
var numberSigns = strings.NewReplacer(",", "", "%", "", " ", "")

// LooksLikeHeader reports whether a row may be a header: two cells at least, all of them words.
func LooksLikeHeader(cells []string) bool {
	n := 0
	for _, c := range cells {
		c = strings.TrimSpace(c)
		if c == "" {
			continue
		}
		if _, err := strconv.ParseFloat(numberSigns.Replace(c), 64); err == nil || len(c) > 200 {
			return false
		}
		n++
	}
	return n >= 2 && n*2 > len(cells)
}
