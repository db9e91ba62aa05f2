package split

import (
	"fmt"

	"github.com/waymarkhq/waymark/rag"
)

// packer fills pieces with units.
//
// units are those of the piece in hand. The last fresh ones of them stand in no piece yet; those before are the overlap.
type packer struct {
	Options
	text    string
	borders borders
	before  int // pieces of the text that others have made
	pieces  []Piece
	units   []unit
	fresh   int
	count   counter // of the text from the first to the last unit
	block   *rag.Block
	opened  bool   // the block in hand has had a unit
	past    []unit // of the piece before the one in hand, since the last hard border
}

// enter says which block the next units belong to. It ends the piece in hand if the border before the block is the
// better place: before a heading unless the piece is tiny, before a block that does not fit when the piece is two thirds full,
// and before code or a table that would stay whole in a piece of its own.
func (p *packer) enter(b rag.Block) error {
	p.block, p.opened = &b, false
	if !p.structured() || len(p.units) == 0 {
		return nil
	}
	if p.fresh > 0 && b.Kind == rag.BlockHeading {
		if p.count.tokens() < p.tiny() || p.units[len(p.units)-1].heading {
			return nil
		}
		return p.emit(true)
	}
	if _, fits := p.fits(b.Start, b.End); fits {
		return nil
	}
	whole := (b.Kind == rag.BlockCode || b.Kind == rag.BlockTable) && within(p.text[b.Start:b.End], p.Tokens)
	if p.fresh > 0 && (whole || p.count.tokens() >= p.Tokens*2/3) {
		if err := p.emit(true); err != nil {
			return err
		}
	}
	if !whole || len(p.units) == 0 {
		return nil
	}
	if _, fits := p.fits(b.Start, b.End); fits {
		return nil
	}
	if p.fresh > 0 { // a heading that leaves no room
		if err := p.emit(false); err != nil {
			return err
		}
	}
	p.restart(nil)
	return nil
}

// within reports whether s has at most limit tokens.
func within(s string, limit int) bool {
	var c counter
	return c.addUpTo(s, limit)
}

// push adds a unit of the current block, which has at most Tokens tokens.
func (p *packer) push(u unit) error {
	u.block, u.heading, u.first = p.block, p.structured() && p.block.Kind == rag.BlockHeading, !p.opened
	p.opened = true
	if p.borders.hard(u) {
		if err := p.cut(); err != nil {
			return err
		}
	}
	if p.fresh == 0 {
		p.fitOverlap(u)
	}
	if !p.add(u) {
		if err := p.emit(true); err != nil {
			return err
		}
		if p.fresh == 0 {
			p.fitOverlap(u)
		}
		if !p.add(u) { // headings were carried over, and u leaves no room for them
			if err := p.emit(false); err != nil {
				return err
			}
			p.restart(nil)
			p.add(u)
		}
	}
	p.fresh++
	return nil
}

// cut ends the piece in hand at a hard border.
func (p *packer) cut() error {
	if p.fresh > 0 {
		p.lengthen()
		if err := p.emit(false); err != nil {
			return err
		}
	}
	p.restart(nil)
	p.past = p.past[:0]
	return nil
}

// lengthen lets a short last piece repeat more of the one before it, up to half a piece: a few words alone are hard to
// find and hard to understand.
func (p *packer) lengthen() {
	own := p.units[len(p.units)-p.fresh:]
	if p.Overlap == 0 || !p.structured() || len(p.past) == 0 || p.count.tokens() >= p.Tokens/2 || sum(own) >= p.tiny() {
		return
	}
	room := p.Tokens/2 - sum(own)
	n := p.repeatable(p.past, room)
	for n > 0 && p.past[len(p.past)-n].block.Heading != own[0].block.Heading {
		n--
	}
	if n <= len(p.units)-p.fresh { // no more than the overlap
		return
	}
	all := append(append([]unit(nil), p.past[len(p.past)-n:]...), own...)
	var c counter
	if c.addUpTo(p.text[all[0].start:all[len(all)-1].end], p.Tokens) {
		p.units, p.count = all, c
	}
}

func sum(units []unit) (tokens int) {
	for _, u := range units {
		tokens += u.tokens
	}
	return tokens
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
// end this piece and belong to what follows (if carry is set), else the overlap.
func (p *packer) emit(carry bool) error {
	n := len(p.units)
	carried := 0
	for carry && carried < p.fresh && p.units[n-1-carried].heading {
		carried++
	}
	if carried == p.fresh { // nothing but headings: they are the piece
		carried = 0
	}
	if p.before+len(p.pieces) >= p.MaxPieces {
		return &Error{
			Reason:  rag.ReasonTooManyChunks,
			Message: fmt.Sprintf("the text gives more than %d chunks, the most that one document may have", p.MaxPieces),
		}
	}
	first, last := p.units[0], p.units[n-1-carried]
	p.pieces = append(p.pieces, Piece{Start: first.start, End: last.end, Heading: first.block.Heading, Page: first.block.Page})
	p.past = append(p.past[:0], p.units[:n-carried]...)
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
		if err := p.cut(); err != nil {
			return err
		}
	}
	return nil
}

// overlap is how many of the last units the next piece repeats: as many as stay within one and a half times Overlap
// (units of words: within Overlap), but never the whole piece and nothing above or with a heading.
func (p *packer) overlap() int {
	room := p.Overlap + p.Overlap/2
	if p.Mode == ModeTokens {
		room = p.Overlap
	}
	return p.repeatable(p.units, room)
}

// repeatable is how many of the last units a piece behind them may repeat within room tokens.
func (p *packer) repeatable(units []unit, room int) int {
	n, tokens := 0, 0
	for n < len(units)-1 {
		u := units[len(units)-1-n]
		tokens += u.tokens
		if u.heading || tokens > room {
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
	if p.structured() && (u.heading || p.units[len(p.units)-1].block.Heading != u.block.Heading) {
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
