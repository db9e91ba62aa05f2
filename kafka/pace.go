package kafka

import (
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/time/rate"
)

// The pace of a producer whose records may wait for each other (ProducerOptions.Gather). Each request costs the brokers,
// their followers and every consumer a round, however little is in it.
const (
	// paceBursts go at once after a pause: more than a lone record sets off on its way through all stages.
	paceBursts = 12
	// paceEvery is how far apart bursts are once those are used up, and so the longest that a record waits.
	paceEvery = 20 * time.Millisecond
	// paceRecords or paceBytes that wait are worth a request by themselves.
	paceRecords = 256
	paceBytes   = 256 << 10
)

// pacer hands records on in bursts: at once while there are few, and with others of the next 20 ms while there are many.
type pacer struct {
	in    chan *sarama.ProducerMessage // closed by whoever ends it; what is in it is handed on
	out   chan<- *sarama.ProducerMessage
	limit *rate.Limiter
}

func newPacer(out chan<- *sarama.ProducerMessage) *pacer {
	return &pacer{in: make(chan *sarama.ProducerMessage, handOverBuffer), out: out,
		limit: rate.NewLimiter(rate.Every(paceEvery), paceBursts)}
}

// run ends once in is closed and everything has been handed on.
func (p *pacer) run() {
	for first := range p.in {
		for _, m := range p.gather(first) {
			p.out <- m
		}
		p.pass()
	}
}

// gather waits for the time of the next burst, or until enough has come.
func (p *pacer) gather(first *sarama.ProducerMessage) []*sarama.ProducerMessage {
	burst, size := []*sarama.ProducerMessage{first}, messageSize(first)
	turn := p.limit.Reserve()
	wait := turn.Delay()
	if wait <= 0 {
		return burst
	}
	due := time.After(wait)
	for len(burst) < paceRecords && size < paceBytes {
		select {
		case <-due:
			return burst
		case m, more := <-p.in:
			if !more {
				return burst
			}
			burst, size = append(burst, m), size+messageSize(m)
		}
	}
	turn.Cancel() // it went for its size
	return burst
}

// pass lets through what comes while the producer waits for the rest of a batch: it goes with it.
func (p *pacer) pass() {
	over := time.After(flushFrequency)
	for {
		select {
		case <-over:
			return
		case m, more := <-p.in:
			if !more {
				return
			}
			p.out <- m
		}
	}
}

// messageSize is about what a message takes.
func messageSize(m *sarama.ProducerMessage) int {
	size := 0
	if m.Key != nil {
		size += m.Key.Length()
	}
	if m.Value != nil {
		size += m.Value.Length()
	}
	return size
}
