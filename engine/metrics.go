package engine

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/stage"
)

// Metrics are the engine's, for all groups of a process. No label ever carries a key.
type Metrics struct {
	messages    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	retries     *prometheus.CounterVec
	inFlight    *prometheus.GaugeVec
	commitGap   *prometheus.GaugeVec
	lag         *prometheus.GaugeVec
	outage      *prometheus.GaugeVec
	recovery    *prometheus.GaugeVec
	rewritten   *prometheus.CounterVec
	undecodable *prometheus.CounterVec
	rebuilt     *prometheus.CounterVec
}

// NewMetrics registers the metrics; with nil they are kept to themselves.
func NewMetrics(r prometheus.Registerer) *Metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "waymark", Name: name, Help: help}, labels)
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "waymark", Name: name, Help: help}, labels)
	}
	m := &Metrics{
		messages: counter("messages_total", "Messages that a stage is done with, by outcome (ok, failed, abandoned).", "stage", "outcome"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "waymark", Name: "stage_duration_seconds",
			Help: "Time that a stage's handler took for one message or batch, retries included.", Buckets: prometheus.ExponentialBuckets(0.0001, 4, 10)}, []string{"stage"}),
		retries:     counter("retries_total", "Tries that were not the first, by class of the error.", "stage", "class"),
		inFlight:    gauge("in_flight", "Messages delivered to a stage and not done.", "stage"),
		commitGap:   gauge("commit_gap", "Messages delivered whose offset cannot be committed yet.", "stage"),
		lag:         gauge("consumer_lag", "Records behind the end of the log, of claimed partitions.", "stage", "topic", "partition"),
		outage:      gauge("outage", "1 while a dependency is away.", "dependency"),
		recovery:    gauge("table_recovery_ratio", "1 once the tables of all claimed partitions are recovered, 0 before.", "stage"),
		rewritten:   counter("rows_rewritten_total", "Rows written again because a stranger's older row stood last in the table.", "stage"),
		undecodable: counter("rows_undecodable_total", "Rows that could not be decoded and count as missing.", "stage", "topic"),
		rebuilt:     counter("processor_rebuilds_total", "Times that a processor ended and was built anew.", "stage"),
	}
	if r != nil {
		r.MustRegister(m.messages, m.duration, m.retries, m.inFlight, m.commitGap, m.lag, m.outage, m.recovery, m.rewritten, m.undecodable, m.rebuilt)
	}
	return m
}

// expect makes the series of a stage visible before anything has happened: an alert on what is missing fires for ever.
func (m *Metrics) expect(stageName string) {
	for _, outcome := range []string{"ok", "failed", "abandoned"} {
		m.messages.WithLabelValues(stageName, outcome)
	}
	for _, class := range []stage.Class{stage.ClassTransient, stage.ClassOutage} {
		m.retries.WithLabelValues(stageName, class.String())
	}
	m.rewritten.WithLabelValues(stageName)
	m.rebuilt.WithLabelValues(stageName)
}

// ExpectDependency shows a dependency as there until it is known to be away.
func (m *Metrics) ExpectDependency(name string) { m.outage.WithLabelValues(name).Set(0) }

// errFailed marks an observation of a message that went to the failure handler.
var errFailed = errors.New("failed")

func (m *Metrics) observe(group, _ string, err error, took time.Duration) {
	outcome := "ok"
	switch {
	case errors.Is(err, errAbandoned):
		outcome = "abandoned"
	case err != nil:
		outcome = "failed"
	}
	m.messages.WithLabelValues(group, outcome).Inc()
	if took > 0 {
		m.duration.WithLabelValues(group).Observe(took.Seconds())
	}
}

func (m *Metrics) observeBatch(group, _ string, n int, took time.Duration) {
	m.messages.WithLabelValues(group, "ok").Add(float64(n))
	m.duration.WithLabelValues(group).Observe(took.Seconds())
}
