package kafka

import (
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
)

// A client that is slow to end is cut off, and has lost nothing: nothing was in flight.
func TestALaneThatEndsLateHasLostNothing(t *testing.T) {
	for _, gather := range []bool{false, true} {
		c, err := kfake.NewCluster(kfake.NumBrokers(1))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		l, err := newLane(Config{Brokers: c.ListenAddrs()}, 1<<20, gather, func(*sarama.ProducerMessage, error) {})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.close(-1); err != nil {
			t.Error(err)
		}
	}
}
