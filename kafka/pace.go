package kafka

import (
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/time/rate"
)

// The pace of a producer whose records may wait for each other (ProducerOptions.Gather). What it costs the brokers is not bytes but
// batches: each partition that a request has something for is a batch, which followers fetch, and which is looked at for every
// consumer that waits. Records with different keys spread over all partitions, so that only many at once share batches.
const (
	// paceBursts go at once after a pause: more than a lone record sets off on its way through all stages.
	paceBursts = 12
	// Bursts are as far apart once those are used up, and a record waits for as long. Each record of a burst defers the next one
	// by paceEach: below 1,000 records a second it is the least, above it grows to the most.
	paceMin  = 20 * time.Millisecond
	paceMax  = 100 * time.Millisecond
	paceEach = time.Millisecond
	// paceRecords or paceBytes that wait are worth a request by themselves.
	paceRecords = 1024
	paceBytes   = mebibyte
)

// pacer hands records on in bursts: at once while there are few, and with others that come soon while there are many.
type pacer struct {
	in    chan *sarama.ProducerMessage // closed by whoever ends it; what is in it is handed on
	out   chan<- *sarama.ProducerMessage
	limit *rate.Limiter
	last  time.Time // when the last burst was over
}

func newPacer(out chan<- *sarama.ProducerMessage) *pacer {
	return &pacer{in: make(chan *sarama.ProducerMessage, handOverBuffer), out: out, limit: rested()}
}

// rested is the limit of who has not sent for a while.
func rested() *rate.Limiter { return rate.NewLimiter(rate.Every(paceMin), paceBursts) }

// run ends once in is closed and everything has been handed on.
func (p *pacer) run() {
	for first := range p.in {
		if time.Since(p.last) >= paceBursts*paceMin {
			p.limit = rested() // whatever the pace was before
		}
		records := p.burst(first) + p.pass()
		p.limit.SetLimit(rate.Every(min(max(time.Duration(records)*paceEach, paceMin), paceMax)))
		p.last = time.Now()
	}
}

// burst hands on what has come by the time of the next burst, and says how many records that were.
func (p *pacer) burst(first *sarama.ProducerMessage) int {
	burst := []*sarama.ProducerMessage{first}
	turn := p.limit.Reserve()
	if wait := turn.Delay(); wait > 0 {
		var inTime bool
		if burst, inTime = p.gather(burst, wait); !inTime {
			turn.Cancel()
		}
	}
	for _, m := range burst {
		p.out <- m
	}
	return len(burst)
}

// gather adds to a burst until its time has come, or reports that it goes before.
func (p *pacer) gather(burst []*sarama.ProducerMessage, wait time.Duration) (_ []*sarama.ProducerMessage, inTime bool) {
	due, size := time.After(wait), messageSize(burst[0])
	for len(burst) < paceRecords && size < paceBytes {
		select {
		case <-due:
			return burst, true
		case m, more := <-p.in:
			if !more {
				return burst, false
			}
			burst, size = append(burst, m), size+messageSize(m)
		}
	}
	return burst, false
}

// pass lets through what comes while the producer waits for the rest of a batch: it goes with it.
func (p *pacer) pass() (records int) {
	over := time.After(flushFrequency)
	for {
		select {
		case <-over:
			return records
		case m, more := <-p.in:
			if !more {
				return records
			}
			records++
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
