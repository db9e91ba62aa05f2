package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// writer assembles the text of a document from its elements: blocks between blank lines, white space as a reader sees
// it, and the breadcrumb of headings.
type writer struct {
	limit  int // bytes of text; full reports that they do not suffice
	body   strings.Builder
	blocks []rag.Block
	crumbs [7]string // the heading in force at each level
	crumb  string    // of the headings in force

	kind  rag.BlockKind // of the block in hand
	level int
	cur   []byte // its text
	space bool   // white space was seen, and is written before the next text
	start int    // where the line in hand begins in cur
	said  bool   // the line has text, not only the marker of an item or the borders of cells
	page  int    // on which the block in hand begins; 0 if the format has none
	links int    // of how many links the text in hand is part
	plain int    // bytes of visible text outside links, of all blocks
}

func newWriter(limit int) *writer { return &writer{limit: limit, kind: rag.BlockParagraph} }

// full reports whether the text has outgrown its limit; what is written from then on is dropped.
func (w *writer) full() bool { return w.body.Len()+len(w.cur) > w.limit }

// empty reports whether nothing was written yet.
func (w *writer) empty() bool { return w.body.Len()+len(w.cur) == 0 }

// open ends the block in hand and begins another. A block without text leaves no trace.
func (w *writer) open(kind rag.BlockKind, level int) {
	w.end()
	w.kind, w.level = kind, level
}

// text writes running text: runs of white space become one space.
func (w *writer) text(s string) {
	if w.full() {
		return
	}
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		switch {
		case unicode.IsSpace(r):
			w.space = true
		case hidden(r):
		default:
			w.flushSpace()
			w.cur = append(w.cur, s[i:i+n]...)
			if w.links == 0 {
				w.plain += n
			}
		}
		i += n
	}
}

// verbatim writes text whose white space means something.
func (w *writer) verbatim(s string) {
	if w.full() {
		return
	}
	w.flushSpace()
	for _, r := range s {
		switch {
		case r == '\n':
			w.cur = append(w.cur, '\n')
			w.start, w.said = len(w.cur), false
		case r == '\t' || !hidden(r):
			w.cur = utf8.AppendRune(w.cur, r)
			w.said = true
			if w.links == 0 {
				w.plain += utf8.RuneLen(r)
			}
		}
	}
}

// mark writes what orders the text and is not part of it: the marker of an item, the border of a cell.
func (w *writer) mark(s string) {
	if !w.full() {
		w.space = false
		w.cur = append(w.cur, s...)
	}
}

func (w *writer) flushSpace() {
	if n := len(w.cur); w.space && n > w.start && w.cur[n-1] != ' ' {
		w.cur = append(w.cur, ' ')
	}
	w.space, w.said = false, true
}

// line ends the line in hand, if it has text.
func (w *writer) line() {
	w.space = false
	if w.said {
		w.cur = append(w.cur, '\n')
		w.start, w.said = len(w.cur), false
	}
}

// drop takes back the line in hand if it has no text.
func (w *writer) drop() {
	if !w.said {
		w.cur = w.cur[:w.start]
	}
}

// end ends the block in hand. What follows is a paragraph unless open says otherwise.
func (w *writer) end() {
	kind, level := w.kind, w.level
	w.drop()
	text := strings.TrimRightFunc(string(w.cur), unicode.IsSpace)
	if kind == rag.BlockCode { // the indent of the first line belongs to it
		text = strings.TrimLeft(text, "\r\n")
	} else {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	w.cur, w.space, w.start, w.said = w.cur[:0], false, 0, false
	w.kind, w.level = rag.BlockParagraph, 0
	if !visible(text) {
		return
	}
	if w.body.Len() > 0 {
		w.body.WriteString("\n\n")
	}
	start := w.body.Len()
	w.body.WriteString(text)
	if kind == rag.BlockHeading {
		w.enter(level, text)
	}
	if n := len(w.blocks); n >= maxBlocks {
		w.blocks[n-1].End = w.body.Len()
		return
	}
	w.blocks = append(w.blocks, rag.Block{Start: start, End: w.body.Len(), Kind: kind, Level: level, Heading: w.crumb, Page: w.page})
}

// maxCrumb bounds what a heading adds to a breadcrumb.
const maxCrumb = 120

// enter puts a heading in force; those of its level and below it no longer are.
func (w *writer) enter(level int, text string) {
	clear(w.crumbs[level:])
	w.crumbs[level] = clip(strings.Join(strings.Fields(text), " "), maxCrumb)
	w.crumb = ""
	for _, c := range w.crumbs {
		if c == "" {
			continue
		}
		if w.crumb != "" {
			w.crumb += " > "
		}
		w.crumb += c
	}
}

// result is the text written so far.
func (w *writer) result() (body string, blocks []rag.Block) {
	w.end()
	return w.body.String(), w.blocks
}

// clip shortens s to at most n bytes, on a rune border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// hidden reports whether a rune says nothing to a reader: controls, byte order marks, soft hyphens.
func hidden(r rune) bool {
	return unicode.IsControl(r) || r == '\ufeff' || r == '\u00ad'
}
