package processors

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// Metrics are the pipeline's own, beside the engine's. A nil *Metrics counts nothing.
type Metrics struct {
	duplicates  *prometheus.CounterVec
	deadLetters *prometheus.CounterVec
	documents   *prometheus.CounterVec
	texts       *prometheus.CounterVec
	embedTime   prometheus.Histogram
	objects     *prometheus.CounterVec
	batchTime   *prometheus.HistogramVec
	endToEnd    prometheus.Histogram
	forwards    prometheus.Counter
	strangers   *prometheus.CounterVec
	passed      *prometheus.CounterVec
	readBacks   *prometheus.CounterVec
	sink        string
}

// NewMetrics registers the metrics. sink names the store ("sqlite", "weaviate").
func NewMetrics(r prometheus.Registerer, sink string) *Metrics {
	vec := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "waymark", Name: name, Help: help}, labels)
	}
	seconds := prometheus.ExponentialBuckets(0.0005, 3, 12)
	m := &Metrics{
		duplicates:  vec("duplicates_total", "Messages recognised as known, by kind (redelivery, duplicate, old, unchanged, confirmed, refused).", "stage", "kind"),
		deadLetters: vec("dead_letters_total", "Versions that died, by the stage and reason of their failure.", "stage", "reason"),
		documents:   vec("documents_total", "Versions that reached a final status.", "status"),
		texts:       vec("embedding_texts_total", "Texts embedded, by where the vector came from.", "source"),
		embedTime: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "waymark", Name: "embedding_seconds",
			Help: "Time of one call of the embedder.", Buckets: seconds}),
		objects: vec("store_objects_total", "Objects given to the store, by outcome; removed counts removals.", "sink", "outcome"),
		batchTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "waymark", Name: "store_batch_seconds",
			Help: "Time of one batch in the store.", Buckets: seconds}, []string{"sink"}),
		endToEnd: prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "waymark", Name: "end_to_end_seconds",
			Help: "Time from a document record's timestamp to its final status.", Buckets: prometheus.ExponentialBuckets(0.02, 2.5, 12)}),
		forwards:  prometheus.NewCounter(prometheus.CounterOpts{Namespace: "waymark", Name: "forwarded_total", Help: "Document records forwarded to the partition of their key."}),
		strangers: vec("ignored_total", "Records on internal topics that no release has written.", "stage"),
		passed:    vec("passed_by_total", "Records of the tracker and of the dead-letter group that nothing could be made of.", "stage", "reason"),
		readBacks: vec("store_read_back_total", "Chunks looked for by vector after an interruption of the store, found or repaired.", "sink", "outcome"),
		sink:      sink,
	}
	if r != nil {
		r.MustRegister(m.duplicates, m.deadLetters, m.documents, m.texts, m.embedTime, m.objects, m.batchTime, m.endToEnd, m.forwards, m.strangers, m.passed, m.readBacks)
	}
	return m
}

func (m *Metrics) decided(d ledger.ChunkerDecision) {
	if m == nil {
		return
	}
	switch {
	case d.Action == ledger.ActDuplicate || d.Action == ledger.ActOld || d.Action == ledger.ActUnchanged:
		m.duplicates.WithLabelValues(StageChunker, d.Action.String()).Inc()
	case d.Redelivery:
		m.duplicates.WithLabelValues(StageChunker, "redelivery").Inc()
	}
}

func (m *Metrics) forwarded() {
	if m != nil {
		m.forwards.Inc()
	}
}

func (m *Metrics) ignored(stageName string) {
	if m != nil {
		m.strangers.WithLabelValues(stageName).Inc()
	}
}

func (m *Metrics) passedBy(stageName, reason string) {
	if m != nil {
		m.passed.WithLabelValues(stageName, reason).Inc()
	}
}

func (m *Metrics) refused() {
	if m != nil {
		m.duplicates.WithLabelValues(StageDeadLetters, "refused").Inc()
	}
}

func (m *Metrics) embedded(source string, n int) {
	if m != nil && n > 0 {
		m.texts.WithLabelValues(source).Add(float64(n))
	}
}

func (m *Metrics) embedSeconds(d time.Duration) {
	if m != nil {
		m.embedTime.Observe(d.Seconds())
	}
}

func (m *Metrics) skipped() {
	if m != nil {
		m.duplicates.WithLabelValues(StageIndexer, "confirmed").Inc()
	}
}

func (m *Metrics) stored(results []sinks.Result, took time.Duration) {
	if m == nil {
		return
	}
	for _, r := range results {
		m.objects.WithLabelValues(m.sink, r.Outcome.String()).Inc()
	}
	m.batchTime.WithLabelValues(m.sink).Observe(took.Seconds())
}

func (m *Metrics) readBack(outcome string, n int) {
	if m != nil && n > 0 {
		m.readBacks.WithLabelValues(m.sink, outcome).Add(float64(n))
	}
}

func (m *Metrics) removed(o sinks.Outcome) {
	if m == nil {
		return
	}
	outcome := o.String()
	if o == sinks.Done {
		outcome = "removed"
	}
	m.objects.WithLabelValues(m.sink, outcome).Inc()
}

// took observes the time from a document record's timestamp to its final status.
func (m *Metrics) took(d time.Duration) {
	if m != nil {
		m.endToEnd.Observe(d.Seconds())
	}
}

// finals counts the versions that a progress record has ended.
func (m *Metrics) finals(words []ledger.Word) {
	if m == nil {
		return
	}
	for _, w := range words {
		if !w.Status.Final() {
			continue
		}
		m.documents.WithLabelValues(string(w.Status)).Inc()
		if w.Status == rag.StatusDead && w.Failure != nil {
			m.deadLetters.WithLabelValues(w.Failure.Stage, w.Failure.Reason).Inc()
		}
	}
}
