package split

import (
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
)

// variants are what must re-synchronise: each mode, with and without parents.
func variants(tokens, overlap int) []Options {
	var all []Options
	for _, m := range Modes() {
		o := Options{Mode: m, Tokens: tokens, Overlap: overlap, MaxPieces: 1 << 20}
		all = append(all, o)
		o.Parent = 4 * tokens
		all = append(all, o)
	}
	return all
}

// writings draw about n bytes of different kinds of text.
var writings = map[string]func(r *rand.Rand, n int) string{
	"prose": func(r *rand.Rand, n int) string {
		var b strings.Builder
		for b.Len() < n {
			for range 1 + r.IntN(8) {
				for range 3 + r.IntN(20) {
					fmt.Fprintf(&b, "%s ", word(r))
				}
				b.WriteString("ends. The ")
			}
			b.WriteString("end.\n\n")
		}
		return b.String()
	},
	"lines without a sentence": func(r *rand.Rand, n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "%s | %s | %d\n", word(r), word(r), r.IntN(1000))
		}
		return b.String()
	},
	"Han without a stop": func(r *rand.Rand, n int) string {
		var b strings.Builder
		for b.Len() < n {
			b.WriteRune(rune(0x4e00 + r.IntN(2000)))
		}
		return b.String()
	},
	"base64": func(r *rand.Rand, n int) string {
		raw := make([]byte, n*3/4)
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		return base64.StdEncoding.EncodeToString(raw)
	},
	"minified": func(r *rand.Rand, n int) string {
		var b strings.Builder
		for b.Len() < n {
			fmt.Fprintf(&b, "function %s(){return %d;}var %s=[%d,%d];", word(r), r.IntN(99), word(r), r.IntN(99), r.IntN(99))
		}
		return b.String()
	},
}

func word(r *rand.Rand) string {
	b := make([]byte, 2+r.IntN(8))
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return string(b)
}

// An edit near the beginning leaves the pieces of the second half what they were. Hard borders of the text's own choice
// lie about 16 pieces apart, and the second half has several hundred: that it has none does not happen.
func TestAfterAnEditThePiecesAreSoonTheSameAgain(t *testing.T) {
	const size = 48 << 10
	rapid.Check(t, func(t *rapid.T) {
		write := writings[rapid.SampledFrom(slices.Sorted(maps.Keys(writings))).Draw(t, "writing")]
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		o := rapid.SampledFrom(variants(24, rapid.IntRange(0, 12).Draw(t, "overlap"))).Draw(t, "options")
		before := write(r, size)
		from := border(before, rapid.IntRange(0, size/16).Draw(t, "from"))
		to := border(before, from+rapid.IntRange(0, size/32).Draw(t, "removed"))
		after := before[:from] + write(r, rapid.IntRange(0, size/32).Draw(t, "added")) + before[to:]
		sameTail(t, o, before, after, size/2)
	})
}

// sameTail asserts that the last tail bytes of both texts have the same pieces.
func sameTail(t failer, o Options, before, after string, tail int) {
	t.Helper()
	a, b := tailOf(mustSplit(t, o, before, nil), before, tail), tailOf(mustSplit(t, o, after, nil), after, tail)
	if len(a) < 50 {
		t.Fatalf("%d pieces to compare", len(a))
	}
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			t.Fatalf("%+v: piece %d of %d in the tail differs", o, i, len(a))
		}
	}
}

// tailOf are the pieces that begin in the last bytes, by their places from the end.
func tailOf(pieces []Piece, text string, tail int) []Piece {
	var out []Piece
	for _, p := range pieces {
		if p.Start < len(text)-tail {
			continue
		}
		p.Start, p.End = p.Start-len(text), p.End-len(text)
		if p.Parent != (Span{}) {
			p.Parent = Span{p.Parent.Start - len(text), p.Parent.End - len(text)}
		}
		out = append(out, p)
	}
	return out
}

// The next heading is where the pieces are the same again, whatever stands before it; in page mode the next page.
func TestAHeadingAndAPageAreHardBorders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := Options{Mode: ModeStructure, Tokens: 64, Overlap: rapid.IntRange(0, 32).Draw(t, "overlap")}
		kind := rag.BlockHeading
		if rapid.Bool().Draw(t, "pages") {
			o.Mode, kind = ModePage, rag.BlockParagraph
		}
		if rapid.Bool().Draw(t, "parents") {
			o.Parent = 200
		}
		split := func(sentences int) []Piece {
			d := new(doc)
			for i := range 6 {
				n := 5
				if i == 2 {
					n = sentences
				}
				d.add(kind, fmt.Sprint(i), fmt.Sprintf("Section %d", i))
				d.blocks[len(d.blocks)-1].Page = i + 1
				for k := range n {
					d.add(rag.BlockParagraph, fmt.Sprint(i), paragraph(1+k%3, fmt.Sprintf("s%d", i)))
					d.blocks[len(d.blocks)-1].Page = i + 1
				}
			}
			text := d.text.String()
			pieces := mustSplit(t, o, text, d.blocks)
			check(t, o, text, pieces)
			return tailOf(pieces, text, len(text)-strings.Index(text, "Section 3"))
		}
		a, b := split(rapid.IntRange(5, 15).Draw(t, "before")), split(rapid.IntRange(5, 15).Draw(t, "after"))
		if len(a) < 3 || fmt.Sprint(a) != fmt.Sprint(b) {
			t.Fatalf("%+v: behind the section that differs\n%v\n%v", o, a, b)
		}
	})
}
