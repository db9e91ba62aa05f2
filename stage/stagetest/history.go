package stagetest

import (
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/stage"
)

// Step of a history: a message, or Settled.
type Step struct {
	record  stage.Record
	settled bool
	err     error
}

// Message is a message of the topic with the value v. Where nothing else is said it stands in partition 0, at the next
// offset, a second after the one before.
func Message[T any](topic stage.Topic[T], key string, v T, headers ...stage.Header) Step {
	out := topic.Record(key, v, headers...)
	return Step{record: stage.Record{Topic: out.Topic, Key: out.Key, Value: out.Value, Headers: headers}, err: out.Err}
}

// Tombstone is a message with a null value.
func Tombstone(topic, key string) Step {
	return Step{record: stage.Record{Topic: topic, Key: []byte(key)}}
}

// Raw is a message as it stands in the log, decodable or not.
func Raw(r stage.Record) Step { return Step{record: r} }

// Sending is the message that an output becomes.
func Sending(out stage.Output) Step {
	return Step{record: stage.Record{Topic: out.Topic, Key: out.Key, Value: out.Value, Headers: out.Headers}, err: out.Err}
}

// Settled says that what follows was caused by what was said so far: no crash after it can lose that.
func Settled() Step { return Step{settled: true} }

// On puts the message into a partition.
func (s Step) On(partition int32) Step {
	s.record.Partition = partition
	return s
}

// Offset puts the message at an offset, if that is not below the next one of its log.
func (s Step) Offset(offset int64) Step {
	s.record.Offset = offset
	return s
}

// At gives the message a timestamp.
func (s Step) At(t time.Time) Step {
	s.record.Timestamp = t
	return s
}

// Record of the step as it says it, for tests that call a handler themselves.
func (s Step) Record() stage.Record { return s.record }

// firstTime is the timestamp of a history's first message.
var firstTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// unit is what the stage works on at once: a message, a batch, or a row whose time has come.
type unit struct {
	in      *input
	records []stage.Record
	fires   *rowKey // a timer, if not nil
	settled bool    // nothing that was said before this unit can be lost in it
}

// history is what a run is made of, and where the logs end.
type history struct {
	units []*unit
	next  map[string]int64 // offset by "topic/partition"
	count int
}

func (k *Kit) history(steps []Step) (*history, error) {
	h := &history{next: map[string]int64{}}
	settled := true
	for i, s := range steps {
		if s.settled {
			settled = true
			continue
		}
		if s.err != nil {
			return nil, fmt.Errorf("step %d cannot be encoded: %w", i, s.err)
		}
		in := k.inputs[s.record.Topic]
		if in == nil {
			return nil, fmt.Errorf("step %d is a message of %q, which is no input", i, s.record.Topic)
		}
		h.add(in, s.record, settled)
		settled = false
	}
	return h, nil
}

func (h *history) add(in *input, r stage.Record, settled bool) {
	log := fmt.Sprintf("%s/%d", r.Topic, r.Partition)
	r.Offset = max(r.Offset, h.next[log])
	h.next[log] = r.Offset + 1
	if r.Timestamp.IsZero() {
		r.Timestamp = firstTime.Add(time.Duration(h.count) * time.Second)
	}
	h.count++
	if last := len(h.units) - 1; in.work != nil && last >= 0 && !settled {
		u := h.units[last]
		if u.in == in && u.records[0].Partition == r.Partition {
			u.records = append(u.records, r)
			return
		}
	}
	h.units = append(h.units, &unit{in: in, records: []stage.Record{r}, settled: settled})
}

// String names a unit for people.
func (u *unit) String() string {
	if u.fires != nil {
		return fmt.Sprintf("the timer of the row %q", u.fires.key)
	}
	r := u.records[0]
	what := fmt.Sprintf("%s/%d@%d, key %q", r.Topic, r.Partition, r.Offset, r.Key)
	if n := len(u.records); u.in.work != nil {
		return fmt.Sprintf("the batch of %d from %s", n, what)
	}
	return "the message " + what
}
