package kafkatest

import (
	"testing"

	"go.uber.org/goleak"
)

// NoLeaks fails the test if it leaves goroutines behind: those that are there when it is called do not count. Call it
// first, so that it looks after all other clean-ups.
func NoLeaks(t testing.TB) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		goleak.VerifyNone(t, before,
			// LevelDB ends this one within a second after the store is closed.
			goleak.IgnoreTopFunction("github.com/syndtr/goleveldb/leveldb.(*DB).mpoolDrain"),
			// sarama's circuit breaker: ends by itself 10 s after the last failure.
			goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
			// sarama's metrics share this one in the whole process.
			goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"))
	})
}
