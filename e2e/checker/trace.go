package checker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// traced is one line of a trace: what happened to a message, or what was marked for commit.
type traced struct {
	PID       int    `json:"pid"`
	Session   string `json:"session"`
	Event     string `json:"event"`
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
}

// claim is one topic and partition as one session of one process had it.
type claim struct {
	pid       int
	session   string
	topic     string
	partition int32
}

// claimState is what the trace has told of a claim so far.
type claimState struct {
	unfinished map[int64]bool
	pending    map[int64]int // what is on its way to Kafka on behalf of a message
	finished   map[int64]bool
	marked     int64
}

// CheckTrace reads a trace and checks, at every mark, that all messages delivered below it are finished, and that nothing
// was on its way any more, nor was sent later, on behalf of a finished one (I5).
func CheckTrace(file string) (marks int, violations []string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	t := tracer{claims: map[claim]*claimState{}}
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return t.marks, t.violations, nil // a process may have been killed in the middle of its last line
		}
		if err != nil {
			return 0, nil, err
		}
		var e traced
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return 0, nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		t.apply(e, fmt.Sprintf("%s:%d", filepath.Base(file), n))
	}
}

type tracer struct {
	claims     map[claim]*claimState
	marks      int
	violations []string
}

func (t *tracer) apply(e traced, at string) {
	key := claim{e.PID, e.Session, e.Topic, e.Partition}
	c := t.claims[key]
	if c == nil || e.Event == "claimed" {
		c = &claimState{unfinished: map[int64]bool{}, pending: map[int64]int{}, finished: map[int64]bool{}, marked: -1}
		t.claims[key] = c
	}
	fail := func(format string, args ...any) {
		t.violations = append(t.violations, fmt.Sprintf("I5: %s: %s/%d: %s", at, e.Topic, e.Partition, fmt.Sprintf(format, args...)))
	}
	switch e.Event {
	case "delivered":
		c.unfinished[e.Offset] = true
	case "held":
		c.pending[e.Offset]++
		if c.finished[e.Offset] || e.Offset < c.marked {
			fail("something is sent on behalf of %d, which is finished", e.Offset)
		}
	case "acked":
		c.pending[e.Offset]--
	case "failed": // its send is never acknowledged: it must not be finished
	case "finished":
		if c.pending[e.Offset] != 0 {
			fail("%d is finished while %d sends are not acknowledged", e.Offset, c.pending[e.Offset])
		}
		if !c.unfinished[e.Offset] {
			fail("%d is finished and was not delivered, or is finished twice", e.Offset)
		}
		delete(c.unfinished, e.Offset)
		delete(c.pending, e.Offset)
		c.finished[e.Offset] = true
	case "marked":
		t.marks++
		for offset := range c.unfinished {
			if offset < e.Offset {
				fail("%d is marked while %d is not finished", e.Offset, offset)
			}
		}
		if e.Offset < c.marked {
			fail("%d is marked after %d", e.Offset, c.marked)
		}
		c.marked = max(c.marked, e.Offset)
		for offset := range c.finished {
			if offset < e.Offset {
				delete(c.finished, offset)
			}
		}
	}
}
