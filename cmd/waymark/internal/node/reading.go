package node

import (
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

// ReadOptions are those that the configuration asks for.
func ReadOptions(c *config.Config, p read.Parser, s split.Splitter) read.Options {
	return read.Options{Parser: p, Splitter: s, MaxPieces: c.Limits.Chunks, MaxBytes: int64(c.Limits.DocumentBytes), Time: c.Limits.ParseTime}
}
