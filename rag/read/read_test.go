package read_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
	"unicode"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

// window is smaller than that of the product, so that the tests need not read megabytes.
const window = 16 << 10

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opener counts how much of a document was given out, and fails where it is told to.
type opener struct {
	content string
	opened  int
	err     error // at the end instead of io.EOF
	failAt  int   // the opening, from 1, that ends in err; 0: none
}

func (o *opener) open(context.Context) (io.ReadCloser, error) {
	o.opened++
	r := io.Reader(strings.NewReader(o.content))
	if o.opened == o.failAt {
		r = io.MultiReader(r, failing{o.err})
	}
	return io.NopCloser(r), nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func newReader(t testing.TB, o read.Options) *read.Reader {
	t.Helper()
	parser, err := parse.New(parse.Limits{Input: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := parser.Close(); err != nil {
			t.Error(err)
		}
	})
	splitter, err := split.New(split.Options{Tokens: 200, Overlap: 30, MaxPieces: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	o.Parser, o.Splitter, o.MaxBytes = parser, splitter, 64<<20
	if o.MaxPieces == 0 {
		o.MaxPieces = 1_000_000
	}
	return read.NewWithWindow(o, window)
}

// prose is a text of at least n bytes, in paragraphs.
func prose(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Paragraph %d tells of the river Elbe, which flows through Hamburg. It has length, and it has depth. Ещё одно предложение.\n", i)
		if i%3 == 2 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func collect(t testing.TB, d *read.Document) []string {
	t.Helper()
	var all []string
	if err := d.Texts(t.Context(), func(i int, text, _ string) error {
		if i != len(all) {
			t.Fatalf("text %d comes as number %d", i, len(all))
		}
		all = append(all, text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// covers fails unless the pieces are slices of the text, in order, that leave out nothing but white space.
func covers(t testing.TB, text string, d *read.Document) {
	t.Helper()
	end := 0
	texts := collect(t, d)
	if len(texts) != len(d.Pieces) {
		t.Fatalf("%d texts of %d pieces", len(texts), len(d.Pieces))
	}
	for i, p := range d.Pieces {
		if texts[i] != text[p.Start:p.End] {
			t.Fatalf("piece %d is not its slice of the text", i)
		}
		if p.Start > end && strings.TrimSpace(text[end:p.Start]) != "" {
			t.Fatalf("between %d and %d something is missing: %.60q", end, p.Start, text[end:p.Start])
		}
		if p.End <= end {
			t.Fatalf("piece %d ends at %d, the one before at %d", i, p.End, end)
		}
		end = p.End
	}
	if strings.TrimSpace(text[end:]) != "" {
		t.Fatalf("the end is missing from %d on", end)
	}
}

func TestLargeTextInWindows(t *testing.T) {
	text := prose(5 * window / 2)
	o := &opener{content: text}
	d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: o.open, Size: int64(len(text)), Name: "book.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if d.Type != parse.TypePlain || d.Bytes != int64(len(text)) || len(d.Warnings) > 0 {
		t.Errorf("type %s, %d bytes, warnings %q", d.Type, d.Bytes, d.Warnings)
	}
	covers(t, text, d)
	first := collect(t, d)
	again, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: o.open, Size: int64(len(text)), Name: "book.txt"})
	if err != nil {
		t.Fatal(err)
	}
	if second := collect(t, again); strings.Join(first, "\x00") != strings.Join(second, "\x00") {
		t.Error("read again it has other pieces")
	}
}

// A text that fits twice into a window is read as the parser and the splitter read it.
func TestSmallDocumentIsReadAsAWhole(t *testing.T) {
	text := prose(window + 1<<10)
	d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: read.Bytes([]byte(text)), Size: int64(len(text)), Name: "book.txt"})
	if err != nil {
		t.Fatal(err)
	}
	covers(t, text, d)
	splitter, err := split.New(split.Options{Tokens: 200, Overlap: 30})
	if err != nil {
		t.Fatal(err)
	}
	parser, err := parse.New(parse.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer parser.Close()
	whole, err := parser.Parse(t.Context(), parse.Input{Content: []byte(text), Name: "book.txt"})
	if err != nil {
		t.Fatal(err)
	}
	pieces, err := splitter.Split(t.Context(), whole.Body, whole.Blocks)
	if err != nil || fmt.Sprint(pieces) != fmt.Sprint(d.Pieces) {
		t.Errorf("other pieces than those of the splitter: %v", err)
	}
}

// What the texts are cut at must not matter to what they cover: text without lines, without spaces, of wide characters, blank.
func TestOddTextsInWindows(t *testing.T) {
	size := 2*window + 100
	for name, text := range map[string]string{
		"one line":         strings.Repeat("word ", size/5+1),
		"no spaces":        strings.Repeat("x", size),
		"no spaces, wide":  strings.Repeat("深圳", size/6+1),
		"blank in between": prose(window) + strings.Repeat(" \n", 2*window) + prose(window),
		"CRLF":             strings.ReplaceAll(prose(size), "\n", "\r\n"),
		"a mark in front":  "\ufeff" + prose(size),
	} {
		t.Run(name, func(t *testing.T) {
			d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: read.Bytes([]byte(text)), Size: int64(len(text)), DeclaredType: "text/plain"})
			if err != nil {
				t.Fatal(err)
			}
			covers(t, text, d)
		})
	}
}

func TestLargeDocumentsThatAreRefused(t *testing.T) {
	size := 2 * read.MaxTextFormat
	for name, tc := range map[string]struct {
		content, declared, name string
		reason                  string
	}{
		"JSON whose beginning is none":  {`{"a": "` + strings.Repeat("x", size), "", "", rag.ReasonTooLarge},
		"XML":                           {`<?xml version="1.0"?><a>` + strings.Repeat("x", size), "", "", rag.ReasonTooLarge},
		"HTML by its name":              {"<p>" + strings.Repeat("x ", size/2), "", "page.html", rag.ReasonTooLarge},
		"CSV, a row of separators":      {"a,b\n" + strings.Repeat("1,2\n", size/4) + strings.Repeat(",", 2<<20), "text/csv", "", rag.ReasonTooLarge},
		"CSV, a quote never closed":     {"a,b\n1,\"" + strings.Repeat("2\n", size/2), "text/csv", "", rag.ReasonTooLarge},
		"above the limit of everything": {strings.Repeat("x ", 33<<20), "text/plain", "", rag.ReasonTooLarge},
		"nothing":                       {"", "text/plain", "", rag.ReasonEmptyText},
	} {
		_, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: read.Bytes([]byte(tc.content)), Size: int64(len(tc.content)),
			DeclaredType: tc.declared, Name: tc.name})
		var pe *parse.Error
		if !errors.As(err, &pe) || pe.Reason != tc.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTooManyChunks(t *testing.T) {
	text := prose(3 * window)
	_, err := newReader(t, read.Options{MaxPieces: 50}).Read(t.Context(), read.Input{Open: read.Bytes([]byte(text)), Size: int64(len(text)), Name: "a.txt"})
	var se *split.Error
	if !errors.As(err, &se) || se.Reason != rag.ReasonTooManyChunks || !strings.Contains(se.Message, "50") {
		t.Errorf("error %v", err)
	}
}

// Errors of the source are given as they are, whenever they come: the caller knows what they mean.
func TestErrorsOfTheSource(t *testing.T) {
	away := errors.New("the store is away")
	text := prose(300 << 10)
	for failAt := 1; failAt <= 2; failAt++ {
		o := &opener{content: text, err: away, failAt: failAt}
		_, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: o.open, Size: int64(len(text)), Name: "a.txt"})
		if failAt == 1 { // the look at the beginning does not come to the end
			if err != nil {
				t.Errorf("opening %d: %v", failAt, err)
			}
			continue
		}
		if !errors.Is(err, away) {
			t.Errorf("opening %d: %v", failAt, err)
		}
	}
	o := &opener{content: text, err: away, failAt: 3}
	d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: o.open, Size: int64(len(text)), Name: "a.txt"})
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	err = d.Texts(t.Context(), func(int, string, string) error { given++; return nil })
	if !errors.Is(err, away) || given != len(d.Pieces)-1 {
		t.Errorf("%d of %d texts, then %v", given, len(d.Pieces), err)
	}
	small := &opener{content: "short", err: away, failAt: 1}
	if _, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: small.open, Size: 5}); !errors.Is(err, away) {
		t.Errorf("a small document: %v", err)
	}
}

// cut is a document whose source breaks off after some bytes, in the opening after some that are as they should be.
func cut(text string, after, sound int, err error) func(context.Context) (io.ReadCloser, error) {
	opened := 0
	return func(context.Context) (io.ReadCloser, error) {
		if opened++; opened <= sound {
			return io.NopCloser(strings.NewReader(text)), nil
		}
		return io.NopCloser(io.MultiReader(strings.NewReader(text[:after]), failing{err})), nil
	}
}

// A source that is cut midway is never the end of the document, however its error looks: net/http says io.ErrUnexpectedEOF,
// as io.ReadFull does at the end of what it reads.
func TestSourceThatIsCut(t *testing.T) {
	text := prose(3 * window)
	pdf := "%PDF-1.7\n" + strings.Repeat("x", 300<<10)
	for name, end := range map[string]error{
		"wrapped":     fmt.Errorf("the network: %w", io.ErrUnexpectedEOF),
		"bare":        io.ErrUnexpectedEOF,
		"wrapped end": fmt.Errorf("the network: %w", io.EOF),
		"end":         io.EOF,
	} {
		t.Run(name, func(t *testing.T) {
			for what, tc := range map[string]struct {
				content, name string
				after, sound  int
			}{
				"a text, in its beginning":            {text, "a.txt", 100, 0},
				"a text, before its beginning":        {text, "a.txt", 0, 0},
				"a text, between its windows":         {text, "a.txt", window, 1},
				"a text, in a window":                 {text, "a.txt", window + 100, 1},
				"a text, in a character":              {text, "a.txt", strings.Index(text[window:], "щ") + window + 1, 1},
				"a PDF, before its beginning":         {pdf, "", 0, 0},
				"a PDF, behind its beginning":         {pdf, "", 280 << 10, 0},
				"a document that is read as a whole":  {text[:window], "a.txt", 100, 0},
				"one that looks like text, in a look": {strings.Repeat("{", 3*window), "a.json", 100, 0},
			} {
				d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: cut(tc.content, tc.after, tc.sound, end), Size: int64(len(tc.content)), Name: tc.name})
				var pe *parse.Error
				if err == nil || errors.As(err, &pe) {
					t.Errorf("%s: document %v, error %v", what, d != nil, err)
				}
			}
			d, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: cut(text, window+100, 2, end), Size: int64(len(text)), Name: "a.txt"})
			if err != nil {
				t.Fatal(err)
			}
			if err := d.Texts(t.Context(), func(int, string, string) error { return nil }); err == nil {
				t.Error("the texts were read to an end that is none")
			}
		})
	}
}

// What has other bytes than it should have is not read.
func TestSourceOfAnotherSize(t *testing.T) {
	text := prose(3 * window)
	_, err := newReader(t, read.Options{}).Read(t.Context(), read.Input{Open: (&opener{content: text + "more"}).open, Size: int64(len(text)), Name: "a.txt"})
	var pe *parse.Error
	if err == nil || errors.As(err, &pe) {
		t.Errorf("error %v", err)
	}
}

// slow is a parser that takes its time.
type slow struct{}

func (slow) Parse(ctx context.Context, _ parse.Input) (parse.Text, error) {
	<-ctx.Done()
	return parse.Text{}, fmt.Errorf("parse: %w", ctx.Err())
}

func TestTimeIsTheDocuments(t *testing.T) {
	r := read.New(read.Options{Parser: slow{}, Time: time.Millisecond})
	_, err := r.Read(t.Context(), read.Input{Open: read.Bytes([]byte("x")), Size: 1})
	var pe *parse.Error
	if !errors.As(err, &pe) || pe.Reason != rag.ReasonTimeout {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(ctx, read.Input{Open: read.Bytes([]byte("x")), Size: 1}); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller's end: %v", err)
	}
}

// visible reports whether there is anything to see; of a window without it nothing is to be found.
func visible(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) })
}

// Any text, however large, is covered by its pieces.
func TestEveryTextIsCovered(t *testing.T) {
	r := newReader(t, read.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		part := rapid.StringN(1, 400, 2000).Draw(rt, "part")
		text := "begin " + strings.ToValidUTF8(strings.Repeat(part+rapid.SampledFrom([]string{"", "\n", "\n\n", " "}).Draw(rt, "between"), 1+(2*window+5000)/len(part)), "") + " end"
		text = strings.Map(func(c rune) rune { // control characters make it no text
			if c < ' ' && c != '\n' {
				return ' '
			}
			return c
		}, text)
		d, err := r.Read(t.Context(), read.Input{Open: read.Bytes([]byte(text)), Size: int64(len(text)), DeclaredType: "text/plain"})
		if err != nil {
			rt.Fatal(err)
		}
		end := 0
		for i, p := range d.Pieces {
			if p.Start > end && visible(text[end:p.Start]) || p.End <= end {
				rt.Fatalf("piece %d [%d:%d] behind %d", i, p.Start, p.End, end)
			}
			end = p.End
		}
		if visible(text[end:]) {
			rt.Fatal("the end is missing")
		}
	})
}
