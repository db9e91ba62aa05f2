package pdf

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Bounds of what is taken for a table. Text that is none must not become one; a table that is not found stays readable as lines.
const (
	leastRows    = 3
	maxColumns   = 40
	gutter       = 0.5  // of the height of a line, between columns, in all rows
	leastAligned = 0.7  // of a column's cells begin, end or are centred at the same place
	leastFilled  = 0.6  // of the cells say something
	maxCellRunes = 60   // on average; prose in columns has more
	maxPitch     = 3.2  // from row to row, of the height of a line
	sameHeight   = 0.15 // by which part heights may differ
	// mostSteps bounds how often the columns of a line of a document are tried, which takes some seconds: where many look like rows and are
	// none, each is tried as the first of all that follow.
	mostSteps = 4_000_000
)

// table is a run of lines that are its rows.
type table struct {
	first, count int
	rows         [][]string
}

// write writes the rows; the header is repeated with each group of them, as in tables of every format.
func (t table) write(w flow.Writer) {
	w.Table()
	for _, row := range t.rows {
		w.Row()
		for _, c := range row {
			w.Cell()
			w.Text(c)
		}
	}
	w.EndTable()
}

// tables finds the tables among the lines of a page, in their order. Lines that level says are headings are no rows. It takes what it
// does from steps, and finds no more where there are none left.
func tables(lines []line, level func(line) int, steps *int) []table {
	var found []table
	for i := 0; i < len(lines) && *steps > 0; {
		n := 0
		var cols columns
		for i+n < len(lines) && level(lines[i+n]) == 0 && (n == 0 || follows(lines[i+n-1], lines[i+n])) {
			wider, fits := cols.with(lines[i+n])
			if !fits {
				break
			}
			cols = wider
			n++
		}
		*steps -= n * len(cols.spans)
		cols = cols.joined(lines[i : i+n])
		t := table{first: i, count: n, rows: cols.arrange(lines[i : i+n])}
		if n >= leastRows && cols.aligned(lines[i:i+n]) && t.plausible() {
			found = append(found, t)
			i += n
			continue
		}
		i++
	}
	return found
}

// follows reports whether a line may be the row below another.
func follows(a, b line) bool {
	drop := a.top - b.top
	return drop > 0.5*b.height && drop < maxPitch*max(a.height, b.height) && math.Abs(a.height-b.height) <= sameHeight*max(a.height, b.height)
}

// columns are the parts of the width that cells take, from left to right.
type columns struct {
	spans  []span
	height float64
}

type span struct{ left, right float64 }

// with adds the cells of a line. It does not fit if it has no cells, two of them would stand in one column, columns would run
// into each other so that fewer than two stay, or there would be too many.
func (c columns) with(l line) (columns, bool) {
	if len(l.cells) < 2 || len(l.cells) > maxColumns || bullet.MatchString(l.cells[0].text) || slices.ContainsFunc(l.cells, func(c cell) bool { return leader.MatchString(c.text) }) {
		return c, false
	}
	height := max(c.height, l.height)
	spans := slices.Clone(c.spans)
	for _, cell := range l.cells {
		spans = append(spans, span{cell.left, cell.right})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(math.Copysign(1, a.left-b.left)) })
	merged := spans[:1]
	for _, s := range spans[1:] {
		if last := &merged[len(merged)-1]; s.left < last.right+gutter*height {
			last.right = max(last.right, s.right)
		} else {
			merged = append(merged, s)
		}
	}
	wider := columns{merged, height}
	if len(merged) < max(2, len(c.spans)) || len(merged) > maxColumns { // a cell over two columns is a line of text, or another table
		return c, false
	}
	taken := map[int]bool{}
	for _, cell := range l.cells {
		i := wider.of(cell)
		if taken[i] {
			return c, false
		}
		taken[i] = true
	}
	return wider, true
}

// joined makes one column of two where one row has a cell in the first alone and the others in the second alone, or the other way
// round: a header that begins at the left above numbers that end at the right.
func (c columns) joined(lines []line) columns {
	for i := 0; i+1 < len(c.spans) && len(c.spans) > 2; i++ {
		left, right, both := 0, 0, false
		for _, l := range lines {
			in := [2]bool{}
			for _, cell := range l.cells {
				if at := c.of(cell) - i; at == 0 || at == 1 {
					in[at] = true
				}
			}
			both = both || in[0] && in[1]
			if in[0] {
				left++
			}
			if in[1] {
				right++
			}
		}
		if !both && min(left, right) == 1 && max(left, right) > 1 {
			spans := slices.Clone(c.spans)
			spans[i].right = spans[i+1].right
			c.spans = slices.Delete(spans, i+1, i+2)
		}
	}
	return c
}

// of is the column in which a cell stands.
func (c columns) of(in cell) int {
	for i, s := range c.spans {
		if in.left <= s.right {
			return i
		}
	}
	return len(c.spans) - 1
}

// arrange puts the cells of lines into their columns.
func (c columns) arrange(lines []line) [][]string {
	rows := make([][]string, len(lines))
	for i, l := range lines {
		rows[i] = make([]string, len(c.spans))
		for _, cell := range l.cells {
			rows[i][c.of(cell)] = cell.text
		}
	}
	return rows
}

// aligned reports whether in every column most cells begin, end or are centred at the same place. A header may stand elsewhere.
func (c columns) aligned(lines []line) bool {
	tolerance := 0.35 * c.height
	for i := range c.spans {
		var lefts, rights, centres []float64
		for _, l := range lines {
			for _, cell := range l.cells {
				if c.of(cell) == i {
					lefts, rights, centres = append(lefts, cell.left), append(rights, cell.right), append(centres, (cell.left+cell.right)/2)
				}
			}
		}
		least := int(math.Ceil(leastAligned * float64(len(lefts))))
		if len(lefts) > 3 {
			least = min(least, len(lefts)-1)
		} else {
			least = max(min(2, len(lefts)), len(lefts)-1)
		}
		if max(closest(lefts, tolerance), closest(rights, tolerance), closest(centres, tolerance)) < least {
			return false
		}
	}
	return true
}

// closest is how many of the places lie within the tolerance of one of them.
func closest(places []float64, tolerance float64) int {
	slices.Sort(places)
	best, from := 0, 0
	for to := range places {
		for places[to]-places[from] > 2*tolerance {
			from++
		}
		best = max(best, to-from+1)
	}
	return best
}

var (
	// leader leads to a page's number, or is a line to write on.
	leader = regexp.MustCompile(`[._…·-]{4,}|(\. ){3,}|…`)
	// bullet and marker begin an item of a list.
	bullet = regexp.MustCompile(`^(?:[•▪◦‣●○■□▶✓➢–—*·-]|\p{Co})$`)
	marker = regexp.MustCompile(`^(?:\(?(?:\d{1,3}|[a-zA-Zа-яА-Я]|[ivxlcIVXLC]{1,5})[.)]|\[\d{1,3}\]|(?:\d{1,3}\.){1,5}\d{0,3})$`)
	// pageNumber is one, in digits or Roman.
	pageNumber = regexp.MustCompile(`^(?:\d{1,4}|[ivxlc]{1,7})$`)
	pageWords  = regexp.MustCompile(`(?i)^(?:pages?|p\.|pp\.|seiten?|página|pagina|стр\.?|страниц[аы])$`)
)

// plausible reports whether the rows are those of a table, not of a list, a table of contents, a form or prose in columns.
func (t table) plausible() bool {
	width := len(t.rows[0])
	filled, runes := 0, 0
	var columns [][]string
	for c := range width {
		var column []string
		for _, row := range t.rows {
			if row[c] != "" {
				filled++
				runes += utf8.RuneCountInString(row[c])
			}
			column = append(column, row[c])
		}
		columns = append(columns, column)
	}
	switch {
	case float64(filled) < leastFilled*float64(width*len(t.rows)), runes > maxCellRunes*filled:
		return false
	case share(columns[0], marker.MatchString) > 0.6 && (width == 2 || proseLike(columns)):
		return false
	case width == 2 && share(columns[0], func(s string) bool { return strings.HasSuffix(s, ":") }) > 0.5:
		return false
	}
	return !contents(columns) && !proseLike(columns)
}

// share is that of the cells that say something for which it is true.
func share(column []string, is func(string) bool) float64 {
	n, all := 0, 0
	for _, s := range column {
		if s != "" {
			if all++; is(s) {
				n++
			}
		}
	}
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// contents reports whether the last column has the numbers of pages: growing, below no header but "page".
func contents(columns [][]string) bool {
	last := columns[len(columns)-1]
	if !pageNumber.MatchString(last[0]) {
		if len(columns) > 2 && !pageWords.MatchString(last[0]) || len(columns) == 2 && !pageWords.MatchString(last[0]) && share(columns[0][1:], unnumbered) < 0.5 {
			return false
		}
		if !pageWords.MatchString(last[0]) && strings.ContainsFunc(last[0], unicode.IsLetter) {
			return false
		}
		last = last[1:]
	}
	before := 0
	for _, s := range last {
		if s == "" {
			continue
		}
		if !pageNumber.MatchString(s) {
			return false
		}
		n, err := strconv.Atoi(s)
		if err != nil {
			continue // Roman
		}
		if n < before {
			return false
		}
		before = n
	}
	return true
}

func unnumbered(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) }

// proseLike reports whether two columns at least are running text: of several words in a cell, most of which go on in the middle of a
// sentence.
func proseLike(columns [][]string) bool {
	prose := 0
	for _, column := range columns {
		continued := share(column[1:], func(s string) bool {
			r, _ := utf8.DecodeRuneInString(s)
			return unicode.IsLower(r)
		})
		words := 0
		for _, s := range column {
			words += len(strings.Fields(s))
		}
		if continued > 0.35 && words >= 3*len(column) {
			prose++
		}
	}
	return prose >= 2 || prose == 1 && len(columns) == 2
}
