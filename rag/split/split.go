// Package split cuts an extracted text into pieces for embedding: about so many tokens each, along its structure.
//
// A piece ends where a block ends if it can, else where a sentence ends, else a line, else a word, else a grapheme
// cluster; only a cluster that is larger than a piece is cut between runes. What holds for every text, however odd:
//
//   - a piece is a slice of the text on rune borders, begins and ends with something visible, and has at most
//     Options.Tokens tokens as EstimateTokens counts them, so at most 16 times as many bytes;
//   - pieces begin and end in ascending order, and together cover all but white space;
//   - each piece but the first repeats the whole sentences before it that come to about Options.Overlap tokens, as far
//     as they belong to the same heading and leave room;
//   - the same text, blocks and options give the same pieces; time is linear in the length of the text.
package split

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// Version of the rules. A change that gives any text other pieces changes it: it is part of Settings.
const Version = "split/1"

// Defaults and limits of Options.
const (
	DefaultTokens    = 200
	DefaultOverlap   = 30
	DefaultMaxPieces = 20_000

	MinTokens = 16
	MaxTokens = 8_192
)

// Options of a Splitter.
type Options struct {
	// Tokens is the most that a piece may have, MinTokens to MaxTokens. Pieces of long prose come close to it.
	Tokens int
	// Overlap is about how many tokens a piece repeats of the one before: 0 to half of Tokens. Whole sentences are
	// repeated, so it may be exceeded by half, or not be reached.
	Overlap int
	// MaxPieces is the most pieces that a text may have; 0 means DefaultMaxPieces. It changes no piece.
	MaxPieces int
}

// Piece is a chunk to be: the slice [Start:End] of the text, in bytes.
type Piece struct {
	Start   int
	End     int
	Heading string // breadcrumb of the first block in it
	Page    int    // of the first block in it; 0 if the format has none
}

// Splitter cuts texts into pieces. It is safe for concurrent use.
type Splitter interface {
	// Split cuts text, which must be valid UTF-8, along blocks, which must be in order and not overlap; no blocks means
	// that the whole text is one paragraph. Text outside the blocks is split too. A text of white space has no pieces.
	// A text with too many pieces is an *Error; when ctx ends, Split returns its error.
	Split(ctx context.Context, text string, blocks []rag.Block) ([]Piece, error)
	// Settings names the version and every option that changes pieces; it belongs to the content identity of a document.
	Settings() string
}

// Error says why a text cannot be split, ever.
type Error struct {
	Reason  string // rag.ReasonTooManyChunks
	Message string // one sentence for people
}

func (e *Error) Error() string { return e.Message }

// New checks the options and returns a Splitter.
func New(o Options) (Splitter, error) {
	if o.MaxPieces == 0 {
		o.MaxPieces = DefaultMaxPieces
	}
	switch {
	case o.Tokens < MinTokens || o.Tokens > MaxTokens:
		return nil, fmt.Errorf("split: tokens is %d, not between %d and %d", o.Tokens, MinTokens, MaxTokens)
	case o.Overlap < 0 || o.Overlap > o.Tokens/2:
		return nil, fmt.Errorf("split: overlap is %d, not between 0 and half of tokens (%d)", o.Overlap, o.Tokens/2)
	case o.MaxPieces < 1:
		return nil, fmt.Errorf("split: max pieces is %d, not at least 1", o.MaxPieces)
	}
	return &splitter{o}, nil
}

type splitter struct{ Options }

func (s *splitter) Settings() string {
	return fmt.Sprintf("%s tokens=%d overlap=%d", Version, s.Tokens, s.Overlap)
}

func (s *splitter) Split(ctx context.Context, text string, blocks []rag.Block) ([]Piece, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("split: the text is not valid UTF-8")
	}
	p := &packer{Options: s.Options, text: text}
	seg := &segmenter{ctx: ctx, text: text, limit: s.Tokens, fragment: max(1, s.Tokens/8)}
	err := eachBlock(text, blocks, func(b rag.Block) error {
		b.Start, b.End = trim(text, b.Start, b.End)
		if b.Start == b.End {
			return nil
		}
		if err := p.enter(b); err != nil {
			return err
		}
		return seg.units(b, p.push)
	})
	if err == nil {
		err = p.flush()
	}
	if err != nil {
		return nil, err
	}
	return p.pieces, nil
}

// eachBlock calls yield for every block and for what lies between them.
func eachBlock(text string, blocks []rag.Block, yield func(rag.Block) error) error {
	pos, heading, page := 0, "", 0
	gap := func(end int) error {
		if pos == end {
			return nil
		}
		return yield(rag.Block{Start: pos, End: end, Kind: rag.BlockParagraph, Heading: heading, Page: page})
	}
	for i, b := range blocks {
		if b.Start < pos || b.End < b.Start || b.End > len(text) || !onBorder(text, b.Start) || !onBorder(text, b.End) {
			return fmt.Errorf("split: block %d [%d:%d] is out of order or not a slice of the text", i, b.Start, b.End)
		}
		if err := gap(b.Start); err != nil {
			return err
		}
		if err := yield(b); err != nil {
			return err
		}
		pos, heading, page = b.End, b.Heading, b.Page
	}
	return gap(len(text))
}

// onBorder reports whether no rune is cut at i.
func onBorder(text string, i int) bool { return i == len(text) || utf8.RuneStart(text[i]) }
