package parse

import (
	"strings"

	"github.com/waymarkhq/waymark/rag"
)

// paragraphs are the blocks of a plain text: runs of lines between blank ones.
func paragraphs(text string) []rag.Block {
	var blocks []rag.Block
	open := false
	for pos := 0; pos < len(text); {
		end := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		line := strings.TrimSpace(text[pos:end])
		switch {
		case line == "":
			open = len(blocks) >= maxBlocks
		case open:
			blocks[len(blocks)-1].End = pos + strings.LastIndex(text[pos:end], line) + len(line)
		default:
			start := pos + strings.Index(text[pos:end], line)
			blocks = append(blocks, rag.Block{Start: start, End: start + len(line), Kind: rag.BlockParagraph})
			open = true
		}
		pos = end
	}
	return blocks
}
