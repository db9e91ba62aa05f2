package parse

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// htmlWriter writes the text of HTML elements. Tags may come in any order: what is not open can be closed.
type htmlWriter struct {
	*writer
	lists  []htmlList
	tables []htmlTable
	data   int // how many of the tables have data
	pre    int
}

type htmlList struct {
	ordered bool
	item    int
}

type htmlTable struct {
	data    bool // rows of cells; otherwise the table only arranges blocks on the page
	cell    int
	header  string // its first row, if that looks like one; it is repeated with each group of rows
	rows    int    // begun
	decided bool   // whether there is a header
	repeat  bool   // before the next cell
}

// maxLevels bounds the indent of nested lists.
const maxLevels = 8

// blockTags begin and end a block.
var blockTags = map[atom.Atom]bool{
	atom.Address: true, atom.Article: true, atom.Aside: true, atom.Blockquote: true, atom.Body: true, atom.Caption: true,
	atom.Center: true, atom.Details: true, atom.Dialog: true, atom.Div: true, atom.Fieldset: true, atom.Figcaption: true,
	atom.Figure: true, atom.Footer: true, atom.Form: true, atom.Header: true, atom.Hgroup: true, atom.Hr: true, atom.Legend: true,
	atom.Main: true, atom.Nav: true, atom.P: true, atom.Search: true, atom.Section: true, atom.Summary: true,
}

// skippedTags hold nothing that a reader reads.
var skippedTags = map[atom.Atom]bool{
	atom.Audio: true, atom.Button: true, atom.Canvas: true, atom.Embed: true, atom.Head: true, atom.Iframe: true, atom.Img: true,
	atom.Input: true, atom.Map: true, atom.Noscript: true, atom.Object: true, atom.Script: true, atom.Select: true,
	atom.Style: true, atom.Svg: true, atom.Template: true, atom.Textarea: true, atom.Title: true, atom.Video: true,
}

func headingLevel(tag atom.Atom) int {
	switch tag {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return int(tag.String()[1] - '0')
	}
	return 0
}

// begin handles a start tag. data says whether a table has data.
func (h *htmlWriter) begin(tag atom.Atom, attr []html.Attribute, data bool) {
	switch {
	case tag == atom.Br:
		h.lineBreak()
	case tag == atom.A:
		h.links++
	case headingLevel(tag) > 0 && !h.inCell():
		h.open(rag.BlockHeading, headingLevel(tag))
	case blockTags[tag]:
		h.border()
	case tag == atom.Ul || tag == atom.Ol || tag == atom.Menu || tag == atom.Dl:
		h.border()
		h.lists = append(h.lists, htmlList{ordered: tag == atom.Ol, item: startOf(attr)})
		if len(h.lists) == 1 {
			h.resume()
		}
	case tag == atom.Li || tag == atom.Dt || tag == atom.Dd:
		h.item(tag)
	case tag == atom.Table:
		h.border()
		h.tables = append(h.tables, htmlTable{data: data})
		if data {
			h.data++
			h.resume()
		}
	case tag == atom.Tr:
		h.row()
	case tag == atom.Td || tag == atom.Th:
		h.cell()
	case tag == atom.Pre:
		h.border()
		if h.pre++; len(h.lists) == 0 && !h.inCell() {
			h.open(rag.BlockCode, 0)
		}
	case tag == 0: // an element of the page's own
		h.space = true
	}
}

// finish handles an end tag.
func (h *htmlWriter) finish(tag atom.Atom) {
	switch {
	case tag == atom.A:
		h.links = max(0, h.links-1)
	case headingLevel(tag) > 0:
		if !h.inCell() {
			h.end()
			h.resume()
		}
	case blockTags[tag]:
		h.border()
	case tag == atom.Ul || tag == atom.Ol || tag == atom.Menu || tag == atom.Dl:
		h.border()
		if n := len(h.lists); n > 0 {
			if h.lists = h.lists[:n-1]; n == 1 && !h.inCell() {
				h.end()
				h.resume()
			}
		}
	case tag == atom.Li || tag == atom.Dt || tag == atom.Dd || tag == atom.Tr:
		h.border()
	case tag == atom.Table:
		if n := len(h.tables); n > 0 {
			if h.tables[n-1].data {
				h.data--
			}
			h.tables = h.tables[:n-1]
			h.border()
		}
	case tag == atom.Pre:
		h.pre = max(0, h.pre-1)
		h.border()
	case tag == 0:
		h.space = true
	}
}

// content handles text between tags.
func (h *htmlWriter) content(s string) {
	if h.pre > 0 {
		h.verbatim(strings.ReplaceAll(s, "\r", ""))
		return
	}
	h.text(s)
}

// inCell reports whether the place is in a table of data, where nothing but a row ends a line.
func (h *htmlWriter) inCell() bool { return h.data > 0 }

// border ends what is in hand as far as the place allows: in a cell a word, in a list a line, elsewhere a block.
func (h *htmlWriter) border() {
	switch {
	case h.inCell():
		h.space = true
	case len(h.lists) > 0 && h.kind == rag.BlockList:
		h.line()
	default:
		h.end()
		h.resume()
	}
}

func (h *htmlWriter) lineBreak() {
	switch {
	case h.inCell():
		h.space = true
	case h.pre > 0:
		h.verbatim("\n")
	default:
		h.line()
	}
}

// resume begins a block of the kind that the place asks for, if none is in hand.
func (h *htmlWriter) resume() {
	if len(h.cur) > 0 {
		return
	}
	h.kind, h.level = rag.BlockParagraph, 0
	switch {
	case h.inCell():
		h.kind = rag.BlockTable
	case len(h.lists) > 0:
		h.kind = rag.BlockList
	case h.pre > 0:
		h.kind = rag.BlockCode
	}
}

// item begins an item of the innermost list.
func (h *htmlWriter) item(tag atom.Atom) {
	h.border()
	n := len(h.lists)
	if h.inCell() || n == 0 {
		return
	}
	l := &h.lists[n-1]
	h.drop()
	h.mark(strings.Repeat("  ", min(n-1, maxLevels)))
	switch {
	case tag == atom.Dt:
	case tag == atom.Dd:
		h.mark("  ")
	case l.ordered:
		h.mark(strconv.Itoa(l.item) + ". ")
		l.item++
	default:
		h.mark("- ")
	}
}

func (h *htmlWriter) row() {
	n := len(h.tables)
	if n == 0 || !h.tables[n-1].data {
		h.border()
		return
	}
	h.line()
	h.drop()
	t := &h.tables[n-1]
	t.cell = 0
	if t.rows++; t.rows > 1 && !t.decided && len(h.cur) > 0 {
		t.decided = true
		rows := strings.TrimRight(string(h.cur), "\n")
		if first := rows[strings.LastIndexByte(rows, '\n')+1:]; flow.LooksLikeHeader(strings.Split(first, cellBorder)) {
			t.header = first
		}
	}
	t.repeat = t.header != "" && len(h.cur) >= max(flow.RowGroup, 3*len(t.header))
}

// cellBorder stands between the cells of a row.
const cellBorder = " | "

// repeatHeader begins another block of rows under the same header.
func (h *htmlWriter) repeatHeader(header string) {
	h.end()
	h.resume()
	h.mark(header + "\n")
	h.start = len(h.cur)
}

func (h *htmlWriter) cell() {
	n := len(h.tables)
	if n == 0 || !h.tables[n-1].data {
		h.border()
		return
	}
	t := &h.tables[n-1]
	if t.repeat {
		t.repeat = false
		h.repeatHeader(t.header)
	}
	if t.cell++; t.cell > 1 {
		h.mark(cellBorder)
	}
}

// startOf is the number of the first item of an ordered list.
func startOf(attr []html.Attribute) int {
	for _, a := range attr {
		if a.Key == "start" {
			if n, err := strconv.Atoi(a.Val); err == nil {
				return n
			}
		}
	}
	return 1
}
