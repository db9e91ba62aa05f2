package parse

import (
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

func TestSourceIsKeptInBlocksOfCode(t *testing.T) {
	var b strings.Builder
	for range 10 {
		b.WriteString("func a() {\n\tif b {\n\n\t\tc() // " + strings.Repeat("long ", 40) + "\n\t}\n}\n\n")
	}
	text := mustParse(t, Input{Content: []byte(b.String()), Name: "x/a.go"})
	if text.Body != b.String() || text.Type != TypeSource {
		t.Errorf("the text is not the file (%s)", text.Type)
	}
	if len(text.Blocks) != 10 {
		t.Errorf("%d blocks", len(text.Blocks))
	}
	for _, k := range text.Blocks {
		if s := text.Body[k.Start:k.End]; k.Kind != rag.BlockCode || !strings.HasPrefix(s, "func a()") || !strings.HasSuffix(s, "\n}") {
			t.Errorf("block %q", s)
		}
	}
}

func TestIndentOfSourceIsKept(t *testing.T) {
	text := mustParse(t, Input{Content: []byte("\n\n    indented:\n\n      - a\n"), Name: "a.yaml"})
	if got := text.Body[text.Blocks[0].Start:text.Blocks[0].End]; got != "    indented:\n\n      - a" {
		t.Errorf("%q", got)
	}
}
