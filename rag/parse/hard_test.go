package parse

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/waymarkhq/waymark/rag"
)

// tokens are the words of a text, folded; an ideograph, or a sign of kana, is one.
func tokens(text string) []string {
	var all []string
	word := ""
	end := func() {
		if word != "" {
			all = append(all, word)
		}
		word = ""
	}
	for _, r := range strings.ToLower(text) {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			end()
			all = append(all, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			word += string(r)
		default:
			end()
		}
	}
	end()
	return all
}

// f1 compares two texts token by token: 2·common/(a+b).
func f1(a, b string) float64 {
	x, y := tokens(a), tokens(b)
	counts := map[string]int{}
	for _, s := range x {
		counts[s]++
	}
	common := 0
	for _, s := range y {
		if counts[s] > 0 {
			counts[s]--
			common++
		}
	}
	return ratio(common, len(x)+len(y))
}

// ordered is f1 of tokens in the same order: common is the longest common subsequence.
func ordered(a, b string) float64 {
	x, y := tokens(a), tokens(b)
	row := make([]int, len(y)+1)
	for _, s := range x {
		diagonal := 0
		for j, t := range y {
			before := row[j+1]
			switch {
			case s == t:
				row[j+1] = diagonal + 1
			case row[j] > row[j+1]:
				row[j+1] = row[j]
			}
			diagonal = before
		}
	}
	return ratio(row[len(y)], len(x)+len(y))
}

func ratio(common, all int) float64 {
	if all == 0 {
		return 1
	}
	return 2 * float64(common) / float64(all)
}

func TestF1ComparesTokens(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		any, inline float64
	}{{"One, two.", "one TWO", 1, 1}, {"one two", "two one", 1, 0.5}, {"a b c", "a c", 0.8, 0.8}, {"a a", "a", 2.0 / 3, 2.0 / 3}, {"川の水", "川の水位", 6.0 / 7, 6.0 / 7}, {"", "", 1, 1}, {"a", "", 0, 0}} {
		if got := f1(c.a, c.b); math.Abs(got-c.any) > 1e-9 {
			t.Errorf("%q, %q: %f, not %f", c.a, c.b, got, c.any)
		}
		if got := ordered(c.a, c.b); math.Abs(got-c.inline) > 1e-9 {
			t.Errorf("%q, %q in order: %f, not %f", c.a, c.b, got, c.inline)
		}
	}
}

// Lower bounds of f1, and of ordered, and why some documents have their own.
const leastF1, leastOrdered = 0.97, 0.95

var ownBounds = map[string]struct{ any, ordered float64 }{
	"rtl.pdf":        {0.95, 0.95}, // the file has the letters of one Arabic ligature in the wrong order
	"report.pdf":     {0.97, 0.90}, // the file has the text box before the page's header
	"report.rtf":     {0.97, 0.90}, // and before the paragraph that it is anchored in
	"table-open.pdf": {0.93, 0.93}, // the header is repeated with each group of rows
}

// hardFiles are the documents of testdata/hard that must give a text, with it.
func hardFiles(t testing.TB) map[string]string {
	t.Helper()
	texts, err := filepath.Glob("testdata/hard/*.*.txt")
	if err != nil || len(texts) < 30 {
		t.Fatalf("%d texts, %v", len(texts), err)
	}
	files := map[string]string{}
	for _, name := range texts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimSuffix(filepath.Base(name), ".txt")] = string(text)
	}
	return files
}

func hardInput(t testing.TB, name string) Input {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata/hard", name))
	if err != nil {
		t.Fatal(err)
	}
	return Input{Content: content, Name: name}
}

// Every difficult document gives the text that stands beside it.
func TestDifficultDocuments(t *testing.T) {
	for name, want := range hardFiles(t) {
		text, err := newParser(t).Parse(context.Background(), hardInput(t, name))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkText(t, text)
		bound, own := ownBounds[name]
		if !own {
			bound.any, bound.ordered = leastF1, leastOrdered
		}
		if got, inline := f1(text.Body, want), ordered(text.Body, want); got < bound.any || inline < bound.ordered {
			t.Errorf("%s: F1 %.3f, in order %.3f\n%s\n--- not\n%s", name, got, inline, text.Body, want)
		}
	}
}

// Fonts that do not say what they show: nobody can read such a document, and it must not pass for one that was read.
func TestAPDFWhoseFontsSayNothingIsNotTakenForText(t *testing.T) {
	text, err := newParser(t).Parse(context.Background(), hardInput(t, "no-tounicode.pdf"))
	var e *Error
	if errors.As(err, &e) && (e.Reason == rag.ReasonScanWithoutText || e.Reason == rag.ReasonNoText) {
		return
	}
	if err != nil || len(text.Warnings) == 0 {
		t.Errorf("%q, %q, %v", text.Body, text.Warnings, err)
	}
}
