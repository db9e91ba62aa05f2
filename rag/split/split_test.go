package split

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{
		{}, {Tokens: MinTokens - 1}, {Tokens: MaxTokens + 1}, {Tokens: 200, Overlap: -1}, {Tokens: 200, Overlap: 101}, {Tokens: 200, MaxPieces: -1},
		{Mode: "pages", Tokens: 200}, {Tokens: 200, Parent: 200}, {Tokens: 200, Parent: -1}, {Tokens: 200, Parent: MaxTokens + 1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	if _, err := New(Options{Tokens: DefaultTokens, Overlap: DefaultOverlap}); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

func TestSettingsNameWhatChangesPieces(t *testing.T) {
	settings := map[string]bool{}
	for _, o := range []Options{{Tokens: 200, Overlap: 30}, {Tokens: 201, Overlap: 30}, {Tokens: 200, Overlap: 31},
		{Mode: ModePage, Tokens: 200, Overlap: 30}, {Tokens: 200, Overlap: 30, Parent: 1000}, {Mode: ModeStructure, Tokens: 200, Overlap: 30}} {
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		settings[s.Settings()] = true
	}
	if len(settings) != 5 || !settings["split/2 mode=structure tokens=200 overlap=30"] || !settings["split/2 mode=structure tokens=200 overlap=30 parent=1000"] {
		t.Errorf("settings are %v", settings)
	}
}

func TestInvalidTextIsRefused(t *testing.T) {
	s, err := New(Options{Tokens: 200})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Split(context.Background(), "a\xffb", nil); err == nil {
		t.Error("invalid UTF-8 was accepted")
	}
	for name, blocks := range map[string][]rag.Block{
		"outside":     {{Start: 0, End: 9}},
		"backwards":   {{Start: 3, End: 1}},
		"overlapping": {{Start: 0, End: 3}, {Start: 2, End: 4}},
		"cut rune":    {{Start: 0, End: 1}},
	} {
		if _, err := s.Split(context.Background(), "über", blocks); err == nil {
			t.Errorf("blocks that are %s were accepted", name)
		}
	}
}

func TestSplitEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s, err := New(Options{Tokens: 16})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Split(ctx, strings.Repeat("One sentence. ", 5000), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhiteSpaceHasNoPieces(t *testing.T) {
	for _, text := range []string{"", " ", "\n\t\u00a0\u2003\u3000\n"} {
		if p := mustSplit(t, Options{Tokens: 200}, text, nil); len(p) != 0 {
			t.Errorf("%q gives %v", text, p)
		}
	}
}

// doc builds a text and its blocks.
type doc struct {
	text   strings.Builder
	blocks []rag.Block
}

func (d *doc) add(kind rag.BlockKind, heading, text string) *doc {
	if d.text.Len() > 0 {
		d.text.WriteString("\n\n")
	}
	start := d.text.Len()
	d.text.WriteString(text)
	d.blocks = append(d.blocks, rag.Block{Start: start, End: d.text.Len(), Kind: kind, Heading: heading})
	return d
}

func (d *doc) split(t *testing.T, o Options) []string {
	t.Helper()
	text := d.text.String()
	pieces := mustSplit(t, o, text, d.blocks)
	check(t, o, text, pieces)
	out := make([]string, 0, len(pieces))
	for _, p := range pieces {
		out = append(out, text[p.Start:p.End])
	}
	return out
}

func sentence(words int, name string) string {
	return "The " + name + strings.Repeat(" word", words-2) + "."
}

func paragraph(sentences int, name string) string {
	var s []string
	for i := range sentences {
		s = append(s, sentence(9, fmt.Sprintf("%s%c", name, 'a'+i)))
	}
	return strings.Join(s, " ")
}

func TestAPieceEndsAtABlockIfItCan(t *testing.T) {
	first, second := paragraph(7, "x"), paragraph(7, "y")
	d := new(doc).add(rag.BlockParagraph, "", first).add(rag.BlockParagraph, "", second)
	got := d.split(t, Options{Tokens: 100})
	if len(got) != 2 || got[0] != first || got[1] != second {
		t.Errorf("got %q", got)
	}
}

func TestALongBlockEndsAtSentences(t *testing.T) {
	got := new(doc).add(rag.BlockParagraph, "", paragraph(20, "x")).split(t, Options{Tokens: 64})
	for _, s := range got {
		if !strings.HasPrefix(s, "The ") || !strings.HasSuffix(s, ".") {
			t.Errorf("not whole sentences: %q", s)
		}
	}
	if len(got) < 3 {
		t.Errorf("got %d pieces", len(got))
	}
}

func TestWholeSentencesAreRepeated(t *testing.T) {
	text := paragraph(20, "x")
	pieces := mustSplit(t, Options{Tokens: 64, Overlap: 20}, text, nil)
	for i := 1; i < len(pieces); i++ {
		repeated := text[pieces[i].Start:pieces[i-1].End]
		if n := EstimateTokens(repeated); n < 10 || n > 30 || !strings.HasPrefix(repeated, "The ") || !strings.HasSuffix(repeated, ".") {
			t.Errorf("piece %d repeats %q", i, repeated)
		}
	}
}

func TestNothingIsRepeatedBelowAnotherHeading(t *testing.T) {
	d := new(doc).add(rag.BlockHeading, "One", "One").add(rag.BlockParagraph, "One", paragraph(5, "x")).
		add(rag.BlockHeading, "Two", "Two").add(rag.BlockParagraph, "Two", paragraph(5, "y"))
	got := d.split(t, Options{Tokens: 100, Overlap: 30})
	if len(got) != 2 || !strings.HasPrefix(got[1], "Two\n\n") {
		t.Errorf("got %q", got)
	}
}

func TestAHeadingStaysWithWhatFollows(t *testing.T) {
	for sentences := range 12 {
		for _, follows := range []string{paragraph(6, "y"), sentence(58, "y")} {
			d := new(doc).add(rag.BlockParagraph, "", paragraph(sentences+1, "x")).
				add(rag.BlockHeading, "Two", "Two").add(rag.BlockHeading, "Two > Three", "Three").add(rag.BlockParagraph, "Two > Three", follows)
			for _, s := range d.split(t, Options{Tokens: 64, Overlap: 10}) {
				if strings.HasSuffix(s, "Two") || strings.HasSuffix(s, "Three") {
					t.Errorf("%d sentences before: a piece ends in a heading: %q", sentences+1, s)
				}
			}
		}
	}
}

func TestAHeadingBeginsAPieceUnlessTheOneBeforeIsTiny(t *testing.T) {
	for sentences, want := range map[int]int{1: 1, 3: 2} {
		d := new(doc).add(rag.BlockParagraph, "", paragraph(sentences, "x")).
			add(rag.BlockHeading, "Two", "Two").add(rag.BlockParagraph, "Two", paragraph(1, "y"))
		if got := d.split(t, Options{Tokens: 64}); len(got) != want || want == 2 && !strings.HasPrefix(got[1], "Two\n") {
			t.Errorf("%d sentences before: %q", sentences, got)
		}
	}
}

func TestAPieceNamesTheHeadingAndPageOfItsFirstBlock(t *testing.T) {
	d := new(doc).add(rag.BlockHeading, "One", "One").add(rag.BlockParagraph, "One", paragraph(9, "x")).
		add(rag.BlockParagraph, "One > Sub", paragraph(9, "y"))
	d.blocks[2].Page = 7
	pieces := mustSplit(t, Options{Tokens: 120}, d.text.String(), d.blocks)
	if len(pieces) != 2 || pieces[0].Heading != "One" || pieces[1].Heading != "One > Sub" || pieces[0].Page != 0 || pieces[1].Page != 7 {
		t.Errorf("got %+v", pieces)
	}
}

func TestTablesAndListsEndAtLines(t *testing.T) {
	rows := strings.Repeat("Rhine | 1,230 km | Basel. Cologne. Rotterdam\n", 30)
	for _, kind := range []rag.BlockKind{rag.BlockTable, rag.BlockList, rag.BlockCode} {
		for _, s := range new(doc).add(kind, "", rows).split(t, Options{Tokens: 64, Overlap: 16}) {
			if !strings.HasPrefix(s, "Rhine") || !strings.HasSuffix(s, "Rotterdam") {
				t.Errorf("%s: not whole lines: %q", kind, s)
			}
		}
	}
}

func TestTextWithoutSpacesIsCutAtClusters(t *testing.T) {
	for name, text := range map[string]string{
		"Han":      strings.Repeat("天下大勢分久必合合久必分", 200),
		"Thai":     strings.Repeat("กรุงเทพมหานครอมรรัตนโกสินทร์", 200),
		"families": strings.Repeat("👩‍👩‍👧‍👦", 400),
		"accents":  strings.Repeat("e\u0301", 3000),
	} {
		o := Options{Tokens: 100, Overlap: 20}
		pieces := mustSplit(t, o, text, nil)
		check(t, o, text, pieces)
		for _, p := range pieces {
			r, _ := utf8.DecodeRuneInString(text[p.Start:p.End])
			if strings.ContainsRune("\u0301\u200d", r) || r >= 0xe47 && r <= 0xe4e {
				t.Errorf("%s: a piece begins inside a cluster: %q", name, text[p.Start:p.End])
			}
		}
		if len(pieces) < 10 {
			t.Errorf("%s: %d pieces", name, len(pieces))
		}
	}
}

func TestASplitterIsSafeForConcurrentUse(t *testing.T) {
	s, err := New(Options{Tokens: 64, Overlap: 16})
	if err != nil {
		t.Fatal(err)
	}
	text := prose(20_000)
	want, err := s.Split(context.Background(), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if got, err := s.Split(context.Background(), text, nil); err != nil || !slices.Equal(got, want) {
					t.Errorf("got %d pieces of %d, %v", len(got), len(want), err)
				}
			}
		})
	}
	wg.Wait()
}
