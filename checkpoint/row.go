package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// Message is what recognition needs to know of a message. A stage fills it in from its stage.Message.
type Message struct {
	// ID names the submission, scoped to the key: a producer that sends again uses the same one. Any bytes will do. "" means
	// that there is none: the message is then recognised by its position, and one that is sent again is a new one.
	ID string
	// Topic and Offset are the record's. The partition does not matter: a key belongs to one.
	Topic  string
	Offset int64
	// At is the record's timestamp.
	At time.Time
	// Committed is the offset up to which the message's topic and partition is committed; below zero: not known.
	Committed int64
}

// Position in a topic. Epoch counts how often the topic was made anew; see Rules.Epoch.
type Position struct {
	Epoch  int   `json:"epoch,omitempty"`
	Offset int64 `json:"offset"`
}

// Compare orders positions of one topic as they stand in its log.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Epoch, q.Epoch), cmp.Compare(p.Offset, q.Offset))
}

func (p Position) next() Position { return Position{p.Epoch, p.Offset + 1} }

func later(p, q Position) Position {
	if p.Compare(q) < 0 {
		return q
	}
	return p
}

// Mark is what is remembered of one message.
type Mark[O any] struct {
	Position
	// At is the record's timestamp in Unix milliseconds.
	At int64 `json:"at"`
	// Outcome is what followed from the message; outputs are made from it, the first time and every time.
	Outcome O `json:"outcome"`
}

// Log is what is remembered of one input topic.
type Log[O any] struct {
	// Next is the position behind the highest one that was applied.
	Next Position `json:"next"`
	// Floor: messages below it may have been forgotten, and are committed. The zero Floor is below everything.
	Floor Position `json:"floor,omitzero"`
	// Seen are the messages that are remembered, by id. None is below the floor.
	Seen map[string]Mark[O] `json:"seen,omitempty"`
}

// Row is the row of one key: the state S, and the messages that it came from with their outcomes O. Rules makes new ones; a
// row is never changed. A nil *Row is that of a key that has seen nothing.
type Row[S, O any] struct {
	State S `json:"state"`
	// Count of the messages that were applied.
	Count int64 `json:"count"`
	// Logs by topic.
	Logs map[string]Log[O] `json:"logs"`
}

// clone copies what with changes: the maps, but not what marks and state refer to.
func (r *Row[S, O]) clone(topic string) *Row[S, O] {
	if r == nil {
		return &Row[S, O]{Logs: map[string]Log[O]{topic: {Seen: map[string]Mark[O]{}}}}
	}
	c := &Row[S, O]{State: r.State, Count: r.Count, Logs: maps.Clone(r.Logs)}
	if c.Logs == nil {
		c.Logs = map[string]Log[O]{}
	}
	log := c.Logs[topic]
	if log.Seen = maps.Clone(log.Seen); log.Seen == nil {
		log.Seen = map[string]Mark[O]{}
	}
	c.Logs[topic] = log
	return c
}

// find returns what is remembered of a message: by its position, whatever its id was then (a release may read ids in another
// way), else by its id, in its own topic first.
func (r *Row[S, O]) find(id, topic string, at Position) (mark Mark[O], here, known bool) {
	if r == nil {
		return mark, false, false
	}
	log := r.Logs[topic]
	mark, known = log.Seen[id]
	if known && mark.Position == at {
		return mark, true, true
	}
	if at.Compare(log.Next) < 0 {
		for _, m := range log.Seen {
			if m.Position == at {
				return m, true, true
			}
		}
	}
	if known {
		return mark, false, true
	}
	// Of several, one that every process picks: maps have no order.
	best := ""
	for other, log := range r.Logs {
		if m, ok := log.Seen[id]; ok && (!known || other < best) {
			mark, known, best = m, true, other
		}
	}
	return mark, false, known
}

// MaxIDBytes is how long an id may be to stand in a row as it is; a longer one is remembered by its hash.
const MaxIDBytes = 256

const (
	hashed   = "sha256:"
	position = "at:"
)

// key is the id as the row has it. Every id has one, and no two have the same: ids that would not survive an encoding (they
// are no UTF-8), that are too long, or that look like one of ours are replaced by their hash.
func (m Message) key(at Position) string {
	if m.ID == "" {
		return fmt.Sprintf("%s%s@%d-%d", position, m.Topic, at.Epoch, at.Offset)
	}
	if len(m.ID) <= MaxIDBytes && utf8.ValidString(m.ID) && !strings.HasPrefix(m.ID, hashed) && !strings.HasPrefix(m.ID, position) {
		return m.ID
	}
	sum := sha256.Sum256([]byte(m.ID))
	return hashed + hex.EncodeToString(sum[:])
}
