package examples_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/split"
)

// unreadable are the documents that must die, with their reasons.
var unreadable = map[string]string{
	"broken-report.json": rag.ReasonBrokenJSON,
	"portraits.html":     rag.ReasonNoText,
	"recording.dat":      rag.ReasonUnsupportedType,
	"scan.pdf":           rag.ReasonScanWithoutText,
}

func TestEveryArticleIsReadAndFourFail(t *testing.T) {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = t.TempDir()
	}
	parser, err := parse.New(parse.Limits{}, parse.CacheDir(filepath.Join(cache, "waymark", "pdfium")))
	if err != nil {
		t.Fatal(err)
	}
	defer parser.Close()
	splitter, err := split.New(split.Options{Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap})
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir("articles")
	if err != nil {
		t.Fatal(err)
	}
	types := map[string]int{}
	failed := 0
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join("articles", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		text, err := parser.Parse(context.Background(), parse.Input{Content: content, Name: "articles/" + f.Name()})
		if reason := unreadable[f.Name()]; reason != "" {
			failed++
			var e *parse.Error
			if !errors.As(err, &e) || e.Reason != reason {
				t.Errorf("%s: got %v, want %s", f.Name(), err, reason)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		types[text.Type]++
		if text.Type == parse.TypePlain && text.Body != string(content) {
			t.Errorf("%s: the text is not the file", f.Name())
		}
		if text.Type != parse.TypePlain {
			checkStructure(t, f.Name(), text)
		}
		pieces, err := splitter.Split(context.Background(), text.Body, text.Blocks)
		if err != nil || len(pieces) < 5 {
			t.Errorf("%s: %d pieces, %v", f.Name(), len(pieces), err)
		}
		checkCoverage(t, f.Name(), text.Body, pieces)
	}
	if failed != len(unreadable) || types[parse.TypePlain] != 36 || types[parse.TypeHTML] != 12 || types[parse.TypeMarkdown] != 12 ||
		types[parse.TypePDF] != 2 || types[parse.TypeDOCX] != 2 {
		t.Errorf("%d fail, the others are %v", failed, types)
	}
}

// checkStructure asserts what the pages and Markdown documents are made of: a heading, facts, a heading, paragraphs.
func checkStructure(t *testing.T, name string, text parse.Text) {
	t.Helper()
	year := name[:4]
	if want := "State of the Union " + year + ": "; !strings.HasPrefix(text.Title, want) {
		t.Errorf("%s: title is %q", name, text.Title)
	}
	if strings.Contains(text.Body, "&#") || strings.Contains(text.Body, "All addresses") || strings.Contains(text.Body, `\*`) {
		t.Errorf("%s: marks or navigation in the text", name)
	}
	kinds := map[rag.BlockKind]int{}
	for i, b := range text.Blocks {
		kinds[b.Kind]++
		if strings.Contains(text.Body[b.Start:b.End], "Addresses to the Congress") {
			t.Errorf("%s: a header in the text", name)
		}
		if i > 2 && (b.Kind != rag.BlockParagraph || !strings.HasPrefix(b.Heading, "State of the Union "+year+" > ")) {
			t.Errorf("%s: block %d is %+v: %q", name, i, b, text.Body[b.Start:b.End])
		}
	}
	if kinds[rag.BlockHeading] != 2 || kinds[rag.BlockList]+kinds[rag.BlockTable] != 1 || kinds[rag.BlockParagraph] < 10 {
		t.Errorf("%s: blocks are %v", name, kinds)
	}
}

func checkCoverage(t *testing.T, name, text string, pieces []split.Piece) {
	t.Helper()
	covered := 0
	for _, p := range append(pieces, split.Piece{Start: len(text), End: len(text)}) {
		if p.Start > covered && strings.ContainsFunc(text[covered:p.Start], func(r rune) bool { return !unicode.IsSpace(r) }) {
			t.Errorf("%s: no piece covers %q", name, text[covered:p.Start])
		}
		covered = max(covered, p.End)
	}
}
