package split

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
)

// failer is what *testing.T, *testing.F and *rapid.T have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func mustSplit(t failer, o Options, text string, blocks []rag.Block) []Piece {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatalf("New(%+v): %v", o, err)
	}
	pieces, err := s.Split(context.Background(), text, blocks)
	if err != nil {
		t.Fatalf("Split: %v", err)
	}
	return pieces
}

// check asserts what the package promises of every text.
func check(t failer, o Options, text string, pieces []Piece) {
	t.Helper()
	covered, starts := 0, clusterStarts(text)
	for i, p := range pieces {
		if p.Start < 0 || p.Start >= p.End || p.End > len(text) {
			t.Fatalf("piece %d [%d:%d] is not a slice of %d bytes", i, p.Start, p.End, len(text))
		}
		s := text[p.Start:p.End]
		if !utf8.ValidString(s) {
			t.Fatalf("piece %d cuts a rune: %q", i, s)
		}
		if n := EstimateTokens(s); n > o.Tokens || n == 0 {
			t.Fatalf("piece %d has %d tokens of at most %d: %q", i, n, o.Tokens, s)
		}
		if len(s) > o.Tokens*maxBytesPerToken {
			t.Fatalf("piece %d has %d bytes, more than %d", i, len(s), o.Tokens*maxBytesPerToken)
		}
		first, _ := utf8.DecodeRuneInString(s)
		last, _ := utf8.DecodeLastRuneInString(s)
		if unicode.IsSpace(first) || unicode.IsSpace(last) {
			t.Fatalf("piece %d has white space at its ends: %q", i, s)
		}
		if i > 0 && (p.Start <= pieces[i-1].Start || p.End <= pieces[i-1].End) {
			t.Fatalf("piece %d [%d:%d] does not come after [%d:%d]", i, p.Start, p.End, pieces[i-1].Start, pieces[i-1].End)
		}
		if g := clusterCut(text, starts, p.Start, o.Tokens) + clusterCut(text, starts, p.End, o.Tokens); g != "" {
			t.Fatalf("piece %d [%d:%d] cuts the cluster %q", i, p.Start, p.End, g)
		}
		checkParent(t, o, text, pieces, i)
		if p.Start > covered {
			requireSpace(t, text[covered:p.Start])
		}
		covered = p.End
	}
	requireSpace(t, text[covered:])
}

// clusterStarts are the borders of the grapheme clusters of a text.
func clusterStarts(text string) []int {
	starts := make([]int, 0, len(text)+1)
	for it := graphemes.FromString(text); it.Next(); {
		starts = append(starts, it.Start())
	}
	return append(starts, len(text))
}

// clusterCut is the grapheme cluster that is cut at i; "" if none is, or one that may be: larger than a piece, or with
// white space at an end, which belongs to no piece.
func clusterCut(text string, starts []int, i, tokens int) string {
	n, found := slices.BinarySearch(starts, i)
	if found {
		return ""
	}
	cluster := text[starts[n-1]:starts[n]]
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	first, _ := utf8.DecodeRuneInString(cluster)
	if unicode.IsSpace(first) || blank(text[i:starts[n]]) || len(cluster) > tokens*maxBytesPerToken || EstimateTokens(cluster) > tokens {
		return ""
	}
	return cluster
}

// checkParent asserts that parents hold their pieces, follow each other and are bounded.
func checkParent(t failer, o Options, text string, pieces []Piece, i int) {
	t.Helper()
	p, parent := pieces[i], pieces[i].Parent
	if o.Parent == 0 {
		if parent != (Span{}) {
			t.Fatalf("piece %d has the parent %v", i, parent)
		}
		return
	}
	if parent.Start > p.Start || parent.End < p.End || parent.Start < 0 || parent.End > len(text) {
		t.Fatalf("piece %d [%d:%d] is not in its parent %v", i, p.Start, p.End, parent)
	}
	if n := EstimateTokens(text[parent.Start:parent.End]); n > o.Parent {
		t.Fatalf("parent %v has %d tokens of at most %d", parent, n, o.Parent)
	}
	if i == 0 {
		return
	}
	if before := pieces[i-1].Parent; before != parent && before.End > parent.Start {
		t.Fatalf("parent %v reaches into %v", before, parent)
	}
}

func requireSpace(t failer, s string) {
	t.Helper()
	for _, r := range s {
		if !unicode.IsSpace(r) {
			t.Fatalf("no piece covers %q", s)
		}
	}
}

// texts draws what a splitter may meet: prose, scripts without spaces, clusters without end, runs of everything.
func texts() *rapid.Generator[string] {
	atoms := rapid.OneOf(
		rapid.SampledFrom([]string{
			"word", "The", "Mr. ", "U.S. ", "3.14", "Dr. A. B. Smith said so. ", ". ", "? ", "! ", "...", "\n", "\n\n", "\r\n", " ", "\t",
			"　", "\u00a0", "\u2028", "\u200b", "\ufeff", "e\u0301", "漢字。", "かな", "ภาษาไทย", "हिन्दी", "한국어", "👩‍👩‍👧‍👦", "🇩🇪", "\x00", "\x7f",
			"internationalization", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo=", "(", ")", "\"", "’", "-", "| a | b |\n", "1. ", "a.", "\ufffd", "é",
		}),
		rapid.StringN(0, 40, -1),
	)
	return rapid.Custom(func(t *rapid.T) string {
		var text []byte
		for _, a := range rapid.SliceOfN(atoms, 0, 60).Draw(t, "atoms") {
			for range rapid.OneOf(rapid.Just(1), rapid.IntRange(1, 80)).Draw(t, "times") {
				text = append(text, a...)
			}
		}
		return string(text)
	})
}

// blocksOf draws blocks of a text.
func blocksOf(t *rapid.T, text string) []rag.Block {
	kinds := []rag.BlockKind{rag.BlockParagraph, rag.BlockHeading, rag.BlockList, rag.BlockTable, rag.BlockCode}
	var blocks []rag.Block
	pos := 0
	for range rapid.IntRange(0, 12).Draw(t, "blocks") {
		start := border(text, pos+rapid.IntRange(0, 20).Draw(t, "gap"))
		end := border(text, start+rapid.IntRange(0, 2000).Draw(t, "length"))
		blocks = append(blocks, rag.Block{
			Start: start, End: end, Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
			Heading: rapid.SampledFrom([]string{"", "A", "A > B"}).Draw(t, "heading"), Page: rapid.IntRange(0, 3).Draw(t, "page"),
		})
		pos = end
	}
	return blocks
}

// border is the next border of a grapheme cluster from i on: parsers cut none.
func border(text string, i int) int {
	i = min(i, len(text))
	for it := graphemes.FromString(text); it.Next(); {
		if it.Start() >= i {
			return it.Start()
		}
	}
	return len(text)
}

func options(t *rapid.T) Options {
	tokens := rapid.IntRange(MinTokens, 300).Draw(t, "tokens")
	o := Options{
		Mode: rapid.SampledFrom(Modes()).Draw(t, "mode"), Tokens: tokens,
		Overlap: rapid.IntRange(0, tokens/2).Draw(t, "overlap"), MaxPieces: 1 << 20,
	}
	if rapid.Bool().Draw(t, "parents") {
		o.Parent = tokens + rapid.IntRange(1, 1000).Draw(t, "parent")
	}
	return o
}

func TestEveryTextGivesBoundedPiecesThatCoverIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, o := texts().Draw(t, "text"), options(t)
		blocks := blocksOf(t, text)
		pieces := mustSplit(t, o, text, blocks)
		check(t, o, text, pieces)
		again := mustSplit(t, o, text, blocks)
		if len(again) != len(pieces) {
			t.Fatalf("%d pieces, the second time %d", len(pieces), len(again))
		}
		for i := range again {
			if again[i] != pieces[i] {
				t.Fatalf("piece %d is %+v, the second time %+v", i, pieces[i], again[i])
			}
		}
	})
}

func TestCountingInPartsIsCountingTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := texts().Draw(t, "text")
		cut := border(text, rapid.IntRange(0, len(text)).Draw(t, "cut"))
		var c counter
		c.add(text[:cut])
		c.add(text[cut:])
		if got, want := c.tokens(), EstimateTokens(text); got != want {
			t.Fatalf("%d tokens in two parts, %d in one", got, want)
		}
		if n := EstimateTokens(text); len(text) > (n+1)*maxBytesPerToken {
			t.Fatalf("%d bytes count as %d tokens only: %q", len(text), n, text)
		}
	})
}

func FuzzSplit(f *testing.F) {
	f.Add("Mr. Smith paid 3.14 dollars. He left.\n\nThe end.", 16, 8, 10)
	f.Add("漢字。かな。ภาษาไทย", 20, 0, 3)
	f.Add("a.)))))))))))))))))))))))))))))))))))))))))))) ", 16, 4, 0)
	f.Add("# T\n\n| a | b |\n| 1 | 2 |\n\n```\nx := 1\n```\n\nЭто г. Москва. ภาษาไทยำำ", -1017, 5, 4)
	f.Fuzz(func(t *testing.T, text string, tokens, overlap, cut int) {
		mode, parent := Modes()[abs(cut)%4], abs(overlap)%3
		if !utf8.ValidString(text) {
			return // refused; see TestInvalidTextIsRefused
		}
		tokens = MinTokens + abs(tokens)%500
		o := Options{Mode: mode, Tokens: tokens, Overlap: abs(overlap) % (tokens/2 + 1), MaxPieces: 1 << 20}
		if parent > 0 {
			o.Parent = tokens + 200*parent
		}
		at := border(text, abs(cut)%(len(text)+1))
		blocks := []rag.Block{{Start: 0, End: at, Kind: rag.BlockHeading, Heading: "A"}, {Start: at, End: len(text), Kind: rag.BlockList, Heading: "A"}}
		check(t, o, text, mustSplit(t, o, text, blocks))
		check(t, o, text, mustSplit(t, o, text, nil))
	})
}

func abs(i int) int { return max(i, -(i + 1)) }

func TestTooManyPiecesIsAnErrorWithItsReason(t *testing.T) {
	s, err := New(Options{Tokens: 16, MaxPieces: 2})
	if err != nil {
		t.Fatal(err)
	}
	text := "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen. "
	if _, err := s.Split(context.Background(), text+text, nil); err != nil {
		t.Fatalf("two pieces: %v", err)
	}
	_, err = s.Split(context.Background(), text+text+text, nil)
	var e *Error
	if !errors.As(err, &e) || e.Reason != rag.ReasonTooManyChunks {
		t.Fatalf("three pieces of at most two: %v", err)
	}
}
