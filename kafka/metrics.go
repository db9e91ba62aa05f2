package kafka

import "github.com/rcrowley/go-metrics"

// noMetrics is the registry of sarama's own metrics, which nobody reads: what matters is measured where it is decided, and
// keeping some twenty meters and histograms up to date for every request costs as much as some of the work.
type noMetrics struct{}

var _ metrics.Registry = noMetrics{}

// GetOrRegister gives a metric of the kind that is asked for, which keeps nothing. sarama knows no other
// kinds today; one that comes is kept, and by nobody else.
func (noMetrics) GetOrRegister(name string, metric any) any {
	switch metric.(type) {
	case func() metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter:
		return metrics.NilCounter{}
	}
	return metrics.NewRegistry().GetOrRegister(name, metric)
}

func (noMetrics) Register(string, any) error        { return nil }
func (noMetrics) Get(string) any                    { return nil }
func (noMetrics) GetAll() map[string]map[string]any { return nil }
func (noMetrics) Each(func(string, any))            {}
func (noMetrics) RunHealthchecks()                  {}
func (noMetrics) Unregister(string)                 {}
func (noMetrics) UnregisterAll()                    {}
