package node

import (
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag/split"
)

// SplitOptions are those that the configuration asks for.
func SplitOptions(c *config.Config) split.Options {
	s := c.Splitting
	return split.Options{Mode: split.Mode(s.Mode), Tokens: s.Tokens, Overlap: s.Overlap, Parent: s.ParentTokens, MaxPieces: c.Limits.Chunks}
}
