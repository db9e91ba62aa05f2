package checker

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"
)

// letter is a record of the dead-letters topic, as a tool reads it: the first headers are the original's.
type letter struct {
	record     *kgo.Record
	topic      string
	partition  int32
	offset     int64
	generation int
	reason     string
	original   []kgo.RecordHeader
	key        []byte
}

func readLetter(r *kgo.Record) (l letter, err error) {
	l.record = r
	if len(r.Headers) == 0 || r.Headers[len(r.Headers)-1].Key != "waymark-original-headers" {
		return l, fmt.Errorf("letter %s: its last header does not tell how many are the original's", r.Key)
	}
	n, err := strconv.Atoi(string(r.Headers[len(r.Headers)-1].Value))
	if err != nil || n < 0 || n > len(r.Headers) {
		return l, fmt.Errorf("letter %s: %q headers", r.Key, r.Headers[len(r.Headers)-1].Value)
	}
	l.original = r.Headers[:n]
	values := map[string][]byte{}
	for _, h := range r.Headers[n:] {
		values[h.Key] = h.Value
	}
	partition, err1 := strconv.ParseInt(string(values["__connect.errors.partition"]), 10, 32)
	offset, err2 := strconv.ParseInt(string(values["__connect.errors.offset"]), 10, 64)
	generation, err3 := strconv.Atoi(string(values["waymark-generation"]))
	if err1 != nil || err2 != nil || err3 != nil {
		return l, fmt.Errorf("letter %s: no position or generation: %w", r.Key, errors.Join(err1, err2, err3))
	}
	l.topic, l.partition, l.offset, l.generation = string(values["__connect.errors.topic"]), int32(partition), offset, generation
	l.reason, l.key = string(values["waymark-reason"]), values["waymark-key"]
	return l, nil
}

// sameRecord: the letter has the key, value and headers of the record, byte for byte.
func (l letter) sameRecord(r *kgo.Record) error {
	switch {
	case !bytes.Equal(l.key, r.Key) || (l.key == nil) != (r.Key == nil):
		return fmt.Errorf("I6: letter %s has the key %q, the record %q", l.record.Key, l.key, r.Key)
	case !bytes.Equal(l.record.Value, r.Value) || (l.record.Value == nil) != (r.Value == nil):
		return fmt.Errorf("I6: the value of letter %s is not that of the record", l.record.Key)
	case !slices.EqualFunc(l.original, r.Headers, func(a, b kgo.RecordHeader) bool {
		return a.Key == b.Key && bytes.Equal(a.Value, b.Value)
	}):
		return fmt.Errorf("I6: the headers of letter %s are %q, the record's %q", l.record.Key, l.original, r.Headers)
	}
	return nil
}

// openStates are the states of a letter whose version is dead.
var openStates = []string{"waiting", "discarded"}

// checkLetters: every version that died has one letter with its bytes, and no other version has an open one (I6).
func (c *check) checkLetters() {
	records := map[[3]int64]*kgo.Record{} // document records by partition and offset
	for _, r := range c.log[c.topic("documents")] {
		records[[3]int64{int64(r.Partition), r.Offset}] = r
	}
	ended := map[string]bool{} // letters of versions that are dead now
	for _, s := range c.model.Submissions {
		if c.status(s) == "dead" {
			ended[foreign(s.Record, c.target.Epoch)] = true
		}
	}
	written := map[string]map[int]bool{}
	for _, r := range c.log[c.topic("dead-letters")] {
		if r.Value == nil && len(r.Headers) == 0 {
			continue // taken away
		}
		l, err := readLetter(r)
		if err != nil {
			c.fail("I6: %v", err)
			continue
		}
		id := string(r.Key)
		original := records[[3]int64{int64(l.partition), l.offset}]
		switch {
		case original == nil || l.topic != c.topic("documents"):
			c.fail("I6: letter %s is of %s/%d@%d, which is not in the log", id, l.topic, l.partition, l.offset)
		default:
			c.failed(l.sameRecord(original))
		}
		if written[id] == nil {
			written[id] = map[int]bool{}
		}
		written[id][l.generation] = true
	}
	shown := map[string]int{}
	for _, l := range c.letters {
		shown[l.ID]++
		open := slices.Contains(openStates, l.State)
		switch {
		case ended[l.ID] && !open:
			c.fail("I6: %s of %s is dead, but its letter is %s", l.MessageID, l.DocumentID, l.State)
		case !ended[l.ID] && l.State != "resolved" && l.State != "superseded":
			c.fail("I6: letter %s of %s is %s, but its version is not dead", l.ID, l.DocumentID, l.State)
		}
	}
	for id := range ended {
		if shown[id] != 1 {
			c.fail("I6: the API shows %d letters %s", shown[id], id)
		}
		if len(written[id]) == 0 {
			c.fail("I6: no letter %s in the topic", id)
		}
	}
	c.report.Letters = len(ended)
}
