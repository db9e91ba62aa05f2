package rag

// BlockKind says what a Block is.
type BlockKind string

// Kinds of blocks.
const (
	BlockParagraph BlockKind = "paragraph"
	BlockHeading   BlockKind = "heading"
	BlockList      BlockKind = "list"  // its items are lines
	BlockTable     BlockKind = "table" // its rows are lines
	BlockCode      BlockKind = "code"  // its lines are lines
)

// Block is a piece of structure in an extracted text: the slice [Start:End] of it, in bytes, on rune borders. The
// blocks of a text are in order and do not overlap; what lies between them is white space.
type Block struct {
	Start int
	End   int
	Kind  BlockKind
	// Level of a heading, 1 to 6; otherwise 0.
	Level int
	// Heading is the breadcrumb of the headings above ("Rivers > The Rhine"), a heading's own text included; "" if none.
	Heading string
	// Page on which the block begins, from 1; 0 if the format has no pages.
	Page int
}
