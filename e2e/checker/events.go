package checker

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag/wire"
)

// author is the stage that alone says final statuses.
const author = "indexer"

// checkEvents: in the whole log of events no submission has two different final statuses in one generation, and all of them
// have one author (I1). The
// events have no other form than the product's own, so its codec reads them.
func (c *check) checkEvents() {
	codecs := wire.NewCodecs(time.Now)
	finals := map[string]string{}
	for _, r := range c.log[c.topic("events")] {
		e, err := codecs.Event.Decode(today(r.Value))
		if err != nil {
			c.fail("I1: the event %s/%d@%d cannot be read: %v", r.Topic, r.Partition, r.Offset, err)
			continue
		}
		c.report.Events++
		if !final(string(e.Status)) {
			continue
		}
		id := fmt.Sprintf("%q of %q in generation %d", e.MessageID, e.DocumentID, e.Revision.Generation)
		if old, ok := finals[id]; ok && old != string(e.Status) {
			c.fail("I1: %s has two finals: %s and %s", id, old, e.Status)
		}
		finals[id] = string(e.Status)
		if e.Stage != author {
			c.fail("I1: the %s says that %s is %s: finals are the %s's to say", e.Stage, id, e.Status, author)
		}
	}
}

// today is a value of the next format as one of today's: in a run of two releases at once the payloads are the same. The layout
// of the envelope (package codecs) is fixed: a magic byte, the format, the time, and at 10 the checksum of all the rest.
func today(b []byte) []byte {
	const formatAt, checksumAt, overhead = 1, 10, 14
	if len(b) < overhead || b[formatAt] != 2 {
		return b
	}
	b = slices.Clone(b)
	b[formatAt] = 1
	castagnoli := crc32.MakeTable(crc32.Castagnoli)
	binary.BigEndian.PutUint32(b[checksumAt:], crc32.Update(crc32.Checksum(b[:checksumAt], castagnoli), castagnoli, b[overhead:]))
	return b
}

func final(status string) bool { return rank(status) == 9 }

// rank orders the statuses of one generation.
func rank(status string) int {
	switch status {
	case "accepted":
		return 1
	case "chunked":
		return 2
	case "embedded":
		return 3
	case "retrying":
		return 4
	case "indexed", "unchanged", "superseded", "deleted", "dead":
		return 9
	}
	return 0
}

// checkTables: a fresh recovery of a table ends with the row that the owner acted on; a process that was stopped and woke
// up has not put an older row behind it (I7, rule 12). Only the document rows say how far they are.
func (c *check) checkTables() {
	codecs := wire.NewCodecs(time.Now)
	highest, last := map[string]int64{}, map[string]int64{}
	for _, r := range c.log[c.prefix()+"-indexer-table"] {
		row, err := codecs.DocumentRow.Decode(today(r.Value))
		if err != nil {
			c.fail("I7: the row %s/%d@%d cannot be read: %v", r.Topic, r.Partition, r.Offset, err)
			continue
		}
		key := string(r.Key)
		last[key] = int64(row.Applied)
		if last[key] < highest[key] {
			c.report.LateRows++
		}
		highest[key] = max(highest[key], last[key])
	}
	for key, applied := range last {
		if applied < highest[key] {
			c.fail("I7: the last row of %q in the table is that of %d, there was one of %d", key, applied, highest[key])
		}
	}
}
