// Package split cuts an extracted text into pieces for embedding: about so many tokens each, along its structure.
//
// A piece ends where a block ends if it can, else where a sentence ends, else a line, else a word, else a grapheme
// cluster; only a cluster that is larger than a piece is cut between runes. Code and tables that fit into a piece stay
// whole. Other modes look at sentences, words or pages first. What holds in every mode, for every text, however odd:
//
//   - a piece is a slice of the text on rune borders, begins and ends with something visible, and has at most
//     Options.Tokens tokens as EstimateTokens counts them, so at most 16 times as many bytes;
//   - pieces begin and end in ascending order, and together cover all but white space;
//   - a piece repeats the whole sentences before it that come to about Options.Overlap tokens, as far as they belong to
//     the same heading and leave room; none is repeated across a hard border;
//   - behind a hard border the pieces depend on nothing before it: headings, pages and places that the text itself
//     chooses (type borders), so that an edit changes the pieces near it only;
//   - the same text, blocks and options give the same pieces; time is linear in the length of the text.
package split

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// Version of the rules. A change that gives any text other pieces changes it: it is part of Settings.
const Version = "split/2"

// Defaults and limits of Options.
const (
	DefaultTokens    = 200
	DefaultOverlap   = 30
	DefaultMaxPieces = 20_000

	MinTokens = 16
	MaxTokens = 8_192
)

// Mode says what decides where a piece ends.
type Mode string

// Modes.
const (
	// ModeStructure prefers headings and blocks, then sentences. The default.
	ModeStructure Mode = "structure"
	// ModeSentence fills pieces with whole sentences (in lists, tables and code: lines), across headings and blocks.
	ModeSentence Mode = "sentence"
	// ModeTokens fills pieces with words up to their limit, whatever they say.
	ModeTokens Mode = "tokens"
	// ModePage is ModeStructure with pieces that never reach into another page. Without pages there is no difference.
	ModePage Mode = "page"
)

// Modes are all of them, the default first.
func Modes() []Mode { return []Mode{ModeStructure, ModeSentence, ModeTokens, ModePage} }

// Options of a Splitter.
type Options struct {
	// Mode is ModeStructure if it is empty.
	Mode Mode
	// Tokens is the most that a piece may have, MinTokens to MaxTokens. Pieces of long prose come close to it.
	Tokens int
	// Overlap is about how many tokens a piece repeats of the one before: 0 to half of Tokens. Whole sentences are
	// repeated, so it may be exceeded by half, or not be reached.
	Overlap int
	// Parent is the most tokens that the parent of a piece may have: more than Tokens, at most MaxTokens. The text is cut
	// into parents first, and each of them into pieces, which never reach into another parent. 0: pieces have no parents.
	Parent int
	// MaxPieces is the most pieces that a text may have; 0 means DefaultMaxPieces. It changes no piece.
	MaxPieces int
}

// Piece is a chunk to be: the slice [Start:End] of the text, in bytes.
type Piece struct {
	Start   int
	End     int
	Heading string // breadcrumb of the first block in it
	Page    int    // of the first block in it; 0 if the format has none
	// Parent is the slice of the text around the piece that is worth reading with it; zero without Options.Parent.
	Parent Span
}

// Span is the slice [Start:End] of a text, in bytes.
type Span struct{ Start, End int }

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
	if o.Mode == "" {
		o.Mode = ModeStructure
	}
	switch {
	case !slices.Contains(Modes(), o.Mode):
		return nil, fmt.Errorf("split: mode is %q, not one of %v", o.Mode, Modes())
	case o.Tokens < MinTokens || o.Tokens > MaxTokens:
		return nil, fmt.Errorf("split: tokens is %d, not between %d and %d", o.Tokens, MinTokens, MaxTokens)
	case o.Overlap < 0 || o.Overlap > o.Tokens/2:
		return nil, fmt.Errorf("split: overlap is %d, not between 0 and half of tokens (%d)", o.Overlap, o.Tokens/2)
	case o.Parent != 0 && (o.Parent <= o.Tokens || o.Parent > MaxTokens):
		return nil, fmt.Errorf("split: parent is %d, neither 0 nor above tokens (%d) and at most %d", o.Parent, o.Tokens, MaxTokens)
	case o.MaxPieces < 1:
		return nil, fmt.Errorf("split: max pieces is %d, not at least 1", o.MaxPieces)
	}
	return &splitter{o}, nil
}

type splitter struct{ Options }

func (s *splitter) Settings() string {
	settings := fmt.Sprintf("%s mode=%s tokens=%d overlap=%d", Version, s.Mode, s.Tokens, s.Overlap)
	if s.Parent > 0 {
		settings += fmt.Sprintf(" parent=%d", s.Parent)
	}
	return settings
}

func (s *splitter) Split(ctx context.Context, text string, blocks []rag.Block) ([]Piece, error) {
	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("split: the text is not valid UTF-8")
	}
	whole, err := wholeBlocks(text, blocks)
	if err != nil {
		return nil, err
	}
	if s.Parent > 0 {
		return s.family(ctx, text, whole)
	}
	return pack(ctx, s.Options, 0, anchorPieces*s.Tokens, text, whole)
}

// pack cuts what lies in the blocks, of a text that has given before pieces already.
func pack(ctx context.Context, o Options, before, apart int, text string, blocks []rag.Block) ([]Piece, error) {
	p := &packer{Options: o, text: text, before: before, borders: borders{Options: o, text: text, apart: apart}}
	seg := &segmenter{ctx: ctx, text: text, limit: o.Tokens, fragment: max(1, o.Tokens/8), mode: o.Mode}
	for _, b := range blocks {
		if err := p.enter(b); err != nil {
			return nil, err
		}
		if err := seg.units(b, p.push); err != nil {
			return nil, err
		}
	}
	if err := p.flush(); err != nil {
		return nil, err
	}
	return p.pieces, nil
}

// wholeBlocks are the blocks and what lies between them, without white space at their ends.
func wholeBlocks(text string, blocks []rag.Block) ([]rag.Block, error) {
	whole := make([]rag.Block, 0, len(blocks)+1)
	err := eachBlock(text, blocks, func(b rag.Block) error {
		if b.Start, b.End = trim(text, b.Start, b.End); b.Start < b.End {
			whole = append(whole, b)
		}
		return nil
	})
	return whole, err
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
