package pdf

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// layout is what is typical of a document.
type layout struct {
	height float64   // of its text
	pitch  float64   // from line to line
	sizes  []float64 // of headings, from the largest
}

// headingRatio is how much larger than the text a heading is.
const headingRatio = 1.14

// maxHeading bounds a heading, in bytes.
const maxHeading = 200

func (d *document) layout() layout {
	weight, sizes, pitches := map[float64]int{}, map[float64]int{}, map[float64]int{}
	for _, p := range d.pages {
		for i, l := range p.lines {
			weight[half(l.height)] += len(l.text)
			if len(l.text) <= maxHeading {
				sizes[half(l.height)]++
			}
			if i > 0 && p.lines[i-1].top > l.top {
				pitches[half(p.lines[i-1].top-l.top)]++
			}
		}
	}
	lay := layout{height: most(weight), pitch: most(pitches)}
	for s := range sizes {
		if lay.height > 0 && s >= lay.height*headingRatio {
			lay.sizes = append(lay.sizes, s)
		}
	}
	slices.SortFunc(lay.sizes, func(a, b float64) int { return int(math.Copysign(1, b-a)) })
	return lay
}

// half rounds to half points.
func half(v float64) float64 { return math.Round(v*2) / 2 }

// most is the key with the highest count, of equal ones the lowest.
func most(counts map[float64]int) float64 {
	best, n := 0.0, 0
	for k, c := range counts {
		if c > n || c == n && k < best {
			best, n = k, c
		}
	}
	return best
}

// level of the heading that a line is, 0 if it is none.
func (lay layout) level(l line) int {
	if l.height < lay.height*headingRatio || len(l.text) > maxHeading || !strings.ContainsFunc(l.text, unicode.IsLetter) {
		return 0
	}
	return min(slices.Index(lay.sizes, half(l.height))+1, 6)
}

// write writes the pages' lines as headings, items of lists and paragraphs.
func (d *document) write(w flow.Writer) {
	lay := d.layout()
	repeated := d.repeated()
	steps := mostSteps
	for i, p := range d.pages {
		w.Page(i + 1)
		var before *line
		lines := kept(p.lines, repeated)
		tables := tables(lines, lay.level, &steps)
		for i := 0; i < len(lines); i++ {
			if w.Full() {
				return
			}
			if len(tables) > 0 && tables[0].first == i {
				tables[0].write(w)
				i += tables[0].count - 1
				tables, before = tables[1:], nil
				continue
			}
			l := lines[i]
			l.short = before != nil && endsShort(lines, i-1)
			w.Text(lay.begin(w, before, l))
			before = &l
		}
	}
}

// begin begins a block before a line, or joins the line to the one before, and returns the text of the line.
func (lay layout) begin(w flow.Writer, before *line, l line) string {
	level := lay.level(l)
	item, isItem := afterBullet(l.text)
	switch {
	case before != nil && level > 0 && lay.level(*before) == level && lay.near(*before, l):
		w.Text(joint(before.text, l.text))
	case level > 0:
		w.Heading(level)
	case isItem:
		w.Item(0, "-")
		return item
	case before == nil || lay.level(*before) > 0 || lay.parts(*before, l):
		w.Paragraph()
	default:
		w.Text(joint(before.text, l.text))
	}
	return l.text
}

// near reports whether a line follows another without a gap.
func (lay layout) near(a, b line) bool {
	drop := a.top - b.top
	return drop < 0.5 || drop <= 1.6*max(a.height, b.height)
}

// parts reports whether a paragraph ends between two lines.
func (lay layout) parts(a, b line) bool {
	if a.height == 0 || b.height == 0 {
		return false
	}
	drop := a.top - b.top
	ended := strings.ContainsAny(lastRune(a.text), ".!?:;。！？…»\"”)")
	switch {
	case drop < -1: // a new column, or something beside the text
		return ended
	case drop > 1.3*max(lay.pitch, 0.9*lay.height) && drop > 1.3*a.height:
		return true
	case math.Abs(a.height-b.height) > 0.15*max(a.height, b.height):
		return ended
	case b.short:
		return true
	}
	return ended && b.left-a.left > 0.8*b.height && drop > 0.5*b.height
}

// marginLines is how many lines before and behind a line tell where lines end that begin at the same place.
const marginLines = 8

// endsShort reports whether the line at i ends where the first word of the next one would have had room, and more: nobody broke
// it for lack of space. Rows of tables, addresses and verses are such lines.
func endsShort(lines []line, i int) bool {
	a, b := lines[i], lines[i+1]
	word, _, _ := strings.Cut(b.text, " ")
	if a.right == 0 || b.right <= b.left || len(b.text) == 0 || a.top-b.top < 0.5*b.height {
		return false
	}
	margin := a.right
	for _, l := range lines[max(0, i-marginLines):min(len(lines), i+1+marginLines)] {
		if math.Abs(l.left-a.left) < 2*a.height && math.Abs(l.height-a.height) < 0.15*a.height {
			margin = max(margin, l.right)
		}
	}
	width := (b.right - b.left) * float64(utf8.RuneCountInString(word)) / float64(utf8.RuneCountInString(b.text))
	return margin-a.right > width+2*b.height
}

// joint is what stands between two lines of a paragraph: nothing between ideographs.
func joint(a, b string) string {
	last, _ := utf8.DecodeLastRuneInString(a)
	first, _ := utf8.DecodeRuneInString(b)
	if unicode.In(last, unicode.Han, unicode.Hiragana, unicode.Katakana) && unicode.In(first, unicode.Han, unicode.Hiragana, unicode.Katakana) {
		return ""
	}
	return " "
}

func lastRune(s string) string {
	_, n := utf8.DecodeLastRuneInString(s)
	return s[len(s)-n:]
}

// afterBullet is what follows the bullet that a line begins with, if it is an item of a list.
func afterBullet(s string) (string, bool) {
	r, n := utf8.DecodeRuneInString(s)
	known := strings.ContainsRune("•▪◦‣●○■□▶✓➢\uf0b7\uf0a7", r)
	// Fonts of signs, such as Symbol, Wingdings and OpenSymbol, have their bullets here.
	sign := unicode.Is(unicode.Co, r) && strings.HasPrefix(s[n:], " ")
	if (known || sign) && len(s) > n {
		return s[n:], true
	}
	return s, false
}
