package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/embed"
	"github.com/waymarkhq/waymark/rag/embed/builtin"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

// paid is an embedder whose vectors are worth keeping, as those of a service are.
type paid struct{ embed.Embedder }

func (paid) Paid() bool { return true }

// An edit of a hundredth in the middle of a megabyte has less than one in twenty of the chunks embedded again.
func TestAnEditPaysForFewChunks(t *testing.T) {
	registry := prometheus.NewRegistry()
	parser, err := parse.New(parse.Limits{})
	check(t, err)
	splitter, err := split.New(split.Options{Tokens: split.DefaultTokens, Overlap: split.DefaultOverlap})
	check(t, err)
	w := prepare(t, 300*time.Millisecond, func(o *pipeline.Options) {
		o.Embedder, o.Metrics = paid{builtin.New()}, processors.NewMetrics(registry, "sqlite")
		o.Documents = read.New(read.Options{Parser: parser, Splitter: splitter, Time: time.Minute})
	})
	w.run(nil, pipeline.Roles()...)

	const size = 1 << 20
	before := reports(0, size)
	middle := strings.LastIndex(before[:size/2], "\n\n") + 2
	after := before[:middle] + reports(1_000_000, size/100) + before[middle+size/100:]
	w.put(rag.Document{ID: "doc", MessageID: "m1", Content: []byte(before)})
	w.waitFinal("doc/m1", rag.StatusIndexed)
	first := embedded(t, registry)
	w.put(rag.Document{ID: "doc", MessageID: "m2", Content: []byte(after)})
	w.waitFinal("doc/m2", rag.StatusIndexed)
	again := embedded(t, registry) - first
	t.Logf("%.0f of %.0f chunks embedded again (%.1f %%)", again, first, 100*again/first)
	if first < 1000 || again == 0 || again > first/20 {
		t.Errorf("%.0f chunks were embedded, and %.0f after the edit", first, again)
	}
}

// reports are n bytes of paragraphs, none twice.
func reports(from, n int) string {
	var b strings.Builder
	for i := from; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Report %d says that ship %d came into the harbour with %d tons of grain. It left after %d hours for the north.", i, i*7919%100_003, i*31%997, i%97)
		if i%5 == 4 {
			b.WriteString("\n\n")
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()[:n]
}

// embedded is how many texts the service was asked for.
func embedded(t *testing.T, g prometheus.Gatherer) float64 {
	t.Helper()
	families, err := g.Gather()
	check(t, err)
	for _, f := range families {
		if f.GetName() != "waymark_embedding_texts_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "service" {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatal("the texts are not counted")
	return 0
}
