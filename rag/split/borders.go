package split

import "github.com/waymarkhq/waymark/rag"

// unit is what the packer does not cut: a sentence, a line, a word, or a part of one that alone would be too large.
type unit struct {
	start, end int
	tokens     int  // of text[start:end]
	first      bool // of its block
	heading    bool
	block      *rag.Block
}

// borders finds the places where a new piece begins whatever came before, and nothing is repeated: hard borders. Behind
// one, the pieces depend on nothing before it, so that after an edit they are the same again from the next one on.
// For that the rule looks at the text near a place only, never at the piece in hand. A place is a hard border
//
//   - where the page changes (ModePage);
//   - before a heading, unless the section above it is tiny (ModeStructure and ModePage);
//   - at an anchor: a place that a hash of its text chooses, about once in apart tokens.
type borders struct {
	Options
	text  string
	apart int // tokens between two anchors, on average

	begun   bool
	last    unit
	section int // tokens since the last heading
	since   int // tokens since the last hard border or candidate
	block   int // tokens of the block in hand
	before  int // tokens of the block before it
}

// anchorPieces is how many pieces lie between two anchors, on average. Each costs half a piece, and bounds how much of a
// text is embedded again after an edit.
const anchorPieces = 16

// longBlock is from how many pieces on there are anchors inside a block.
const longBlock = 4

// hard reports whether a piece must begin at u, which follows the units seen before.
func (b *borders) hard(u unit) bool {
	if !b.begun {
		b.begun, b.last = true, u
		b.count(u)
		return true
	}
	hard := b.pageBorder(u) || b.headingBorder(u)
	if hard {
		b.since = 0
	} else {
		hard = b.anchor(u)
	}
	if u.heading && !b.last.heading {
		b.section = 0
	}
	b.last = u
	b.count(u)
	return hard
}

func (b *borders) count(u unit) {
	if u.first {
		b.before, b.block = b.block, 0
	}
	b.section += u.tokens
	b.since += u.tokens
	b.block += u.tokens
}

func (b *borders) pageBorder(u unit) bool {
	return b.Mode == ModePage && u.block.Page != b.last.block.Page
}

func (b *borders) headingBorder(u unit) bool {
	return u.heading && !b.last.heading && b.section >= b.tiny()
}

// anchor reports whether u is a place that its text chooses. Of places that are close together only the first one counts,
// so that repetitive text is not cut to pieces.
func (b *borders) anchor(u unit) bool {
	weight := 0
	switch {
	case b.last.heading: // it stays with what follows
	case !b.structured():
		weight = u.tokens
	case u.first:
		weight = min(b.block, longBlock*b.Tokens) // of the block that ends here
	case b.block > longBlock*b.Tokens:
		weight = u.tokens
	}
	if weight == 0 || !chosen(b.text, u.start, weight, b.apart) {
		return false
	}
	far := b.since >= b.Tokens/2
	b.since = 0
	return far
}

// structured reports whether blocks and headings count, and not sentences or words alone.
func (o *Options) structured() bool { return o.Mode == ModeStructure || o.Mode == ModePage }

// tiny is how many tokens a section needs to have pieces of its own.
func (o *Options) tiny() int { return o.Tokens / 4 }

// chosen reports whether the hash of the text around i is among the first weight of one in apart.
func chosen(text string, i, weight, apart int) bool {
	const before, after = 16, 48
	return mix(text[max(0, i-before):min(len(text), i+after)])%uint64(apart) < uint64(weight)
}

// mix is FNV-1a with the finish of splitmix64: the same on every machine, and even in all bits.
func mix(s string) uint64 {
	h := uint64(0xcbf29ce484222325)
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 0x100000001b3
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
