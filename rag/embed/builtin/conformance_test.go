package builtin_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

func TestConformance(t *testing.T) {
	embedtest.Run(t, func(*testing.T) embed.Embedder { return builtin.New() })
}
