package split

import (
	"context"

	"github.com/waymarkhq/waymark/rag"
)

// parentsApart is how many parents lie between two anchors, on average: fewer than pieces, as they are larger.
const parentsApart = 4

// family cuts the text into parents, and each parent into pieces.
func (s *splitter) family(ctx context.Context, text string, blocks []rag.Block) ([]Piece, error) {
	large := s.Options
	large.Tokens, large.Overlap = s.Parent, 0
	parents, err := pack(ctx, large, 0, parentsApart*s.Parent, text, blocks)
	if err != nil {
		return nil, err
	}
	var pieces []Piece
	for _, parent := range parents {
		span := Span{parent.Start, parent.End}
		for len(blocks) > 0 && blocks[0].End <= span.Start {
			blocks = blocks[1:]
		}
		children, err := pack(ctx, s.Options, len(pieces), anchorPieces*s.Tokens, text, clip(blocks, span))
		if err != nil {
			return nil, err
		}
		for _, c := range children {
			c.Parent = span
			pieces = append(pieces, c)
		}
	}
	return pieces, nil
}

// clip gives what of the blocks lies in the span.
func clip(blocks []rag.Block, in Span) []rag.Block {
	var clipped []rag.Block
	for _, b := range blocks {
		if b.Start >= in.End {
			break
		}
		b.Start, b.End = max(b.Start, in.Start), min(b.End, in.End)
		clipped = append(clipped, b)
	}
	return clipped
}
