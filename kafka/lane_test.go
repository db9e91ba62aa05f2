package kafka

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

// A client that is slow to end has lost nothing, if nothing was in flight.
func TestALaneThatEndsLateHasLostNothing(t *testing.T) {
	for _, inFlight := range []bool{false, true} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l, err := newLane(Config{Brokers: c.ListenAddrs()}, 1<<20, false, func(*sarama.ProducerMessage, error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.close(-1, func() bool { return inFlight }); (err != nil) != inFlight {
			t.Errorf("in flight: %v: closing says %v", inFlight, err)
		}
	}
}
