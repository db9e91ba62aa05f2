package read_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/net/html/charset"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

func encode(t testing.TB, label, text string) string {
	t.Helper()
	e, _ := charset.Lookup(label)
	s, err := e.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// paragraphs is a text of at least n bytes in one language.
func paragraphs(n int, sentence string) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d. %s\n\n", i, sentence)
	}
	return b.String()
}

const (
	russian  = "Рейн берёт начало в Альпах и течёт на север через шесть стран. Баржи возят уголь, гравий и контейнеры."
	japanese = "ライン川はアルプスに源を発し、六つの国を通って北へ流れる。"
	german   = "Der Rhein entspringt in den Alpen und fließt durch sechs Länder nach Norden, für Schiffe über 135 Meter."
)

// A text in any charset is read in windows, however its characters fall on what is read at a time.
func TestLargeTextsInOtherCharsets(t *testing.T) {
	for name, c := range map[string]struct{ label, mark, text, declared, warning string }{
		"declared":         {"windows-1251", "", russian, "text/plain; charset=windows-1251", ""},
		"KOI8-R, guessed":  {"koi8-r", "", russian, "text/plain", "koi8-r"},
		"Latin, guessed":   {"windows-1252", "", german, "text/plain", "windows-1252"},
		"Shift JIS":        {"shift_jis", "", japanese, "text/plain; charset=shift_jis", ""},
		"ISO-2022-JP":      {"iso-2022-jp", "", japanese, "text/plain; charset=iso-2022-jp", ""},
		"GB18030":          {"gb18030", "", "莱茵河发源于阿尔卑斯山，流经六个国家。", "text/plain; charset=gb18030", ""},
		"UTF-16 by a mark": {"utf-16le", "\xff\xfe", russian, "text/plain", ""},
		"UTF-16, no mark":  {"utf-16be", "", german, "text/plain", "UTF-16BE"},
	} {
		t.Run(name, func(t *testing.T) {
			text := paragraphs(5*window, c.text)
			content := c.mark + encode(t, c.label, text)
			o := &opener{content: content}
			in := read.Input{Open: o.open, Size: int64(len(content)), DeclaredType: c.declared}
			r := newReader(t, read.Options{})
			d, err := r.Read(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			covers(t, text, d)
			if d.Bytes != int64(len(text)) || d.Type != parse.TypePlain {
				t.Errorf("%d bytes of %s, not %d", d.Bytes, d.Type, len(text))
			}
			if got := strings.Join(d.Warnings, " "); !strings.Contains(got, c.warning) || (c.warning == "") != (got == "") {
				t.Errorf("warnings %q", got)
			}
			if got := textOf(t, r, in); got != text {
				t.Errorf("as text it has %d bytes, not %d", len(got), len(text))
			}
		})
	}
}

// textOf joins the parts of a text.
func textOf(t *testing.T, r *read.Reader, in read.Input) string {
	t.Helper()
	var b strings.Builder
	if err := r.Text(t.Context(), in, func(start int, part parse.Text) error {
		if start < b.Len() && part.Body != "" {
			t.Fatalf("a part at %d, behind %d", start, b.Len())
		}
		b.WriteString(strings.Repeat("\n", max(0, start-b.Len())))
		b.WriteString(part.Body)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A few damaged bytes far from the beginning are replaced, and told, and the text stays UTF-8; a text whose accents come late is in
// the charset that they are in.
func TestLateBytesThatAreNotUTF8(t *testing.T) {
	before, after := prose(3*window), prose(window)
	for name, c := range map[string]struct{ content, text, warning string }{
		"damaged":       {before + "\xff\xfe" + after, before + "\ufffd\ufffd" + after, "2 bytes are not valid UTF-8"},
		"late accents":  {strings.Repeat("Plain words. ", 3*window/10) + encode(t, "windows-1252", paragraphs(window, german)), strings.Repeat("Plain words. ", 3*window/10) + paragraphs(window, german), "windows-1252"},
		"cut character": {before + "д"[:1], before + "\ufffd", "1 bytes are not valid UTF-8"},
	} {
		in := read.Input{Open: (&opener{content: c.content}).open, Size: int64(len(c.content)), DeclaredType: "text/plain"}
		r := newReader(t, read.Options{})
		d, err := r.Read(t.Context(), in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		covers(t, c.text, d)
		if len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], c.warning) {
			t.Errorf("%s: warnings %q", name, d.Warnings)
		}
		if got := textOf(t, r, in); got != c.text {
			t.Errorf("%s: the text has %d bytes, not %d", name, len(got), len(c.text))
		}
	}
}

// A text that has too many bytes without a meaning, far behind its beginning, is read as a whole, and once.
func TestTextInAnotherEncodingFromTheMiddleOn(t *testing.T) {
	content := encode(t, "shift_jis", paragraphs(20*window, japanese)) + strings.Repeat("\xff\xff\xff\n", 10*window)
	in := read.Input{Open: (&opener{content: content}).open, Size: int64(len(content)), DeclaredType: "text/plain; charset=shift_jis"}
	r := newReader(t, read.Options{})
	d, err := r.Read(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	covers(t, textOf(t, r, in), d)
}

// Empty cells and wide headers make a text many times as long as its table.
func TestSparseTablesAreReadInParts(t *testing.T) {
	header := make([]string, 400)
	for i := range header {
		header[i] = fmt.Sprint("c", i)
	}
	content := strings.Join(header, ",") + "\n" + strings.Repeat("1"+strings.Repeat(",", len(header)-1)+"\n", read.MaxTextFormat/len(header)+100)
	in := read.Input{Open: (&opener{content: content}).open, Size: int64(len(content)), DeclaredType: "text/csv"}
	parser, err := parse.New(parse.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer parser.Close()
	var most uint64 // cutting all of it is not the point
	if _, err := read.New(read.Options{Parser: parser, Splitter: &watching{most: &most}, MaxBytes: 64 << 20}).Read(t.Context(), in); err != nil {
		t.Error(err)
	}
}

func table(n int, separator string) string {
	var b strings.Builder
	b.WriteString(strings.Join([]string{"Number", "River", "Remark"}, separator) + "\n")
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d%sRhein%s\"flows%s \"\"north\"\"\nto the sea, ünder %d bridges\"\n", i, separator, separator, separator, i%100)
	}
	return b.String()
}

// A large table is read row by row: its text is that of the same table read as a whole, but for where the header is repeated.
func TestLargeTables(t *testing.T) {
	for name, c := range map[string]struct{ content, declared string }{
		"CSV":        {table(5*window, ","), "text/csv"},
		"semicolons": {"\ufeffsep=;\n" + table(5*window, ";"), "text/csv; charset=utf-8"},
		"TSV":        {table(5*window, "\t"), parse.TypeTSV},
		"Latin":      {encode(t, "windows-1252", table(5*window, ";")), "text/csv; charset=windows-1252"},
	} {
		t.Run(name, func(t *testing.T) {
			o := &opener{content: c.content}
			in := read.Input{Open: o.open, Size: int64(len(c.content)), DeclaredType: c.declared}
			r := newReader(t, read.Options{})
			d, err := r.Read(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(t, r, in)
			covers(t, text, d)
			parser, err := parse.New(parse.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer parser.Close()
			whole, err := parser.Parse(t.Context(), parse.Input{Content: []byte(c.content), DeclaredType: c.declared})
			if err != nil {
				t.Fatal(err)
			}
			parts := 0
			if err := r.Text(t.Context(), in, func(int, parse.Text) error { parts++; return nil }); err != nil || parts < 3 {
				t.Errorf("%d parts, %v", parts, err)
			}
			if rows(text) != rows(whole.Body) || d.Type != whole.Type {
				t.Errorf("other rows than as a whole: %.300q\n%.300q", text, whole.Body)
			}
			if n := strings.Count(text, "Number | River | Remark"); n < 5 {
				t.Errorf("the header stands %d times", n)
			}
			if len(d.Warnings) > 0 {
				t.Errorf("warnings %q", d.Warnings)
			}
		})
	}
}

// rows are the lines of a table but for its header.
func rows(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line != "Number | River | Remark" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}

// With parents, of which chunks of a table and of a text in another charset know the text too.
func TestParentsInParts(t *testing.T) {
	for name, c := range map[string]struct{ content, declared string }{
		"table": {table(4*window, ","), "text/csv"}, "text": {encode(t, "koi8-r", paragraphs(8*window, russian)), "text/plain; charset=koi8-r"},
	} {
		r := newReader(t, read.Options{})
		splitter, err := split.New(split.Options{Tokens: 50, Parent: 300, MaxPieces: 1_000_000})
		if err != nil {
			t.Fatal(err)
		}
		parser, err := parse.New(parse.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		defer parser.Close()
		in := read.Input{Open: (&opener{content: c.content}).open, Size: int64(len(c.content)), DeclaredType: c.declared}
		text := textOf(t, r, in)
		d, err := read.NewWithWindow(read.Options{Parser: parser, Splitter: splitter, MaxPieces: 1_000_000, MaxBytes: 64 << 20}, window).Read(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		if err := d.Texts(t.Context(), func(i int, piece, parent string) error {
			p := d.Pieces[i]
			if n++; piece != text[p.Start:p.End] || parent != text[p.Parent.Start:p.Parent.End] {
				return fmt.Errorf("%s: piece %d is not its slice", name, i)
			}
			return nil
		}); err != nil || n != len(d.Pieces) {
			t.Errorf("%d of %d pieces, %v", n, len(d.Pieces), err)
		}
	}
}

// Errors of the source come as they are from texts in other charsets and from tables too.
func TestErrorsOfTheSourceOfParts(t *testing.T) {
	away := errors.New("the store is away")
	for name, c := range map[string]struct{ content, declared string }{
		"table": {table(4*window, ","), "text/csv"}, "text": {encode(t, "koi8-r", paragraphs(8*window, russian)), "text/plain; charset=koi8-r"},
	} {
		in := func(failAt int) read.Input {
			o := &opener{content: c.content, err: away, failAt: failAt}
			return read.Input{Open: o.open, Size: int64(len(c.content)), DeclaredType: c.declared}
		}
		r := newReader(t, read.Options{})
		if _, err := r.Read(t.Context(), in(2)); !errors.Is(err, away) { // the first opening is the look at the beginning
			t.Errorf("%s, while it is cut: %v", name, err)
		}
		d, err := r.Read(t.Context(), in(3))
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Texts(t.Context(), func(int, string, string) error { return nil }); !errors.Is(err, away) {
			t.Errorf("%s, while it is read again: %v", name, err)
		}
		if err := r.Text(t.Context(), in(2), func(int, parse.Text) error { return nil }); !errors.Is(err, away) {
			t.Errorf("%s, as text: %v", name, err)
		}
	}
}

// endless gives a text of any size without holding it.
type endless struct {
	line string
	left int64
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && e.left > 0 {
		m := min(int64(copy(p[n:], e.line[e.at:])), e.left)
		n, e.left, e.at = n+int(m), e.left-m, (e.at+int(m))%len(e.line)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// What is held does not grow with the document.
func TestPartsAreReadInBoundedMemory(t *testing.T) {
	for name, c := range map[string]struct{ line, declared string }{
		"text":  {encode(t, "windows-1251", russian+"\n\n"), "text/plain; charset=windows-1251"},
		"table": {"1233,Rhine,\"flows north, to the sea\"\n", "text/csv"},
	} {
		live := func(size int64) uint64 {
			parser, err := parse.New(parse.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			defer parser.Close()
			var most uint64
			splitter := &watching{most: &most}
			open := func(context.Context) (io.ReadCloser, error) {
				return io.NopCloser(&endless{line: c.line, left: size}), nil
			}
			r := read.NewWithWindow(read.Options{Parser: parser, Splitter: splitter, MaxBytes: 1 << 30}, 256<<10)
			if _, err := r.Read(t.Context(), read.Input{Open: open, Size: size, DeclaredType: c.declared}); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return most
		}
		small, large := live(4<<20), live(40<<20)
		if large > small+(4<<20) {
			t.Errorf("%s: %d bytes live for 40 MiB, %d for 4", name, large, small)
		}
	}
}

// watching is a splitter that keeps nothing, and looks at the memory.
type watching struct {
	most *uint64
	n    int
}

func (w *watching) Split(context.Context, string, []rag.Block) ([]split.Piece, error) {
	if w.n++; w.n%8 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		*w.most = max(*w.most, m.HeapAlloc)
	}
	return nil, nil
}

func (*watching) Settings() string { return "" }
