package engine

import (
	"sync"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// gate is rule 1 of the delivery contract for one claimed topic and partition: it keeps the raw records in flight, bounds
// them in number and in bytes, and says how far the log is done without a gap. It counts delivered records, not offsets:
// compaction, transaction markers and aborted records leave holes that nobody will ever finish.
//
// A record is delivered, then finished or abandoned. An abandoned one is never committed by this claim: whoever owns the
// partition next gets it again. All methods may be called concurrently.
type gate struct {
	mu       sync.Mutex
	room     *sync.Cond
	queue    []gateEntry
	head     int
	bytes    int
	closed   bool
	mark     int64 // next offset to commit; -1 until something is
	last     int64 // last offset delivered; -1 before the first
	maxCount int
	maxBytes int
	until    int64        // end when the first record came; 0 before it
	end      func() int64 // the offset behind the last record of the log, as far as this client knows
}

type gateEntry struct {
	record *sarama.ConsumerMessage
	offset int64
	size   int
	state  entryState
	again  bool // an owner before this claim may have had it in flight
}

type entryState uint8

const (
	inFlight entryState = iota
	finished
	abandoned
)

// recordOverhead is what one record in flight costs beside its bytes: the structures of sarama, goka and this gate.
const recordOverhead = 512

func newGate(committed int64, maxCount, maxBytes int) *gate {
	g := &gate{mark: committed, last: -1, maxCount: maxCount, maxBytes: maxBytes, end: func() int64 { return 0 }}
	g.room = sync.NewCond(&g.mu)
	return g
}

func recordSize(m *sarama.ConsumerMessage) int {
	n := recordOverhead + len(m.Key) + len(m.Value)
	for _, h := range m.Headers {
		n += len(h.Key) + len(h.Value)
	}
	return n
}

// deliver takes a record into flight; it waits while the bounds are reached, and returns false once the gate is closed.
// One record always fits, however large it is.
func (g *gate) deliver(m *sarama.ConsumerMessage) bool {
	size := recordSize(m)
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.closed && g.waiting() > 0 && (g.waiting() >= g.maxCount || g.bytes+size > g.maxBytes) {
		g.room.Wait()
	}
	if g.closed {
		return false
	}
	if g.until == 0 {
		g.until = max(g.end(), m.Offset+1)
	}
	// How far an owner before this claim has come nobody knows: what it had committed may be far behind what it had done.
	g.queue = append(g.queue, gateEntry{record: m, offset: m.Offset, size: size, again: m.Offset < g.until})
	g.bytes += size
	g.last = m.Offset
	return true
}

func (g *gate) waiting() int { return len(g.queue) - g.head }

// close lets a waiting deliver return. Records in flight may still be finished.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	g.room.Broadcast()
}

// record returns the raw record in flight at the offset, nil if there is none, and whether an owner before this claim may have
// had it in flight too.
func (g *gate) record(offset int64) (m *sarama.ConsumerMessage, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.find(offset); i >= 0 {
		return g.queue[i].record, g.queue[i].again
	}
	return nil, false
}

// finish marks the record at the offset done and calls advance with the next offset to commit if the contiguous prefix
// has grown. advance runs under the gate's lock, so that marks never go back. An abandoned record stays abandoned.
func (g *gate) finish(offset int64, advance func(next int64)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := g.find(offset)
	if i < 0 || g.queue[i].state != inFlight {
		return
	}
	g.queue[i].state = finished
	g.queue[i].record = nil
	g.bytes -= g.queue[i].size
	moved := false
	for g.head < len(g.queue) && g.queue[g.head].state == finished {
		g.mark = g.queue[g.head].offset + 1
		g.head++
		moved = true
	}
	g.shrink()
	if mutant.Active == mutant.UnorderedCommit {
		g.mark, moved = max(g.mark, offset+1), true
	}
	if moved {
		advance(g.mark)
	}
	g.room.Broadcast()
}

// abandon gives the record at the offset up: the mark never passes it in this claim.
func (g *gate) abandon(offset int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := g.find(offset); i >= 0 && g.queue[i].state == inFlight {
		g.queue[i].state = abandoned
	}
}

// stats returns the number of records in flight, how many of the delivered ones cannot be committed yet, and the next
// offset to commit.
func (g *gate) stats() (flying, gap int, mark, last int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, e := range g.queue[g.head:] {
		if e.state == inFlight {
			flying++
		}
	}
	return flying, g.waiting(), g.mark, g.last
}

func (g *gate) committed() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.mark
}

// find returns the index of the entry with the offset, -1 if it is not in flight. Offsets are delivered in order.
func (g *gate) find(offset int64) int {
	lo, hi := g.head, len(g.queue)
	for lo < hi {
		mid := (lo + hi) / 2
		if g.queue[mid].offset < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo == len(g.queue) || g.queue[lo].offset != offset {
		return -1
	}
	return lo
}

// shrink moves the entries to the front once most of the queue is behind the head.
func (g *gate) shrink() {
	if g.head < 1024 || g.head*2 < len(g.queue) {
		return
	}
	n := copy(g.queue, g.queue[g.head:])
	clear(g.queue[n:])
	g.queue, g.head = g.queue[:n], 0
}
