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

// Document is what was read of a document beside its text.
type Document struct {
	Title    string
	Warnings []string
	// NoText says why there is nothing to read on the pages; nil if there is.
	NoText error
	// Attachments are the files in it, which PDFium does not read.
	Attachments []Attachment
}

// Attachment is a file in a document.
type Attachment struct {
	Name    string
	Content []byte
}

// Read reads a document: the text of its pages in their order, lines joined to paragraphs, or tables, words that are parted at the end
// of a line joined, without the headers and footers that the pages repeat. A page that cannot be read is left out with a
// warning. A document that cannot be read is a *flow.Error: rag.ReasonEncrypted, ReasonScanWithoutText, ReasonNoText,
// ReasonMemory or ReasonBrokenFile; the pages of one with attachments may have nothing to read. When ctx ends, Read returns its
// error, or ErrNotReady if PDFium was not compiled by then.
func (e *Engine) Read(ctx context.Context, content []byte, w flow.Writer) (Document, error) {
	if err := e.Ready(ctx); err != nil {
		return Document{}, err
	}
	d := &document{content: content}
	for broken := 0; ; broken++ {
		err := e.with(ctx, func(p pdfium.Pdfium, m *memory) error {
			d.exhausted = m.ranOut
			return d.read(ctx, p)
		})
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return Document{}, ctx.Err()
		}
		if flow.IsReject(err) {
			return Document{}, err
		}
		switch {
		case d.exhausted() && (!d.opened || broken == maxBroken):
			return Document{}, d.tooMuchMemory()
		case !d.opened || broken == maxBroken:
			return Document{}, flow.Reject(rag.ReasonBrokenFile, "the PDF document is broken%s: %s", d.place(), sentence(err))
		}
		d.lose()
	}
	noText := d.unreadable()
	if noText != nil && len(d.files) == 0 {
		return Document{}, noText
	}
	d.write(w)
	return Document{Title: d.title, Warnings: d.warnings(), NoText: noText, Attachments: d.files}, nil
}

// document is what was read of a document so far.
type document struct {
	content   []byte
	opened    bool
	title     string
	count     int // of pages
	pages     []page
	exhausted func() bool // whether the instance in hand wanted more memory than it may have

	files     []Attachment
	tried     int // attachments that were read, or are being read
	lostFiles int
}

// lose gives up what has broken the instance: the page in hand, or the attachment. The next instance goes on behind it.
func (d *document) lose() {
	if len(d.pages) < d.count {
		d.pages = append(d.pages, page{failed: true, memory: d.exhausted()})
		return
	}
	d.lostFiles++
}

// place is " on page 3", if pages are being read.
func (d *document) place() string {
	if !d.opened || len(d.pages) >= d.count {
		return ""
	}
	return fmt.Sprintf(" on page %d", len(d.pages)+1)
}

func (d *document) tooMuchMemory() error {
	return flow.Reject(rag.ReasonMemory, "reading the PDF document%s takes more than the limit of %d MiB of memory", d.place(), memoryPages>>4)
}

// read reads the pages and attachments that are missing.
func (d *document) read(ctx context.Context, p pdfium.Pdfium) error {
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
	if err := d.readPages(ctx, p, opened.Document); err != nil {
		return err
	}
	return d.readFiles(ctx, p, opened.Document)
}

func (d *document) readPages(ctx context.Context, p pdfium.Pdfium, doc references.FPDF_DOCUMENT) error {
	for i := len(d.pages); i < d.count; i++ {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		got, err := readPage(p, doc, i)
		if errors.Is(err, pdfiumerrors.ErrPage) || errors.Is(err, pdfiumerrors.ErrUnknown) || errors.Is(err, pdfiumerrors.ErrSuccess) {
			got, err = page{failed: true, memory: d.exhausted()}, nil // PDFium has seen it, and is well
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
	failed, objects, memory := 0, false, false
	if d.says() {
		return nil
	}
	for _, p := range d.pages {
		if len(p.lines) > 0 {
			return flow.Reject(rag.ReasonScanWithoutText,
				"the fonts of the PDF document do not say which letters they show; it can only be read like a scan")
		}
		objects, memory = objects || p.objects, memory || p.memory
		if p.failed {
			failed++
		}
	}
	switch {
	case d.count == 0:
		return flow.Reject(rag.ReasonBrokenFile, "the PDF document has no pages")
	case memory:
		return d.tooMuchMemory()
	case failed > 0:
		return flow.Reject(rag.ReasonBrokenFile, "none of the %d pages of the PDF document can be read", d.count)
	case objects:
		return flow.Reject(rag.ReasonScanWithoutText, "the %d pages of the PDF document are pictures without text; it looks like a scan", d.count)
	}
	return flow.Reject(rag.ReasonNoText, "there is no text on the %d pages of the PDF document", d.count)
}

// says reports whether there are letters or digits in what was read, not only signs. Fonts without a table of what their glyphs
// mean give the numbers of the glyphs, which look like punctuation where few are used.
func (d *document) says() bool {
	meaning, all := 0, 0
	for _, p := range d.pages {
		for _, l := range p.lines {
			for _, r := range l.text {
				if unicode.IsLetter(r) || unicode.IsDigit(r) {
					meaning++
				}
				all++
			}
		}
	}
	return meaning*20 > all
}

// warnings name the pages that were not read.
func (d *document) warnings() []string {
	var failed, large, pictures []int
	private, all := 0, 0
	for i, p := range d.pages {
		switch {
		case p.memory:
			large = append(large, i+1)
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
	if len(large) > 0 {
		warnings = append(warnings, fmt.Sprintf("Left out, because reading takes more than %d MiB of memory: %s.", memoryPages>>4, pageList(large)))
	}
	if d.lostFiles > 0 {
		warnings = append(warnings, fmt.Sprintf("Attachments of the PDF document were left out: %d, which are damaged or too large.", d.lostFiles))
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
