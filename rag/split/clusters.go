package split

import (
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
)

// clusterBorders tells in one pass whether places of a text are borders of grapheme clusters. Words and sentences end
// inside of one here and there: before a Thai sara am, in a long run of marks.
type clusterBorders struct {
	text  string
	known int // a border
	next  int // the border after known, if it is above it
}

// at reports whether i, which is not below one asked before, is a border.
func (c *clusterBorders) at(i int) bool {
	if i == len(c.text) || i == 0 {
		return true
	}
	if a, b := c.text[i-1], c.text[i]; a < utf8.RuneSelf && b < utf8.RuneSelf {
		if border := a != '\r' || b != '\n'; !border {
			return false
		}
		c.known = i
		return true
	}
	if c.next > c.known {
		if i < c.next {
			return false
		}
		c.known = c.next
	}
	for it := graphemes.FromString(c.text[c.known:]); c.known < i && it.Next(); {
		size := it.End() - it.Start()
		if c.known+size > i {
			c.next = c.known + size
			return false
		}
		c.known += size
	}
	return true
}
