package split

import (
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

// manual is a text of two sections on three pages, with a table and code.
func manual() *doc {
	d := new(doc).add(rag.BlockHeading, "One", "One").add(rag.BlockParagraph, "One", paragraph(5, "x")).
		add(rag.BlockTable, "One", strings.Repeat("Rhine | 1,230 km\n", 5)).
		add(rag.BlockHeading, "Two", "Two").add(rag.BlockParagraph, "Two", paragraph(3, "y")).
		add(rag.BlockCode, "Two", strings.Repeat("x := compute(1)\n", 6)).add(rag.BlockParagraph, "Two", paragraph(9, "z"))
	for i, page := range []int{1, 1, 1, 2, 2, 2, 3} {
		d.blocks[i].Page = page
	}
	return d
}

func TestSentenceModeGoesAcrossHeadings(t *testing.T) {
	got := manual().split(t, Options{Mode: ModeSentence, Tokens: 100})
	across := 0
	for _, s := range got {
		if strings.Contains(s, "\nTwo\n") && !strings.HasPrefix(s, "Two") {
			across++
		}
		if last := s[strings.LastIndexByte(s, '\n')+1:]; !strings.HasSuffix(last, ".") && !strings.HasSuffix(last, "km") && !strings.HasSuffix(last, ")") {
			t.Errorf("ends inside a sentence or a line: %q", s)
		}
	}
	if across != 1 {
		t.Errorf("no piece goes across the heading: %q", got)
	}
}

func TestTokensModeFillsPieces(t *testing.T) {
	text := strings.Repeat("Alpha beta gamma delta epsilon. ", 400)
	for _, overlap := range []int{0, 20} {
		o := Options{Mode: ModeTokens, Tokens: 100, Overlap: overlap}
		pieces := mustSplit(t, o, text, nil)
		check(t, o, text, pieces)
		full := 0
		for i, p := range pieces {
			if EstimateTokens(text[p.Start:p.End]) >= 88 {
				full++
			}
			if i == 0 || overlap == 0 {
				continue
			}
			if n := EstimateTokens(text[p.Start:max(p.Start, pieces[i-1].End)]); n > overlap {
				t.Errorf("piece %d repeats %d tokens", i, n)
			}
		}
		if full < len(pieces)*9/10 {
			t.Errorf("overlap %d: %d of %d pieces are full", overlap, full, len(pieces))
		}
	}
}

func TestPageModeStaysOnItsPage(t *testing.T) {
	d := manual()
	got := d.split(t, Options{Mode: ModePage, Tokens: 400})
	if len(got) != 3 || !strings.HasPrefix(got[1], "Two") || !strings.HasPrefix(got[2], "The za") {
		t.Errorf("got %q", got)
	}
	pieces := mustSplit(t, Options{Mode: ModePage, Tokens: 40, Overlap: 10}, d.text.String(), d.blocks)
	for _, p := range pieces {
		for _, b := range d.blocks {
			if b.Start < p.End && p.Start < b.End && b.Page != p.Page {
				t.Errorf("%+v reaches into page %d", p, b.Page)
			}
		}
	}
}

func TestCodeAndTablesThatFitStayWhole(t *testing.T) {
	for _, kind := range []rag.BlockKind{rag.BlockCode, rag.BlockTable} {
		for lines := range 14 {
			for before := range 9 {
				for _, heading := range []bool{false, true} {
					code := strings.TrimSpace(strings.Repeat("value | 17\n", lines+1))
					d := new(doc)
					if before > 0 {
						d.add(rag.BlockParagraph, "A", paragraph(before, "x"))
					}
					if heading {
						d.add(rag.BlockHeading, "A", "Heading of four words")
					}
					d.add(kind, "A", code).add(rag.BlockParagraph, "A", paragraph(3, "y"))
					got := d.split(t, Options{Tokens: 64, Overlap: 20})
					if within(code, 64) && !strings.Contains(strings.Join(got, "\x00"), code) {
						t.Errorf("%s of %d lines after %d sentences (heading: %t) is cut: %q", kind, lines+1, before, heading, got)
					}
				}
			}
		}
	}
}

func TestAShortLastPieceRepeatsMore(t *testing.T) {
	text := paragraph(13, "x")
	pieces := mustSplit(t, Options{Tokens: 64, Overlap: 12}, text, nil)
	last := pieces[len(pieces)-1]
	if n := EstimateTokens(text[last.Start:last.End]); n < 20 || n > 40 {
		t.Errorf("the last piece has %d tokens: %q", n, text[last.Start:last.End])
	}
	if plain := mustSplit(t, Options{Tokens: 64}, text, nil); plain[len(plain)-1].Start < plain[len(plain)-2].End {
		t.Errorf("without overlap a piece repeats: %v", plain)
	}
}

func TestPiecesKnowTheirParents(t *testing.T) {
	d := manual()
	text := d.text.String()
	for _, mode := range Modes() {
		o := Options{Mode: mode, Tokens: 32, Overlap: 8, Parent: 160}
		pieces := mustSplit(t, o, text, d.blocks)
		check(t, o, text, pieces)
		parents := map[Span]int{}
		for _, p := range pieces {
			parents[p.Parent]++
		}
		if len(parents) < 2 || len(parents) > len(pieces)/2 {
			t.Errorf("%s: %d pieces have %d parents", mode, len(pieces), len(parents))
		}
	}
	// A text that fits into one piece is its own parent.
	if p := mustSplit(t, Options{Tokens: 32, Parent: 64}, "One sentence.", nil); fmt.Sprint(p) != "[{0 13  0 {0 13}}]" {
		t.Errorf("got %v", p)
	}
}

// Whatever has no end — a fence, a table, a heading — ends in bounded pieces, in every mode.
func TestEndlessBlocksEnd(t *testing.T) {
	for _, kind := range []rag.BlockKind{rag.BlockHeading, rag.BlockTable, rag.BlockCode, rag.BlockList, rag.BlockParagraph} {
		for name, unit := range map[string]string{"lines": "a | b\n", "words": "word ", "letters": "x", "Thai": "กำ", "cells": "|"} {
			d := new(doc).add(rag.BlockParagraph, "", "Before.").add(kind, "H", strings.Repeat(unit, 4000)).add(rag.BlockParagraph, "H", "After.")
			text := d.text.String()
			for _, o := range variants(64, 16) {
				pieces := mustSplit(t, o, text, d.blocks)
				check(t, o, text, pieces)
				if most := EstimateTokens(text)/10 + 10; len(pieces) < 3 || len(pieces) > most {
					t.Errorf("%+v, %s of %s: %d pieces", o, kind, name, len(pieces))
				}
			}
		}
	}
}
