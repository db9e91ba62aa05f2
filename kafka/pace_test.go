package kafka

import (
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"
)

// handedOn is a message with the time at which a pacer handed it on, since the test began.
type handedOn struct {
	name string
	at   time.Duration
}

// pace sends messages at their times through a pacer, in a time of its own, and returns what came out.
func pace(t *testing.T, sends []handedOn, size int) (out []handedOn) {
	t.Helper()
	synctest.Test(t, func(*testing.T) { out = paced(sends, size) })
	return out
}

func paced(sends []handedOn, size int) (out []handedOn) {
	began := time.Now()
	handed := make(chan *sarama.ProducerMessage)
	p := newPacer(handed)
	go func() {
		defer close(p.in)
		for _, s := range sends {
			<-time.After(s.at - time.Since(began))
			p.in <- &sarama.ProducerMessage{Key: sarama.StringEncoder(s.name), Value: sarama.ByteEncoder(make([]byte, size))}
		}
	}()
	go func() {
		defer close(handed)
		p.run()
	}()
	for m := range handed {
		out = append(out, handedOn{string(m.Key.(sarama.StringEncoder)), time.Since(began)})
	}
	return out
}

func every(d time.Duration, n int) []handedOn {
	out := make([]handedOn, n)
	for i := range out {
		out[i] = handedOn{strconv.Itoa(i), time.Duration(i) * d}
	}
	return out
}

// A record on its own, and the few that follow from it, wait for nothing.
func TestALoneRecordIsHandedOnAtOnce(t *testing.T) {
	sends := every(10*time.Millisecond, paceBursts)
	if got := pace(t, sends, 100); !slices.Equal(got, sends) {
		t.Errorf("%v instead of %v", got, sends)
	}
}

// bursts are how many times something was handed on.
func bursts(out []handedOn) (n int) {
	last := -2 * flushFrequency
	for _, m := range out {
		if m.at > last+flushFrequency {
			n++
		}
		last = m.at
	}
	return n
}

// Who sends all the time waits for others, but never for long; who has paused sends at once again.
func TestManyRecordsWaitForEachOther(t *testing.T) {
	sends := every(10*time.Millisecond, 200)
	after := handedOn{"after a pause", 5 * time.Second}
	out := pace(t, append(sends, after), 100)
	if len(out) != len(sends)+1 {
		t.Fatalf("%d of %d messages", len(out), len(sends)+1)
	}
	for i, m := range out[:len(sends)] {
		if wait := m.at - sends[i].at; wait < 0 || wait > paceMin {
			t.Errorf("message %d waited %v", i, wait)
		}
	}
	// They take 2 s; the first twelve turns are free.
	if n := bursts(out[:len(sends)]); n > int(2*time.Second/paceMin)+paceBursts+1 {
		t.Errorf("%d bursts", n)
	}
	if got := out[len(sends)]; got != after {
		t.Errorf("%v after a pause", got)
	}
}

// The more there are the longer they wait, up to a tenth of a second; when there are fewer again, they do not.
func TestTheWaitGrowsWithWhatIsSent(t *testing.T) {
	var sends []handedOn
	for i := range 15_000 { // 3 s
		sends = append(sends, handedOn{strconv.Itoa(i), time.Duration(i) * 200 * time.Microsecond})
	}
	for i := range 100 { // 1 s
		sends = append(sends, handedOn{"slow " + strconv.Itoa(i), 3*time.Second + time.Duration(i)*10*time.Millisecond})
	}
	out := pace(t, sends, 100)
	if len(out) != len(sends) {
		t.Fatalf("%d of %d messages", len(out), len(sends))
	}
	for i, m := range out {
		wait, most := m.at-sends[i].at, paceMax
		if sends[i].at > 3*time.Second+paceMax {
			most = paceMin
		}
		if wait < 0 || wait > most {
			t.Errorf("message %d, sent after %v, waited %v", i, sends[i].at, wait)
		}
	}
	if n := bursts(out[5000:15_000]); n > int(2*time.Second/paceMax)+1 {
		t.Errorf("%d bursts in 2 s", n)
	}
}

// However busy a sender was: after a quarter of a second the next records go at once again.
func TestAPauseEndsTheWaiting(t *testing.T) {
	busy := every(200*time.Microsecond, 10_000) // 2 s
	var after []handedOn
	for i := range paceBursts {
		after = append(after, handedOn{"after " + strconv.Itoa(i), 2*time.Second + paceMax + 250*time.Millisecond + time.Duration(i)*10*time.Millisecond})
	}
	out := pace(t, append(busy, after...), 100)
	if got := out[len(busy):]; !slices.Equal(got, after) {
		t.Errorf("%v instead of %v", got, after)
	}
}

// What is enough for a request waits for nothing else, and takes nobody's turn.
func TestAFullBurstIsHandedOnAtOnce(t *testing.T) {
	for what, c := range map[string]struct{ messages, size int }{
		"records": {50 * paceRecords, 10},
		"bytes":   {200, paceBytes / 2},
	} {
		t.Run(what, func(t *testing.T) {
			out := pace(t, every(0, c.messages), c.size)
			if last := out[len(out)-1].at; len(out) != c.messages || last > paceMax+flushFrequency {
				t.Errorf("%d of %d messages, the last after %v", len(out), c.messages, last)
			}
		})
	}
}

// Whatever comes when: everything is handed on, once, in order, and nothing waits for longer than a turn.
func TestPacerKeepsOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		gaps := rapid.SliceOfN(rapid.IntRange(0, 80), 1, 400).Draw(rt, "gaps in ms")
		if rapid.Bool().Draw(rt, "busy") {
			for i := range gaps {
				gaps[i] /= 20
			}
		}
		size := rapid.SampledFrom([]int{1, 1000, paceBytes}).Draw(rt, "size")
		var sends []handedOn
		var at time.Duration
		for i, g := range gaps {
			at += time.Duration(g) * time.Millisecond
			sends = append(sends, handedOn{strconv.Itoa(i), at})
		}
		out := pace(t, sends, size)
		if len(out) != len(sends) {
			rt.Fatalf("%d of %d messages", len(out), len(sends))
		}
		for i, m := range out {
			if wait := m.at - sends[i].at; m.name != sends[i].name || wait < 0 || wait > paceMax {
				rt.Fatalf("message %d: %v instead of %v", i, m, sends[i])
			}
		}
	})
}
