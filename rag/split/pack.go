package split

import (
	"fmt"

	"github.com/waymarkhq/waymark/rag"
)

// unit is what the packer does not cut: a sentence, or a part of one that alone would be too large.
type unit struct {
	start, end int
	tokens     int // of text[start:end]
	heading    bool
	block      *rag.Block
}

// packer fills pieces with units.
//
// units are those of the piece in hand. The last fresh ones of them stand in no piece yet; those before are the overlap.
type packer struct {
	Options
	text   string
	pieces []Piece
	units  []unit
	fresh  int
	count  counter // of the text from the first to the last unit
	block  *rag.Block
}

// enter says which block the next units belong to. It ends the piece in hand if the border before the block is the
// better place: before a heading unless the piece is tiny, and before a block that does not fit when the piece is half full.
func (p *packer) enter(b rag.Block) error {
	p.block = &b
	if p.fresh == 0 {
		return nil
	}
	have := p.count.tokens()
	if b.Kind == rag.BlockHeading {
		if have < p.Tokens/4 || p.units[len(p.units)-1].heading {
			return nil
		}
		return p.emit()
	}
	if have < p.Tokens/2 {
		return nil
	}
	if _, fits := p.fits(b.Start, b.End); fits {
		return nil
	}
	return p.emit()
}

// push adds a unit of the current block, which has at most Tokens tokens.
func (p *packer) push(u unit) error {
	u.block, u.heading = p.block, p.block.Kind == rag.BlockHeading
	if p.fresh == 0 {
		p.fitOverlap(u)
	}
	if !p.add(u) {
		if err := p.emit(); err != nil {
			return err
		}
		if p.fresh == 0 {
			p.fitOverlap(u)
		}
		if !p.add(u) { // headings were carried over, and u leaves no room for them
			if err := p.emit(); err != nil {
				return err
			}
			p.restart(nil)
			p.add(u)
		}
	}
	p.fresh++
	return nil
}

// add appends u if the piece stays within its tokens. To an empty piece it always does.
func (p *packer) add(u unit) bool {
	c, fits := p.fits(u.start, u.end)
	if fits {
		p.units, p.count = append(p.units, u), c
	}
	return fits
}

// fits reports whether the piece in hand, prolonged by the text from start to end, stays within its tokens, and the
// count that it then has.
func (p *packer) fits(start, end int) (counter, bool) {
	if n := len(p.units); n > 0 {
		start = p.units[n-1].end // the white space between counts too
	}
	c := p.count
	return c, c.addUpTo(p.text[start:end], p.Tokens)
}

// restart begins a piece with units that stand in one already.
func (p *packer) restart(units []unit) {
	p.units = append(p.units[:0], units...)
	p.fresh, p.count = 0, counter{}
	if n := len(p.units); n > 0 {
		p.count.add(p.text[p.units[0].start:p.units[n-1].end])
	}
}

// emit makes a piece of the units in hand. What stays in hand is what the next piece begins with: headings that would
// end this piece and belong to what follows, else the overlap.
func (p *packer) emit() error {
	n := len(p.units)
	carried := 0
	for carried < p.fresh && p.units[n-1-carried].heading {
		carried++
	}
	if carried == p.fresh { // nothing but headings: they are the piece
		carried = 0
	}
	if len(p.pieces) == p.MaxPieces {
		return &Error{
			Reason:  rag.ReasonTooManyChunks,
			Message: fmt.Sprintf("the text gives more than %d chunks, the most that one document may have", p.MaxPieces),
		}
	}
	first, last := p.units[0], p.units[n-1-carried]
	p.pieces = append(p.pieces, Piece{Start: first.start, End: last.end, Heading: first.block.Heading, Page: first.block.Page})
	if carried > 0 {
		p.restart(p.units[n-carried:])
		p.fresh = carried
		return nil
	}
	p.restart(p.units[n-p.overlap():])
	return nil
}

// flush makes a piece of what is left.
func (p *packer) flush() error {
	for p.fresh > 0 {
		if err := p.emit(); err != nil {
			return err
		}
	}
	return nil
}

// overlap is how many of the last units the next piece repeats: as many as stay within one and a half times Overlap, but
// never the whole piece and nothing above or with a heading.
func (p *packer) overlap() int {
	n, tokens := 0, 0
	for n < len(p.units)-1 {
		u := p.units[len(p.units)-1-n]
		tokens += u.tokens
		if u.heading || tokens > p.Overlap+p.Overlap/2 {
			break
		}
		n++
	}
	return n
}

// fitOverlap drops from the overlap in hand what does not belong before u or leaves no room for it.
func (p *packer) fitOverlap(u unit) {
	if len(p.units) == 0 {
		return
	}
	if u.heading || p.units[len(p.units)-1].block.Heading != u.block.Heading {
		p.restart(nil)
		return
	}
	if _, fits := p.fits(u.start, u.end); fits {
		return
	}
	keep, tokens := len(p.units), u.tokens
	for keep > 0 && tokens+p.units[keep-1].tokens <= p.Tokens {
		keep--
		tokens += p.units[keep].tokens
	}
	p.restart(p.units[keep:])
	// The sum leaves out the white space between, and a word that is cut weighs less than its whole.
	if _, fits := p.fits(u.start, u.end); !fits {
		p.restart(nil)
	}
}
