package parse

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/waymarkhq/waymark/rag"
)

// pdfiumCache is where the tests keep the compiled PDFium, as the command does.
var pdfiumCache string

func TestMain(m *testing.M) {
	dir, err := os.UserCacheDir()
	if err != nil {
		dir = os.TempDir()
	}
	pdfiumCache = filepath.Join(dir, "waymark", "pdfium")
	code := m.Run()
	if err := closeShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// shared is the parser of the tests that need none of their own: PDFium starts once.
var shared = sync.OnceValues(func() (*Parser, error) { return New(Limits{}, CacheDir(pdfiumCache)) })

func closeShared() error {
	p, err := shared()
	if err != nil {
		return err
	}
	return p.Close()
}

// newParser returns a parser that a test must not change.
func newParser(t testing.TB) *Parser {
	t.Helper()
	p, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// ownParser returns a parser that nobody else uses.
func ownParser(t testing.TB) *Parser {
	t.Helper()
	p, err := New(Limits{}, CacheDir(pdfiumCache))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return p
}

func mustParse(t testing.TB, in Input) Text {
	t.Helper()
	text, err := newParser(t).Parse(context.Background(), in)
	if err != nil {
		t.Fatalf("Parse(%q, %q): %v", in.Name, in.DeclaredType, err)
	}
	checkText(t, text)
	return text
}

// reasonOf is the reason why a document cannot be read; a document that can be read fails the test.
func reasonOf(t testing.TB, in Input) (reason, message string) {
	t.Helper()
	text, err := newParser(t).Parse(context.Background(), in)
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("Parse(%q, %q) gives %+v and %v, not an *Error", in.Name, in.DeclaredType, text, err)
	}
	return e.Reason, e.Message
}

// checkText asserts what the package promises of every text.
func checkText(t testing.TB, text Text) {
	t.Helper()
	if !utf8.ValidString(text.Body) || !utf8.ValidString(text.Title) {
		t.Fatalf("not valid UTF-8: %q %q", text.Title, text.Body)
	}
	if !visible(text.Body) {
		t.Fatalf("there is nothing to see in %q", text.Body)
	}
	if newParser(t).readers[text.Type] == nil {
		t.Fatalf("type is %q", text.Type)
	}
	pos := 0
	for i, b := range text.Blocks {
		if b.Start < pos || b.End <= b.Start || b.End > len(text.Body) {
			t.Fatalf("block %d [%d:%d] is out of order in %d bytes", i, b.Start, b.End, len(text.Body))
		}
		if between := text.Body[pos:b.Start]; strings.TrimSpace(between) != "" {
			t.Fatalf("no block holds %q", between)
		}
		s := text.Body[b.Start:b.End]
		if !utf8.ValidString(s) || strings.TrimSpace(s) == "" {
			t.Fatalf("block %d is %q", i, s)
		}
		if (b.Kind == rag.BlockHeading) != (b.Level > 0) || b.Level > 6 || !utf8.ValidString(b.Heading) {
			t.Fatalf("block %d is %+v", i, b)
		}
		pos = b.End
	}
	if rest := text.Body[pos:]; strings.TrimSpace(rest) != "" {
		t.Fatalf("no block holds %q", rest)
	}
}

func TestPlainTextIsKeptByteForByte(t *testing.T) {
	for _, s := range []string{
		"one line", "  indented\n\n\n\tand more  \r\nwith CRLF\r\n", "ünïcödé\u00a0\u2003漢字 🙂\n", "\ufeffwith a mark", "a\x00b\x1bc", " \x0c page two ",
		"<html>about HTML</html>", `{"about": "JSON"}`, "# about Markdown", "%PDF-1.7 begins a PDF document", `{\rtf1 begins another}`, "GIF89a\x01\x02", "BM 12", "{broken",
	} {
		text := mustParse(t, Input{Content: []byte(s), DeclaredType: "text/plain; charset=utf-8"})
		if text.Body != s || text.Type != TypePlain {
			t.Errorf("%q became %q (%s)", s, text.Body, text.Type)
		}
	}
}

func TestParagraphsAreBetweenBlankLines(t *testing.T) {
	text := mustParse(t, Input{Content: []byte("\n one\n  two \n \t\nthree\r\n\r\nfour")})
	var got []string
	for _, b := range text.Blocks {
		got = append(got, text.Body[b.Start:b.End])
	}
	if want := []string{"one\n  two", "three", "four"}; strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

func TestBlocksAreBounded(t *testing.T) {
	text := mustParse(t, Input{Content: []byte(strings.Repeat("a\n\n", maxBlocks+10))})
	if len(text.Blocks) != maxBlocks {
		t.Errorf("%d blocks", len(text.Blocks))
	}
}

func TestNothingToReadHasItsReason(t *testing.T) {
	if reason, _ := reasonOf(t, Input{}); reason != rag.ReasonEmptyText {
		t.Errorf("no content: %s", reason)
	}
	for _, s := range []string{" ", "\n\t\r\n", "\ufeff", "\u200b\u00a0", "\x00\x01"} {
		for _, declared := range []string{"text/plain", "text/plain; charset=utf-8"} {
			if reason, _ := reasonOf(t, Input{Content: []byte(s), DeclaredType: declared}); reason != rag.ReasonNoText {
				t.Errorf("%q: %s", s, reason)
			}
		}
	}
}

func TestLimitsAreChecked(t *testing.T) {
	for _, l := range []Limits{{Input: -1}, {Text: -1}, {Time: -1}} {
		if _, err := New(l); err == nil {
			t.Errorf("%+v was accepted", l)
		}
	}
	p, err := New(Limits{Input: 100, Text: 50})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	for _, n := range []int{51, 101} {
		_, err := p.Parse(context.Background(), Input{Content: []byte(strings.Repeat("a", n))})
		if !errors.As(err, &e) || e.Reason != rag.ReasonTooLarge {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestTheTimeLimitIsTheDocumentsFaultAndTheContextIsNot(t *testing.T) {
	in := Input{Content: []byte(strings.Repeat(`{"a": [1, 2, 3]}`+"\n", 100_000)), DeclaredType: TypeJSONLines}
	p, err := New(Limits{Time: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	var e *Error
	if _, err := p.Parse(context.Background(), in); !errors.As(err, &e) || e.Reason != rag.ReasonTimeout {
		t.Errorf("over the limit: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Parse(ctx, in); !errors.Is(err, context.Canceled) || errors.As(err, &e) {
		t.Errorf("canceled: %v", err)
	}
}

func TestAParserIsSafeForConcurrentUse(t *testing.T) {
	p := newParser(t)
	inputs := []Input{
		{Content: []byte("<title>a</title><p>b"), DeclaredType: TypeHTML}, {Content: []byte("# a\n\nb"), DeclaredType: TypeMarkdown},
		{Content: []byte(`{"a": "b"}`), DeclaredType: TypeJSON}, {Content: encode(t, "windows-1251", russian)},
	}
	var wg sync.WaitGroup
	for _, in := range inputs {
		for range 4 {
			wg.Go(func() {
				for range 50 {
					if _, err := p.Parse(context.Background(), in); err != nil {
						t.Errorf("%q: %v", in.DeclaredType, err)
					}
				}
			})
		}
	}
	wg.Wait()
}
