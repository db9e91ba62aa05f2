package engine

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"pgregory.net/rapid"
)

func record(offset int64, size int) *sarama.ConsumerMessage {
	return &sarama.ConsumerMessage{Offset: offset, Value: make([]byte, size)}
}

// The mark is the end of the contiguous prefix of delivered records that are finished, whatever the order in which they
// finish, whatever gaps the log has, and whatever is abandoned; it never goes back.
func TestGateMarksTheContiguousPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := newGate(0, 1<<20, 1<<30)
		const (
			flying = iota
			done
			given
		)
		var offsets []int64
		state := map[int64]int{}
		next, mark := int64(0), int64(0)
		model := func() int64 {
			m := int64(0)
			for _, o := range offsets {
				if state[o] != done {
					break
				}
				m = o + 1
			}
			return m
		}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				next += rapid.Int64Range(1, 5).Draw(t, "gap")
				if !g.deliver(record(next, 1)) {
					t.Fatal("not delivered")
				}
				offsets = append(offsets, next)
			case 2:
				if len(offsets) == 0 {
					continue
				}
				o := rapid.SampledFrom(offsets).Draw(t, "finished")
				moved := false
				g.finish(o, func(m int64) {
					if m <= mark {
						t.Fatalf("the mark went from %d to %d", mark, m)
					}
					mark, moved = m, true
				})
				if state[o] == flying {
					state[o] = done
				}
				if want := model(); mark != want {
					t.Fatalf("mark %d (moved: %v), want %d", mark, moved, want)
				}
			case 3:
				if len(offsets) == 0 {
					continue
				}
				o := rapid.SampledFrom(offsets).Draw(t, "abandoned")
				g.abandon(o)
				if state[o] == flying {
					state[o] = given
				}
			}
		}
		n := 0
		for _, o := range offsets {
			if state[o] == flying {
				n++
			}
		}
		if f, _, _, _ := g.stats(); f != n {
			t.Fatalf("%d in flight, want %d", f, n)
		}
	})
}

func TestGateIgnoresWhatItHasNotDelivered(t *testing.T) {
	g := newGate(5, 10, 1<<20)
	g.deliver(record(7, 1))
	g.finish(6, func(int64) { t.Error("an offset that was never delivered moved the mark") })
	g.abandon(99)
	before, _ := g.record(6)
	delivered, _ := g.record(7)
	if before != nil || delivered == nil || g.committed() != 5 {
		t.Error("the gate knows what it was not given, or not what it was")
	}
	g.finish(7, func(m int64) {
		if m != 8 {
			t.Errorf("mark %d, want 8", m)
		}
	})
}

// Delivery waits at the bounds and goes on when something finishes; one record fits however large it is.
func TestGateBoundsWhatIsInFlight(t *testing.T) {
	for name, g := range map[string]*gate{"count": newGate(0, 2, 1<<30), "bytes": newGate(0, 100, 3*recordOverhead)} {
		t.Run(name, func(t *testing.T) {
			size := 1
			if name == "bytes" {
				size = recordOverhead / 2
			}
			if !g.deliver(record(0, size)) || !g.deliver(record(1, size)) {
				t.Fatal("two do not fit")
			}
			third := make(chan bool)
			go func() { third <- g.deliver(record(2, size)) }()
			select {
			case <-third:
				t.Fatal("a third one is in flight")
			default:
			}
			g.finish(0, func(int64) {})
			if !<-third {
				t.Fatal("not delivered after there was room")
			}
			fourth := make(chan bool)
			go func() { fourth <- g.deliver(record(3, size)) }()
			g.close()
			if <-fourth {
				t.Fatal("delivered through a closed gate")
			}
		})
	}
	huge := newGate(0, 100, 10)
	if !huge.deliver(record(0, 1<<20)) {
		t.Fatal("a record above the bound was never let in")
	}
}

// An abandoned record's partition is read again from there, so nothing behind it may be committed.
func TestGateNeverPassesWhatWasAbandoned(t *testing.T) {
	g := newGate(0, 10, 1<<20)
	for o := range int64(3) {
		g.deliver(record(o, 1))
	}
	g.abandon(1)
	g.finish(2, func(int64) { t.Error("the mark moved") })
	g.finish(1, func(int64) { t.Error("an abandoned record was finished") })
	moved := int64(-1)
	g.finish(0, func(m int64) { moved = m })
	if moved != 1 {
		t.Errorf("mark %d, want 1", moved)
	}
}

// What an owner before may have begun ends with the log as it was when the first record of the claim came; how much it had
// committed says nothing.
func TestGateKnowsWhatMayComeAgain(t *testing.T) {
	for name, c := range map[string]struct {
		end  int64
		want string
	}{"within the log": {9, "[true true true false]"}, "end of the log": {6, "[true false false false]"}, "end not known": {0, "[true false false false]"}} {
		t.Run(name, func(t *testing.T) {
			g := newGate(0, 2, 1<<20)
			g.end = func() int64 { return c.end }
			var again []bool
			for _, o := range []int64{5, 7, 8, 11} {
				g.deliver(record(o, 1))
				g.end = func() int64 { return 1000 }
				_, is := g.record(o)
				again = append(again, is)
				g.finish(o, func(int64) {})
			}
			if _, is := g.record(5); fmt.Sprint(again) != c.want || is {
				t.Errorf("%v, want %s", again, c.want)
			}
		})
	}
}
