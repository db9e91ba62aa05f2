package kafka_test

import (
	"testing"

	"github.com/rcrowley/go-metrics"

	"github.com/waymarkhq/waymark/kafka"
)

// The clients of one configuration keep no metrics of their own, however much they do, and work all the same.
func TestClientsKeepNoMetricsOfTheirOwn(t *testing.T) {
	cfg, err := kafka.Config{Brokers: []string{"localhost:9092"}}.Sarama()
	if err != nil {
		t.Fatal(err)
	}
	r := cfg.MetricRegistry
	metrics.GetOrRegisterMeter("rate", r).Mark(3)
	metrics.GetOrRegisterCounter("count", r).Inc(3)
	metrics.GetOrRegisterHistogram("size", r, metrics.NewUniformSample(8)).Update(3)
	if n := metrics.GetOrRegisterMeter("rate", r).Count() + metrics.GetOrRegisterCounter("count", r).Count() +
		metrics.GetOrRegisterHistogram("size", r, metrics.NewUniformSample(8)).Count(); n != 0 {
		t.Errorf("%d are kept", n)
	}
	// A kind that nobody has thought of is one that works.
	metrics.GetOrRegisterGauge("gauge", r).Update(3)
	metrics.GetOrRegisterTimer("timer", r).Update(3)
	if all := r.GetAll(); len(all) != 0 {
		t.Errorf("registered are %v", all)
	}
}
