package split

import (
	"context"
	"errors"
	"testing"
	"unicode"
	"unicode/utf8"

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
	covered := 0
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
		if p.Start > covered {
			requireSpace(t, text[covered:p.Start])
		}
		covered = p.End
	}
	requireSpace(t, text[covered:])
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

func border(text string, i int) int {
	i = min(i, len(text))
	for !onBorder(text, i) {
		i++
	}
	return i
}

func options(t *rapid.T) Options {
	tokens := rapid.IntRange(MinTokens, 300).Draw(t, "tokens")
	return Options{Tokens: tokens, Overlap: rapid.IntRange(0, tokens/2).Draw(t, "overlap"), MaxPieces: 1 << 20}
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
	f.Fuzz(func(t *testing.T, text string, tokens, overlap, cut int) {
		if !utf8.ValidString(text) {
			return // refused; see TestInvalidTextIsRefused
		}
		tokens = MinTokens + abs(tokens)%500
		o := Options{Tokens: tokens, Overlap: abs(overlap) % (tokens/2 + 1), MaxPieces: 1 << 20}
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
