package pdf

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// cell is a part of a line that stands apart from the others.
type cell struct {
	text        string
	left, right float64
}

const (
	// cellGap is what part of the height of a line a gap is that parts cells: no space between words is as wide, but for a few in
	// lines that are justified badly.
	cellGap = 0.8
	// sparseRatio is how much wider than the page's text, for its number of characters, a line with gaps is.
	sparseRatio = 1.12
	// fewRunes is what a line must have to say how wide the text is.
	fewRunes = 20
)

// raw is a line as PDFium gives it, and how many runes of the page are before it.
type raw struct {
	text string
	at   int
}

// findCells parts the lines that may be rows of a table. Asking for the place of every word would take longer than reading the
// page, so that only lines are asked about that are wide for what they say, and those beside lines that turned out to have cells.
func (r reader) findCells(lines []line, raws []raw) {
	usual := usualSpread(lines)
	asked := make([]bool, len(lines))
	ask := func(i int) {
		if i < 0 || i >= len(lines) || asked[i] || lines[i].turned || lines[i].right <= lines[i].left {
			return
		}
		asked[i] = true
		lines[i].cells = r.cells(raws[i], lines[i].height)
	}
	for i, l := range lines {
		if s := l.spread(); s > sparseRatio*usual {
			ask(i)
		}
	}
	for i := range lines {
		if len(lines[i].cells) > 1 {
			ask(i - 1)
			ask(i + 1)
		}
	}
}

// spread is how wide a line is for the characters that it has: about 1 where nothing stands apart.
func (l line) spread() float64 {
	width := 0.0
	for _, c := range l.text {
		if unicode.In(c, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			width++
		} else {
			width += 0.5
		}
	}
	if width == 0 || l.height <= 0 || l.right <= l.left {
		return 0
	}
	return (l.right - l.left) / (width * l.height)
}

// usualSpread is that of the page's lines, at most 1: on a page of tables none is usual.
func usualSpread(lines []line) float64 {
	var all []float64
	for _, l := range lines {
		if s := l.spread(); s > 0 && utf8.RuneCountInString(l.text) >= fewRunes {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return 1
	}
	slices.Sort(all)
	return min(all[len(all)/2], 1)
}

// cells parts a line where its characters stand apart, and sets spaces in the smaller gaps that PDFium took for none; nil if there
// are not two parts at least.
func (r reader) cells(line raw, height float64) []cell {
	var found []cell
	var text strings.Builder
	var first, before place
	known, space := false, false // whether there is a character before, and a space behind it
	finish := func() {
		if s := clean(text.String()); s != "" {
			found = append(found, cell{s, first.left, before.right})
		}
		text.Reset()
	}
	n := 0
	for _, c := range line.text {
		at := line.at + n
		n++
		if unicode.IsSpace(c) {
			space = true
			continue
		}
		box, placed := r.box(at)
		switch distance := box.left - before.right; {
		case !placed:
			if space {
				text.WriteByte(' ')
			}
			space = false
			text.WriteRune(c)
			continue
		case !known:
			first = box
		case distance > cellGap*height:
			finish()
			first = box
		case space || distance > gap*height:
			text.WriteByte(' ')
		}
		text.WriteRune(c)
		before, known, space = box, true, false
	}
	finish()
	if len(found) < 2 {
		return nil
	}
	return found
}
