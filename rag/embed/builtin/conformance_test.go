package builtin_test

import (
	"testing"

	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/embed/embedtest"
)

func TestConformance(t *testing.T) {
	m := builtin.New()
	embedtest.Run(t, func(*testing.T) embed.Embedder { return m })
}
