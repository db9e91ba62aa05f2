package parse

import (
	"context"
	"strings"

	"golang.org/x/net/html/atom"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// flowWriter is the flow.Writer of a text.
type flowWriter struct {
	*htmlWriter
	nested int // tables around the place, beyond the first
	listed bool
}

var _ flow.Writer = (*flowWriter)(nil)

func newFlowWriter(limit int) *flowWriter {
	return &flowWriter{htmlWriter: &htmlWriter{writer: newWriter(limit)}}
}

func (w *flowWriter) Page(n int) {
	if w.page != n {
		w.end()
		w.page, w.listed = n, false
	}
}

func (w *flowWriter) Heading(level int) {
	if w.inCell() {
		w.space = true
		return
	}
	w.listed = false
	w.open(rag.BlockHeading, min(max(level, 1), 6))
}

func (w *flowWriter) Paragraph() {
	if w.inCell() {
		w.space = true
		return
	}
	w.listed = false
	w.open(rag.BlockParagraph, 0)
}

func (w *flowWriter) Code() {
	if w.inCell() {
		w.space = true
		return
	}
	w.listed = false
	w.open(rag.BlockCode, 0)
}

func (w *flowWriter) Item(depth int, marker string) {
	if w.inCell() {
		w.space = true
		return
	}
	if w.listed && w.kind == rag.BlockList {
		w.line()
		w.drop()
	} else {
		w.open(rag.BlockList, 0)
		w.listed = true
	}
	w.mark(strings.Repeat("  ", min(max(depth, 0), maxLevels)))
	w.mark(marker + " ")
}

func (w *flowWriter) Table() {
	if w.inCell() {
		w.nested++
		w.space = true
		return
	}
	w.listed = false
	w.end()
	w.begin(atom.Table, nil, true)
	w.kind = rag.BlockTable
}

func (w *flowWriter) Row() {
	if w.nested > 0 {
		w.space = true
		return
	}
	w.row()
}

func (w *flowWriter) Cell() {
	if w.nested > 0 {
		w.space = true
		return
	}
	w.cell()
}

func (w *flowWriter) EndTable() {
	if w.nested > 0 {
		w.nested--
		return
	}
	w.finish(atom.Table)
	w.end()
}

func (w *flowWriter) Text(s string) { w.text(s) }

func (w *flowWriter) Verbatim(s string) { w.verbatim(s) }

func (w *flowWriter) Break() { w.lineBreak() }

func (w *flowWriter) Full() bool { return w.full() }

// flowText reads a document with a reader that writes to a flowWriter and returns the title and the warnings.
func (p *Parser) flowText(ctx context.Context, read func(context.Context, *flowWriter) (title string, warnings []string, err error)) (Text, error) {
	w := newFlowWriter(p.limits.Text)
	title, warnings, err := read(ctx, w)
	if err != nil {
		return Text{}, err
	}
	if w.full() {
		return Text{}, errTextLimit(p.limits.Text)
	}
	t := Text{Title: oneLine(title), Warnings: warnings}
	t.Body, t.Blocks = w.result()
	if t.Title == "" {
		t.Title = oneLine(firstHeading(extracted{body: t.Body, blocks: t.Blocks}))
	}
	return t, nil
}

// insert writes another text, with its headings below a level, on its own pages.
func (w *flowWriter) insert(t Text, below int) { w.insertOn(0, t, below) }

// insertOn writes another text, with its headings below a level; what has no page of its own stands on the one given.
func (w *flowWriter) insertOn(page int, t Text, below int) {
	for _, b := range t.Blocks {
		level := 0
		if b.Kind == rag.BlockHeading {
			level = min(b.Level+below, 6)
		}
		if b.Page != 0 {
			w.Page(b.Page)
		} else {
			w.Page(page)
		}
		w.open(b.Kind, level)
		w.verbatim(t.Body[b.Start:b.End])
		w.end()
	}
	w.Page(0)
}
