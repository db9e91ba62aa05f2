// Package parsetest makes small files of the formats that package parse reads, for tests and examples. It needs no programs.
package parsetest

import (
	"bytes"
	"fmt"
	"strings"
)

// PDF is a document to be: A4 pages of Helvetica, in WinAnsi.
type PDF struct {
	Title string
	Pages []PDFPage
}

// PDFPage is one page.
type PDFPage struct {
	Lines  []PDFLine
	Rotate int    // in degrees; its lines are upright as viewers show it, 842 wide and 595 high at 90 and 270
	Image  bool   // it shows a grey picture
	Extra  string // operators of its own, behind the lines
	Packed []byte // its content packed by zlib, instead of the lines
	Field  string // the value of a field of a form, at the bottom; "" if there is none
}

// PDFLine is a line of text at a place, in points from the lower left corner.
type PDFLine struct {
	X, Y, Size float64
	Text       string
}

// Bytes is the file.
func (d PDF) Bytes() []byte {
	var b pdfFile
	b.out.WriteString("%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
	kids := make([]string, len(d.Pages))
	for i := range d.Pages {
		kids[i] = fmt.Sprintf("%d 0 R", 6+2*i)
	}
	b.object("<< /Type /Catalog /Pages 2 0 R >>")
	b.object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(kids)))
	b.object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	b.object("<< /Title (" + pdfString(d.Title) + ") >>")
	b.object("<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>\nstream\n\x80\nendstream")
	next := 6 + 2*len(d.Pages) // the number of the first object behind the pages
	for i, p := range d.Pages {
		annotation := ""
		if p.Field != "" {
			annotation = fmt.Sprintf(" /Annots [%d 0 R]", next)
			next += 2
		}
		b.object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Rotate %d /Contents %d 0 R%s "+
			"/Resources << /Font << /F1 3 0 R >> /XObject << /Im1 5 0 R >> >> >>", p.Rotate, 7+2*i, annotation))
		content, filter := p.content(), ""
		if p.Packed != nil {
			content, filter = string(p.Packed), " /Filter /FlateDecode"
		}
		b.object(fmt.Sprintf("<< /Length %d%s >>\nstream\n%s\nendstream", len(content), filter, content))
	}
	for _, p := range d.Pages {
		if p.Field == "" {
			continue
		}
		look := fmt.Sprintf("BT /F1 11 Tf 2 5 Td (%s) Tj ET", pdfString(p.Field))
		b.object(fmt.Sprintf("<< /Type /Annot /Subtype /Widget /FT /Tx /T (field) /V (%s) /Rect [60 60 360 80] /F 4 /AP << /N %d 0 R >> >>",
			pdfString(p.Field), len(b.offsets)+2))
		b.object(fmt.Sprintf("<< /Type /XObject /Subtype /Form /BBox [0 0 300 20] /Resources << /Font << /F1 3 0 R >> >> /Length %d >>\nstream\n%s\nendstream",
			len(look), look))
	}
	return b.finish()
}

func (p PDFPage) content() string {
	var c strings.Builder
	if p.Image {
		c.WriteString("q 500 0 0 700 40 40 cm /Im1 Do Q\n")
	}
	for _, l := range p.Lines {
		fmt.Fprintf(&c, "BT /F1 %g Tf %s Tm (%s) Tj ET\n", l.Size, p.place(l), pdfString(l.Text))
	}
	c.WriteString(p.Extra)
	return c.String()
}

// place is the matrix of a line, so that it is upright on a page that is turned.
func (p PDFPage) place(l PDFLine) string {
	switch p.Rotate {
	case 90:
		return fmt.Sprintf("0 1 -1 0 %g %g", 595-l.Y, l.X)
	case 180:
		return fmt.Sprintf("-1 0 0 -1 %g %g", 595-l.X, 842-l.Y)
	case 270:
		return fmt.Sprintf("0 -1 1 0 %g %g", l.Y, 842-l.X)
	}
	return fmt.Sprintf("1 0 0 1 %g %g", l.X, l.Y)
}

// pdfString escapes a string; characters beyond Latin-1 become question marks.
func pdfString(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case strings.ContainsRune(`()\`, r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x80:
			b.WriteRune(r)
		case r == '’':
			b.WriteString(`\222`)
		case r == '—':
			b.WriteString(`\227`)
		case r == '•':
			b.WriteString(`\225`)
		case r <= 0xff:
			fmt.Fprintf(&b, `\%03o`, r)
		default:
			b.WriteByte('?')
		}
	}
	return b.String()
}

// pdfFile numbers the objects of a file in their order.
type pdfFile struct {
	out     bytes.Buffer
	offsets []int
}

func (f *pdfFile) object(body string) {
	f.offsets = append(f.offsets, f.out.Len())
	fmt.Fprintf(&f.out, "%d 0 obj\n%s\nendobj\n", len(f.offsets), body)
}

func (f *pdfFile) finish() []byte {
	start := f.out.Len()
	fmt.Fprintf(&f.out, "xref\n0 %d\n0000000000 65535 f \n", len(f.offsets)+1)
	for _, o := range f.offsets {
		fmt.Fprintf(&f.out, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&f.out, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(f.offsets)+1, start)
	return f.out.Bytes()
}

// Column sets paragraphs in lines from a place downwards, and returns the lines and the place below them. Long lines are cut at
// spaces, at about width characters.
func Column(x, y, size float64, width int, paragraphs ...string) ([]PDFLine, float64) {
	var lines []PDFLine
	for _, p := range paragraphs {
		for _, text := range wrap(p, width) {
			lines = append(lines, PDFLine{x, y, size, text})
			y -= 1.2 * size
		}
		y -= size
	}
	return lines, y
}

func wrap(s string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
