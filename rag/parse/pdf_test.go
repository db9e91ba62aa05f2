package parse

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
	"github.com/waymarkhq/waymark/rag/parse/pdf"
)

const rivers = "The Rhine rises in the Alps, flows north through four countries and ends in the North Sea. Its water turns mills and " +
	"carries barges. People have built along it for two thousand years, and they still do. "

func parsePDF(t testing.TB, d parsetest.PDF) Text {
	t.Helper()
	return mustParse(t, Input{Content: d.Bytes()})
}

func TestPDFHasTitleHeadingsParagraphsAndPages(t *testing.T) {
	first, y := parsetest.Column(60, 760, 11, 80, rivers+rivers, "A second paragraph stands below the first.")
	heading := parsetest.PDFLine{X: 60, Y: y - 10, Size: 16, Text: "Mills and barges"}
	second, _ := parsetest.Column(60, 760, 11, 80, "On the second page.", "• First item", "• Second item that is long")
	text := parsePDF(t, parsetest.PDF{Title: "On rivers", Pages: []parsetest.PDFPage{
		{Lines: append(append([]parsetest.PDFLine{{X: 60, Y: 800, Size: 22, Text: "Rivers of Europe"}}, first...), heading)}, {Lines: second},
	}})
	want := "h1: Rivers of Europe\nparagraph: " + strings.TrimSpace(rivers+rivers) + "\nparagraph: A second paragraph stands below the first.\n" +
		"h2: Mills and barges\nparagraph: On the second page.\nlist: - First item\n- Second item that is long\n"
	if got := outline(text); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if text.Title != "On rivers" || text.Type != TypePDF || len(text.Warnings) > 0 {
		t.Errorf("%q, %s, %q", text.Title, text.Type, text.Warnings)
	}
	for i, b := range text.Blocks {
		if want := map[bool]int{true: 1, false: 2}[i < 4]; b.Page != want {
			t.Errorf("block %d is on page %d, not %d", i, b.Page, want)
		}
	}
}

func TestPDFWordsPartedByHyphensAreJoined(t *testing.T) {
	text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: []parsetest.PDFLine{
		{X: 60, Y: 700, Size: 11, Text: "The govern-"}, {X: 60, Y: 687, Size: 11, Text: "ment of the river and of COVID-"}, {X: 60, Y: 674, Size: 11, Text: "19 is well-known."},
	}}}})
	if want := "The government of the river and of COVID-19 is well-known."; text.Body != want {
		t.Errorf("got %q", text.Body)
	}
}

func TestPDFColumnsAreReadOneByOne(t *testing.T) {
	left, _ := parsetest.Column(50, 760, 10, 40, rivers)
	right, _ := parsetest.Column(320, 760, 10, 40, "Another column has another text. It is read behind the first one.")
	text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: append(left, right...)}}})
	if want := strings.TrimSpace(rivers); !strings.HasPrefix(text.Body, want) || !strings.HasSuffix(text.Body, "read behind the first one.") {
		t.Errorf("got %q", text.Body)
	}
}

func TestPDFRepeatedHeadersAndFootersAreLeftOut(t *testing.T) {
	var d parsetest.PDF
	for i := range 6 {
		lines, _ := parsetest.Column(60, 740, 11, 80, fmt.Sprintf("Chapter %c begins. ", 'A'+i)+rivers, "All rights are reserved in this paragraph, too.")
		lines = append(lines, parsetest.PDFLine{X: 60, Y: 810, Size: 9, Text: "Annual report of the rivers"}, parsetest.PDFLine{X: 280, Y: 30, Size: 9, Text: fmt.Sprintf("Page %d of 6", i+1)})
		d.Pages = append(d.Pages, parsetest.PDFPage{Lines: lines})
	}
	text := parsePDF(t, d)
	if strings.Contains(text.Body, "Annual report") || strings.Contains(text.Body, "of 6") {
		t.Errorf("headers or footers are in %q", text.Body[:400])
	}
	for i := range 6 {
		if !strings.Contains(text.Body, fmt.Sprintf("Chapter %c begins.", 'A'+i)) {
			t.Errorf("chapter %d is lost", i)
		}
	}
}

func TestPDFRotatedPagesAreRead(t *testing.T) {
	for _, degrees := range []int{90, 180, 270} {
		lines, _ := parsetest.Column(60, 500, 11, 80, rivers)
		text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: lines, Rotate: degrees}}})
		if want := strings.TrimSpace(rivers); strings.Join(strings.Fields(text.Body), " ") != want {
			t.Errorf("%d degrees: %q", degrees, text.Body)
		}
	}
}

func TestPDFScansAreTold(t *testing.T) {
	scan := parsetest.PDFPage{Image: true}
	reason, message := reasonOf(t, Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{scan, scan}}.Bytes()})
	if reason != rag.ReasonScanWithoutText || !strings.Contains(message, "2 pages") {
		t.Errorf("%s: %s", reason, message)
	}
	if reason, _ := reasonOf(t, Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{{}}}.Bytes()}); reason != rag.ReasonNoText {
		t.Errorf("an empty page: %s", reason)
	}
	text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{scan, {Lines: []parsetest.PDFLine{{X: 60, Y: 700, Size: 11, Text: "A page with text."}}}, scan, scan}})
	if text.Body != "A page with text." || len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], "pages 1, 3-4") {
		t.Errorf("%q %q", text.Body, text.Warnings)
	}
}

func TestEncryptedPDF(t *testing.T) {
	for file, want := range map[string]string{"locked.pdf": rag.ReasonEncrypted, "owner-password.pdf": ""} {
		content, err := os.ReadFile("testdata/files/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if text := mustParse(t, Input{Content: content}); !strings.Contains(text.Body, "The Rhine rises") {
				t.Errorf("%s: %q", file, text.Body)
			}
			continue
		}
		if reason, message := reasonOf(t, Input{Content: content}); reason != want || !strings.Contains(message, "password") {
			t.Errorf("%s: %s: %s", file, reason, message)
		}
	}
}

func TestBrokenPDF(t *testing.T) {
	sound := parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: []parsetest.PDFLine{{X: 60, Y: 700, Size: 11, Text: "Text."}}}}}.Bytes()
	for name, content := range map[string][]byte{"mark alone": []byte("%PDF-1.7\n"), "cut": sound[:60], "noise": append([]byte("%PDF-1.7\n\xe2\xe3"), make([]byte, 5000)...)} {
		if reason, _ := reasonOf(t, Input{Content: content, Name: "a.txt"}); reason != rag.ReasonBrokenFile {
			t.Errorf("%s: %s", name, reason)
		}
	}
	for name, content := range map[string][]byte{
		"wrong place of the table": bytes.Replace(sound, []byte("startxref\n"), []byte("startxref\n7"), 1), "noise before it": append([]byte("\n\n"), sound...),
		"noise behind it": append(sound[:len(sound):len(sound)], "\x00\x00\n<html>"...),
	} {
		if text := mustParse(t, Input{Content: content}); text.Body != "Text." {
			t.Errorf("%s: %q", name, text.Body)
		}
	}
}

func TestPDFFormsAndNotesAreRead(t *testing.T) {
	text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{
		{Lines: []parsetest.PDFLine{{X: 60, Y: 700, Size: 11, Text: "Printed text"}}, Field: "Value in a field"},
	}})
	for _, want := range []string{"Printed text", "Value in a field"} {
		if !strings.Contains(text.Body, want) {
			t.Errorf("%q is not in %q", want, text.Body)
		}
	}
}

// zeros is n bytes of zero, packed: the same packed block again and again, which is fast to make.
func zeros(t *testing.T, n int) []byte {
	t.Helper()
	const block = 1 << 20
	var b bytes.Buffer
	w, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	var packed []byte // the second block, which refers to the first as each to the one before it
	for range 2 {
		start := b.Len()
		if _, err := w.Write(make([]byte, block)); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		packed = bytes.Clone(b.Bytes()[start:])
	}
	return append(b.Bytes(), bytes.Repeat(packed, n/block-2)...)
}

func TestPDFPagesThatNeedTooMuchMemoryDoNotSinkTheRest(t *testing.T) {
	bomb := parsetest.PDFPage{Packed: zeros(t, 300<<20)}
	good := parsetest.PDFPage{Lines: []parsetest.PDFLine{{X: 60, Y: 700, Size: 11, Text: "A page with text."}}}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	text := parsePDF(t, parsetest.PDF{Pages: []parsetest.PDFPage{good, bomb, good}})
	runtime.ReadMemStats(&after)
	if strings.Count(text.Body, "A page with text.") != 2 {
		t.Errorf("%q %q", text.Body, text.Warnings)
	}
	if len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], "page 2.") {
		t.Errorf("warnings %q", text.Warnings)
	}
	if !strings.Contains(text.Warnings[0], "256 MiB") {
		t.Errorf("the warning names no limit: %q", text.Warnings)
	}
	if reason, message := reasonOf(t, Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{bomb}}.Bytes()}); reason != rag.ReasonMemory || !strings.Contains(message, "256 MiB") {
		t.Errorf("such a page alone: %s: %s", reason, message)
	}
	// PDFium's memory, which is bounded by its size, is not part of Go's.
	if grown := (after.Sys - before.Sys) >> 20; grown > 100 {
		t.Errorf("%d MB more of Go's memory", grown)
	}
}

func TestPDFEndsWithItsTime(t *testing.T) {
	lines, _ := parsetest.Column(60, 800, 6, 100, strings.Repeat(rivers, 30))
	d := parsetest.PDF{}
	for range 100 {
		d.Pages = append(d.Pages, parsetest.PDFPage{Lines: lines})
	}
	p, err := New(Limits{Time: 20 * time.Millisecond}, CacheDir(pdfiumCache))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var e *Error
	if _, err := p.Parse(context.Background(), Input{Content: d.Bytes()}); !errors.As(err, &e) || e.Reason != rag.ReasonTimeout {
		t.Errorf("over the limit: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Parse(ctx, Input{Content: d.Bytes()}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	lines, _ = parsetest.Column(60, 700, 11, 80, "Still alive.")
	if text, err := newParser(t).Parse(context.Background(), Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: lines}}}.Bytes()}); err != nil || text.Body != "Still alive." {
		t.Errorf("after it: %q, %v", text.Body, err)
	}
}

// A parser that is not given the time to start PDFium blames nobody.
func TestPDFiumThatIsNotReadyIsNoFaultOfTheDocument(t *testing.T) {
	p := ownParser(t) // it takes a tenth of a second at least
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	var e *Error
	_, err := p.Parse(ctx, Input{Content: parsetest.PDF{Pages: []parsetest.PDFPage{{}}}.Bytes()})
	if !errors.Is(err, pdf.ErrNotReady) || errors.As(err, &e) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
