package pdf

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// maxBroken is how many pages may break their instance before the rest of a document is given up.
const maxBroken = 3

// Read reads a document: the text of its pages in their order, lines joined to paragraphs, words that are parted at the end
// of a line joined, without the headers and footers that the pages repeat. A page that cannot be read is left out with a
// warning. A document that cannot be read is a *flow.Error: rag.ReasonEncrypted, ReasonScanWithoutText, ReasonNoText or
// ReasonBrokenFile. When ctx ends, Read returns its error, or ErrNotReady if PDFium was not compiled by then.
func (e *Engine) Read(ctx context.Context, content []byte, w flow.Writer) (title string, warnings []string, err error) {
	if err := e.Ready(ctx); err != nil {
		return "", nil, err
	}
	d := &document{content: content}
	for broken := 0; ; broken++ {
		err := e.with(ctx, func(p pdfium.Pdfium) error { return d.read(ctx, p, w) })
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return "", nil, ctx.Err()
		}
		if flow.IsReject(err) {
			return "", nil, err
		}
		if !d.opened || broken == maxBroken {
			return "", nil, flow.Reject(rag.ReasonBrokenFile, "the PDF document is broken: %s", sentence(err))
		}
		// The page in hand has broken the instance: the next one goes on behind it.
		d.pages = append(d.pages, page{failed: true})
	}
	if err := d.unreadable(); err != nil {
		return "", nil, err
	}
	d.write(w)
	return d.title, d.warnings(), nil
}

// document is what was read of a document so far.
type document struct {
	content []byte
	opened  bool
	title   string
	count   int // of pages
	pages   []page
}

// read reads the pages that are missing.
func (d *document) read(ctx context.Context, p pdfium.Pdfium, w flow.Writer) error {
	opened, err := p.OpenDocument(&requests.OpenDocument{File: &d.content})
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword), errors.Is(err, pdfiumerrors.ErrSecurity):
		return flow.Reject(rag.ReasonEncrypted, "the PDF document is encrypted; a password is needed to read it")
	case err != nil:
		return fmt.Errorf("open: %w", err)
	}
	count, err := p.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: opened.Document})
	if err != nil {
		return fmt.Errorf("count the pages: %w", err)
	}
	d.opened, d.count = true, count.PageCount
	if meta, err := p.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: opened.Document, Tag: "Title"}); err == nil {
		d.title = readableTitle(meta.Value)
	}
	return d.readPages(ctx, p, opened.Document)
}

func (d *document) readPages(ctx context.Context, p pdfium.Pdfium, doc references.FPDF_DOCUMENT) error {
	for i := len(d.pages); i < d.count; i++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		got, err := readPage(p, doc, i)
		if errors.Is(err, pdfiumerrors.ErrPage) || errors.Is(err, pdfiumerrors.ErrUnknown) || errors.Is(err, pdfiumerrors.ErrSuccess) {
			got, err = page{failed: true}, nil // PDFium has seen it, and is well
		}
		if err != nil {
			return err
		}
		d.pages = append(d.pages, got)
	}
	return nil
}

// unreadable says why there is nothing to read.
func (d *document) unreadable() error {
	failed, objects := 0, false
	for _, p := range d.pages {
		if len(p.lines) > 0 {
			return nil
		}
		objects = objects || p.objects
		if p.failed {
			failed++
		}
	}
	switch {
	case d.count == 0:
		return flow.Reject(rag.ReasonBrokenFile, "the PDF document has no pages")
	case failed > 0:
		return flow.Reject(rag.ReasonBrokenFile, "none of the %d pages of the PDF document can be read", d.count)
	case objects:
		return flow.Reject(rag.ReasonScanWithoutText, "the %d pages of the PDF document are pictures without text; it looks like a scan", d.count)
	}
	return flow.Reject(rag.ReasonNoText, "there is no text on the %d pages of the PDF document", d.count)
}

// warnings name the pages that were not read.
func (d *document) warnings() []string {
	var failed, pictures []int
	private, all := 0, 0
	for i, p := range d.pages {
		switch {
		case p.failed:
			failed = append(failed, i+1)
		case len(p.lines) == 0 && p.objects:
			pictures = append(pictures, i+1)
		}
		for _, l := range p.lines {
			for _, r := range l.text {
				if all++; unicode.Is(unicode.Co, r) || r == unicode.ReplacementChar {
					private++
				}
			}
		}
	}
	var warnings []string
	if len(failed) > 0 {
		warnings = append(warnings, fmt.Sprintf("Broken and left out: %s.", pageList(failed)))
	}
	if len(pictures) > 0 {
		warnings = append(warnings, fmt.Sprintf("Without text, perhaps scanned: %s.", pageList(pictures)))
	}
	if private*5 > all {
		warnings = append(warnings, "Many characters of the PDF document have no known meaning: its fonts do not say what they show.")
	}
	return warnings
}

// pageList is "page 3", "pages 3, 5-7".
func pageList(pages []int) string {
	var b strings.Builder
	b.WriteString("page")
	if len(pages) > 1 {
		b.WriteString("s")
	}
	for i, shown := 0, 0; i < len(pages); shown++ {
		if shown == 20 {
			fmt.Fprintf(&b, " and %d more", len(pages)-i)
			break
		}
		last := i
		for last+1 < len(pages) && pages[last+1] == pages[last]+1 {
			last++
		}
		sep := " "
		if i > 0 {
			sep = ", "
		}
		if last > i {
			fmt.Fprintf(&b, "%s%d-%d", sep, pages[i], pages[last])
		} else {
			fmt.Fprintf(&b, "%s%d", sep, pages[i])
		}
		i = last + 1
	}
	return b.String()
}

// readableTitle is a title that says something: not the name of a file that some program was given.
func readableTitle(s string) string {
	s = strings.TrimSpace(clean(s))
	lower := strings.ToLower(s)
	switch {
	case lower == "untitled", strings.HasPrefix(lower, "microsoft word - "), strings.HasSuffix(lower, ".doc"), strings.HasSuffix(lower, ".docx"),
		strings.HasSuffix(lower, ".pdf"), strings.HasSuffix(lower, ".indd"), strings.HasSuffix(lower, ".tex"), strings.HasSuffix(lower, ".dvi"):
		return ""
	}
	return s
}

// sentence is the first line of an error, without a stack of WebAssembly.
func sentence(err error) string {
	s, _, _ := strings.Cut(err.Error(), "\n")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
