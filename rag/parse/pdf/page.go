package pdf

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// line is a line of text on a page, as it is seen: y grows upwards, in points.
type line struct {
	text   string
	left   float64
	right  float64 // 0 if it is not known
	top    float64
	height float64 // of its first character, ascent and descent included
	turned bool    // it runs up or down
	cells  []cell  // of which it has two at least, if its words stand apart like those of a table's row
	short  bool    // the line before it ends long before the margin
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
	lines, err := readLines(p, ref, int(rotation.PageRotation))
	if err == nil && rotation.PageRotation != 0 && sideways(lines) {
		// The page is turned, and its text with it: PDFium puts lines in order that run from left to right.
		if ref, err = upright(p, doc, index, ref); err == nil {
			lines, err = readLines(p, ref, 0)
		}
	}
	if err != nil {
		return page{}, err
	}
	if ref.ByReference != nil {
		if _, err = p.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: *ref.ByReference}); err != nil {
			return page{}, fmt.Errorf("close the page: %w", err)
		}
	}
	return page{lines: lines, objects: objects.Count > 0}, nil
}

// readLines reads the text of a page whose coordinates are turned by a number of quarters, clockwise.
func readLines(p pdfium.Pdfium, ref requests.Page, rotation int) ([]line, error) {
	text, err := p.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: ref})
	if err != nil {
		return nil, fmt.Errorf("the page's text: %w", err)
	}
	r := reader{p: p, text: text.TextPage, rotation: rotation}
	lines, err := r.lines()
	if err == nil && slices.ContainsFunc(lines, glued) {
		r.gaps = true
		lines, err = r.lines()
	}
	if err != nil {
		return nil, err
	}
	if _, err = p.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: text.TextPage}); err != nil {
		return nil, fmt.Errorf("close the page's text: %w", err)
	}
	return lines, nil
}

// sideways reports whether most lines, as the page is seen, do not run across it.
func sideways(lines []line) bool {
	n := 0
	for _, l := range lines {
		switch {
		case utf8.RuneCountInString(l.text) < 4:
		case l.turned:
			n++
		default:
			n--
		}
	}
	return n > 0
}

// upright turns a page back, and loads it anew.
func upright(p pdfium.Pdfium, doc references.FPDF_DOCUMENT, index int, ref requests.Page) (requests.Page, error) {
	if ref.ByReference == nil {
		loaded, err := p.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: doc, Index: index})
		if err != nil {
			return ref, fmt.Errorf("the page that is turned: %w", err)
		}
		ref = requests.Page{ByReference: &loaded.Page}
	}
	if _, err := p.FPDFPage_SetRotation(&requests.FPDFPage_SetRotation{Page: ref, Rotate: enums.FPDF_PAGE_ROTATION_NONE}); err != nil {
		return ref, fmt.Errorf("turn the page: %w", err)
	}
	return ref, nil
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
	rotation int  // in quarters, clockwise
	gaps     bool // put spaces where there are gaps; it takes a call for each character
	whole    bool // all characters of the page are in its text, so that their indexes are the same
}

// gluedWords are words without the space between them, such as "one.The": some programs write a gap as the distance of characters,
// which PDFium does not take for a space.
var gluedWords = regexp.MustCompile(`(^|\s)\pL?\p{Ll}+[.,;:]\pL\p{Ll}+`)

func glued(l line) bool { return gluedWords.MatchString(l.text) }

// gap is what part of the height of a line a distance of characters is that reads as a space.
const gap = 0.12

// withSpaces is the text of a line with spaces where characters stand apart, but not where all of them do.
func (r reader) withSpaces(s string, at int) string {
	runes := []rune(s)
	var out strings.Builder
	spaces := 0
	before, known := place{}, false
	for i, c := range runes {
		box, found := r.box(at + i)
		if unicode.IsSpace(c) || unicode.IsControl(c) {
			found = false
		}
		if known && found && box.left-before.right > gap*(box.top-box.bottom) {
			out.WriteByte(' ')
			spaces++
		}
		out.WriteRune(c)
		before, known = box, found
	}
	if spaces*3 > len(runes) {
		return s
	}
	return out.String()
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
	r.whole = utf8.RuneCountInString(got.Text) == count.Count
	var lines []line
	var raws []raw
	at := 0 // runes before the line
	for s := range strings.SplitSeq(got.Text, "\n") {
		if l := r.line(s, at); l.text != "" {
			lines = append(lines, l)
			raws = append(raws, raw{s, at})
		}
		at += utf8.RuneCountInString(s) + 1
	}
	r.findCells(lines, raws)
	return lines, nil
}

// line finds the place of a line. Lines without anything visible have no text.
func (r reader) line(s string, at int) line {
	first, last, n := -1, -1, 0 // visible characters
	for _, c := range s {
		if !unicode.IsSpace(c) && unicode.IsGraphic(c) {
			if last = n; first < 0 {
				first = n
			}
		}
		n++
	}
	l := line{text: clean(s)}
	if l.text == "" {
		return l
	}
	if r.gaps {
		l.text = clean(r.withSpaces(s, at))
	}
	box, found := r.box(at + max(first, 0))
	if !found {
		return l
	}
	l.left, l.top, l.height = box.left, box.top, box.top-box.bottom
	if end, found := r.box(at + last); found && last >= 0 {
		l.right = end.right
		l.turned = math.Abs(end.bottom-box.bottom) > math.Abs(end.right-box.left)
	}
	return l
}

// place is that of a character as it is seen.
type place struct{ left, bottom, right, top float64 }

// box is the place of a character of the text; those that PDFium made up have none.
func (r reader) box(at int) (place, bool) {
	if !r.whole {
		char, err := r.p.FPDFText_GetCharIndexFromTextIndex(&requests.FPDFText_GetCharIndexFromTextIndex{TextPage: r.text, NTextIndex: at})
		if err != nil || char.CharIndex < 0 {
			return place{}, false
		}
		at = char.CharIndex
	}
	box, err := r.p.FPDFText_GetLooseCharBox(&requests.FPDFText_GetLooseCharBox{TextPage: r.text, Index: at})
	if err != nil {
		return place{}, false
	}
	left, bottom, right, top := float64(box.Rect.Left), float64(box.Rect.Bottom), float64(box.Rect.Right), float64(box.Rect.Top)
	switch r.rotation {
	case 1:
		return place{bottom, -right, top, -left}, true
	case 2:
		return place{-right, -top, -left, -bottom}, true
	case 3:
		return place{-top, left, -bottom, right}, true
	}
	return place{left, bottom, right, top}, true
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
