package node

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/rag"
)

// lettersCollector counts dead letters by state when it is asked.
type lettersCollector struct {
	counts func() map[rag.LetterState]int64
	desc   *prometheus.Desc
}

func newLettersCollector(counts func() map[rag.LetterState]int64) prometheus.Collector {
	return lettersCollector{counts, prometheus.NewDesc("waymark_dead_letters", "Dead letters by state.", []string{"state"}, nil)}
}

// Describe says what it collects.
func (c lettersCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.desc }

// Collect counts. A state without letters is 0, not missing.
func (c lettersCollector) Collect(ch chan<- prometheus.Metric) {
	counts := map[rag.LetterState]int64{rag.LetterWaiting: 0, rag.LetterScheduled: 0, rag.LetterReplaying: 0, rag.LetterResolved: 0,
		rag.LetterSuperseded: 0, rag.LetterDiscarded: 0}
	for state, n := range c.counts() {
		if state == rag.LetterSent {
			state = rag.LetterReplaying // it is an automatic replay
		}
		counts[state] += n
	}
	for state, n := range counts {
		ch <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, float64(n), string(state))
	}
}
