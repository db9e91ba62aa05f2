package pdf

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// line is a line of text on a page, as it is seen: y grows upwards, in points.
type line struct {
	text   string
	left   float64
	top    float64
	height float64 // of its first character, ascent and descent included
}

// page is what was read from one page.
type page struct {
	lines   []line
	objects bool // it shows something
	failed  bool
	memory  bool // it failed because it wanted more than there may be
}

// maxPageRunes bounds the text of one page.
const maxPageRunes = 4 << 20

// readPage reads the text of a page with the places of its lines.
func readPage(p pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int) (page, error) {
	ref := requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: index}}
	objects, err := p.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: ref})
	if err != nil {
		return page{}, fmt.Errorf("the page: %w", err)
	}
	rotation, err := p.FPDFPage_GetRotation(&requests.FPDFPage_GetRotation{Page: ref})
	if err != nil {
		return page{}, fmt.Errorf("the page's rotation: %w", err)
	}
	if ref, err = flatten(p, doc, index, ref); err != nil {
		return page{}, err
	}
	text, err := p.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: ref})
	if err != nil {
		return page{}, fmt.Errorf("the page's text: %w", err)
	}
	r := reader{p: p, text: text.TextPage, rotation: int(rotation.PageRotation)}
	lines, err := r.lines()
	if err != nil {
		return page{}, err
	}
	_, err = p.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage})
	if err == nil && ref.ByReference != nil {
		_, err = p.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: *ref.ByReference})
	}
	if err != nil {
		return page{}, fmt.Errorf("close the page: %w", err)
	}
	return page{lines: lines, objects: objects.Count > 0}, nil
}

// flatten makes what annotations and form fields show part of the page's text.
func flatten(p pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int, ref requests.Page) (requests.Page, error) {
	annotations, err := p.FPDFPage_GetAnnotCount(&requests.FPDFPage_GetAnnotCount{Page: ref})
	if err != nil || annotations.Count == 0 {
		return ref, err
	}
	if _, err := p.FPDFPage_Flatten(&requests.FPDFPage_Flatten{Page: ref, Usage: requests.FPDFPage_FlattenUsage(0)}); err != nil {
		return ref, fmt.Errorf("the page's annotations: %w", err)
	}
	again, err := p.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: index})
	if err != nil {
		return ref, fmt.Errorf("the page with its annotations: %w", err)
	}
	return requests.Page{ByReference: &again.Page}, nil
}

// reader reads the lines of one page.
type reader struct {
	p        pdfium.Pdfium
	text     references.FPDF_TEXTPAGE
	rotation int // in quarters, clockwise
}

func (r reader) lines() ([]line, error) {
	count, err := r.p.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: r.text})
	if err != nil {
		return nil, fmt.Errorf("the characters of the page: %w", err)
	}
	if count.Count <= 0 {
		return nil, nil
	}
	got, err := r.p.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: r.text, Count: min(count.Count, maxPageRunes)})
	if err != nil {
		return nil, fmt.Errorf("the text of the page: %w", err)
	}
	var lines []line
	at := 0 // runes before the line
	for s := range strings.SplitSeq(got.Text, "\n") {
		l, err := r.line(s, at)
		if err != nil {
			return nil, err
		}
		if l.text != "" {
			lines = append(lines, l)
		}
		at += utf8.RuneCountInString(s) + 1
	}
	return lines, nil
}

// line finds the place of a line. Lines without anything visible have no text.
func (r reader) line(s string, at int) (line, error) {
	lead := 0
	for _, c := range s {
		if !unicode.IsSpace(c) && unicode.IsGraphic(c) {
			break
		}
		lead++
	}
	l := line{text: clean(s)}
	if l.text == "" {
		return l, nil
	}
	char, err := r.p.FPDFText_GetCharIndexFromTextIndex(&requests.FPDFText_GetCharIndexFromTextIndex{TextPage: r.text, NTextIndex: at + lead})
	if err != nil || char.CharIndex < 0 {
		return l, nil // characters that PDFium made up have no place
	}
	box, err := r.p.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: r.text, Index: char.CharIndex})
	if err != nil {
		return l, nil
	}
	left, right, bottom, top := float64(box.Rect.Left), float64(box.Rect.Right), float64(box.Rect.Bottom), float64(box.Rect.Top)
	switch r.rotation {
	case 1:
		left, bottom, top = bottom, -right, -left
	case 2:
		left, bottom, top = -right, -top, -bottom
	case 3:
		left, bottom, top = -top, left, right
	}
	l.left, l.top, l.height = left, top, top-bottom
	return l, nil
}

// clean makes a line readable: without PDFium's marks, with parted words joined and ligatures spelled out.
func clean(s string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range s {
		switch {
		case r == '\x02' || r == '\ufffe': // a hyphen that only ends a line; behind a digit or a capital it is part of the word
			if !unicode.IsDigit(last) && !unicode.IsUpper(last) {
				continue
			}
			r = '-'
		case unicode.IsSpace(r):
			r = ' '
		case unicode.IsControl(r), r == '\uffff', r == '\u00ad':
			continue
		}
		b.WriteRune(r)
		last = r
	}
	return strings.TrimSpace(ligatures.Replace(b.String()))
}

var ligatures = strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st")
