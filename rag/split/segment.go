package split

import (
	"context"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/clipperhouse/uax29/v2/words"

	"github.com/waymarkhq/waymark/rag"
)

// segmenter cuts blocks into units of at most limit tokens.
type segmenter struct {
	ctx      context.Context
	text     string
	limit    int
	fragment int // tokens of the units that a line or sentence above the limit is cut into
	mode     Mode
	scratch  []byte // of the sentence finder
	steps    int
}

// level is a kind of border, from the most to the least wanted.
type level func(s *segmenter, start, end int, yield func(start, end int) error) error

// levels of a block: in lists, tables and code a line says more than a sentence.
func levels(m Mode, k rag.BlockKind) []level {
	switch {
	case m == ModeTokens:
		return []level{(*segmenter).words, (*segmenter).clusters, (*segmenter).runes}
	case k == rag.BlockList:
		return []level{(*segmenter).lines, (*segmenter).sentences, (*segmenter).words, (*segmenter).clusters, (*segmenter).runes}
	case k == rag.BlockTable, k == rag.BlockCode:
		return []level{(*segmenter).lines, (*segmenter).words, (*segmenter).clusters, (*segmenter).runes}
	}
	return []level{(*segmenter).sentences, (*segmenter).lines, (*segmenter).words, (*segmenter).clusters, (*segmenter).runes}
}

// units yields the units of a block in order; between them is only white space.
func (s *segmenter) units(b rag.Block, yield func(unit) error) error {
	return s.refine(b.Start, b.End, levels(s.mode, b.Kind), yield)
}

// refine cuts text[start:end] at the first level, and what is then still above the limit at the next.
func (s *segmenter) refine(start, end int, ls []level, yield func(unit) error) error {
	return ls[0](s, start, end, func(start, end int) error {
		if s.steps++; s.steps%1024 == 0 && s.ctx.Err() != nil {
			return s.ctx.Err()
		}
		start, end = trim(s.text, start, end)
		if start == end {
			return nil
		}
		var c counter
		if c.addUpTo(s.text[start:end], s.limit) || len(ls) == 1 {
			return yield(unit{start: start, end: end, tokens: c.tokens()})
		}
		return s.refine(start, end, ls[1:], yield)
	})
}

// lines yields the lines of text[start:end].
func (s *segmenter) lines(start, end int, yield func(start, end int) error) error {
	for start < end {
		stop := end
		if i := strings.IndexByte(s.text[start:end], '\n'); i >= 0 {
			stop = start + i + 1
		}
		if err := yield(start, stop); err != nil {
			return err
		}
		start = stop
	}
	return nil
}

// words yields runs of words of at most fragment tokens; a word above that alone.
func (s *segmenter) words(start, end int, yield func(start, end int) error) error {
	f := fragments{segmenter: s, start: start, apart: wordsApart, yield: yield}
	borders, from := clusterBorders{text: s.text[start:end]}, 0
	for it := words.FromString(borders.text); it.Next(); {
		if !borders.at(it.End()) {
			continue
		}
		if err := f.add(start+from, start+it.End(), trailing(borders.text[from:it.End()])); err != nil {
			return err
		}
		from = it.End()
	}
	return f.flush(end)
}

// clusters yields runs of grapheme clusters of at most fragment tokens.
func (s *segmenter) clusters(start, end int, yield func(start, end int) error) error {
	f := fragments{segmenter: s, start: start, apart: clustersApart, yield: yield}
	for it := graphemes.FromString(s.text[start:end]); it.Next(); {
		if err := f.add(start+it.Start(), start+it.End(), false); err != nil {
			return err
		}
	}
	return f.flush(end)
}

// runes yields runs of runes of at most fragment tokens: the last resort, for a cluster above the limit.
func (s *segmenter) runes(start, end int, yield func(start, end int) error) error {
	f := fragments{segmenter: s, start: start, apart: clustersApart, yield: yield}
	for i, r := range s.text[start:end] {
		if err := f.add(start+i, start+i+utf8.RuneLen(r), false); err != nil {
			return err
		}
	}
	return f.flush(end)
}

// A fragment also ends where the text chooses, at one in so many places: after an edit the fragments are soon the same
// again.
const (
	wordsApart    = 8
	clustersApart = 32
)

// fragments joins neighbours while they stay within fragment tokens.
type fragments struct {
	*segmenter
	start   int // of the fragment in hand
	apart   int
	count   counter
	appends int // in a row of what trails
	yield   func(start, end int) error
}

// maxTrailing bounds how many trailing marks a fragment takes in beyond its tokens.
const maxTrailing = 4

// add appends text[start:end], which follows what was added before. What trails (a comma after a word) is taken in
// rather than begin a fragment.
func (f *fragments) add(start, end int, trails bool) error {
	c := f.count
	fits := c.addUpTo(f.text[start:end], f.fragment)
	if trails && !fits && f.appends < maxTrailing && start > f.start {
		f.appends++
		c.add(f.text[start:end])
		f.count = c
		return nil
	}
	f.appends = 0
	if fits && (trails || start == f.start || !chosen(f.text, start, 1, f.apart)) {
		f.count = c
		return nil
	}
	if err := f.flush(start); err != nil {
		return err
	}
	f.count.add(f.text[start:end])
	return nil
}

// flush yields the fragment in hand, which ends where the next one begins.
func (f *fragments) flush(next int) error {
	start := f.start
	f.start, f.count = next, counter{}
	if start == next {
		return nil
	}
	return f.yield(start, next)
}

// trailing reports whether a word segment is punctuation that belongs to what is before it.
func trailing(segment string) bool {
	r, n := utf8.DecodeRuneInString(segment)
	return n == len(segment) && unicode.IsPunct(r) && !unicode.In(r, unicode.Ps, unicode.Pi)
}

// trim narrows text[start:end] to what is not white space at its ends.
func trim(text string, start, end int) (int, int) {
	s := strings.TrimLeftFunc(text[start:end], unicode.IsSpace)
	start = end - len(s)
	return start, start + len(strings.TrimRightFunc(s, unicode.IsSpace))
}
