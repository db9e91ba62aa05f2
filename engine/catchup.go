package engine

import "time"

const (
	// catchUpPoll is how often a batch that waits for the rows looks for them.
	catchUpPoll = 10 * time.Millisecond
	// catchUpPatience is how long the rows may stand still before they count as what they can become: an input may end with what
	// is no record, and so is never delivered.
	catchUpPatience = 10 * time.Second
)

// catchUp holds a batch of redelivered messages back until the rows of its partition say all that an owner before had said
// when the claim began. An owner before may have done what a message wants and said so on another input: who works on the
// message without knowing it does it a second time, while others rely on the first.
type catchUp struct {
	over  bool
	begun bool
	mark  int64 // of all other inputs together
	since time.Duration
}

// behind reports whether the rows do not say everything yet. The inputs that come in batches wait for none of each other.
func (c *catchUp) behind(p *partition) bool {
	if c.over || p.rows == nil {
		return false
	}
	var mark int64
	all := true
	for _, in := range p.r.group.inputs {
		if in.batch != nil {
			continue
		}
		g := p.session.gate(claimKey{in.topic, p.id})
		if g == nil {
			all = false // its claim comes
			continue
		}
		done, caughtUp := g.progress()
		mark, all = mark+done, all && caughtUp
	}
	now := p.r.env.Clock.Mono()
	if !c.begun || mark != c.mark {
		c.begun, c.mark, c.since = true, mark, now
	}
	c.over = all || now-c.since >= catchUpPatience
	return !c.over
}
