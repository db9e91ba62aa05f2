package stagetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/stage"
)

// sent is a record that was acknowledged. stream names topic and key, within which order counts; id is all of it. What a
// timer sends comes when it comes.
type sent struct {
	out        stage.Output
	stream, id int
	timer      bool
}

// names are short for long texts.
type names map[string]int

func (n names) of(text string) int {
	id, known := n[text]
	if !known {
		id = len(n)
		n[text] = id
	}
	return id
}

func (r *runner) sending(outs []stage.Output) []sent {
	list := make([]sent, len(outs))
	for i, out := range outs {
		var b strings.Builder
		field(&b, []byte(out.Topic))
		field(&b, out.Key)
		stream := r.names.of(b.String())
		field(&b, out.Value)
		for _, h := range out.Headers {
			field(&b, h.Key)
			field(&b, h.Value)
		}
		list[i] = sent{out: out, stream: stream, id: r.names.of(b.String())}
	}
	return list
}

// field writes bytes so that no two lists of fields look the same; null is not empty.
func field(b *strings.Builder, value []byte) {
	if value == nil {
		b.WriteString("-;")
		return
	}
	fmt.Fprintf(b, "%d;", len(value))
	b.Write(value)
}

// difference between what was sent without and with a crash.
type difference struct {
	missing, foreign []sent
	disordered       []int // streams
}

// compare looks at each stream: the same records must be there, and the last time that each was sent in the same order.
func compare(want, got []sent) difference {
	var d difference
	wanted, sentIDs := map[int]bool{}, map[int]bool{}
	for _, s := range want {
		wanted[s.id] = true
	}
	for _, s := range got {
		if !sentIDs[s.id] && !wanted[s.id] {
			d.foreign = append(d.foreign, s)
		}
		sentIDs[s.id] = true
	}
	for _, s := range want {
		if !sentIDs[s.id] {
			sentIDs[s.id] = true // name it once
			d.missing = append(d.missing, s)
		}
	}
	if len(d.missing)+len(d.foreign) > 0 {
		return d
	}
	order, other := lastTimes(want), lastTimes(got)
	for stream, ids := range order {
		if !slices.Equal(ids, other[stream]) {
			d.disordered = append(d.disordered, stream)
		}
	}
	slices.Sort(d.disordered)
	return d
}

// lastTimes lists the records of each stream in the order in which they were sent last.
func lastTimes(list []sent) map[int][]int {
	streams, seen := map[int][]int{}, map[int]bool{}
	for _, s := range slices.Backward(list) {
		if !s.timer && !seen[s.id] {
			seen[s.id] = true
			streams[s.stream] = append(streams[s.stream], s.id)
		}
	}
	return streams
}

// equalEffects tells whether two calls have led to the same: per stream in the same order, since topics and keys have none
// between them.
func (r *runner) equalEffects(a, b effect) bool {
	if !equalStreams(a.outputs, b.outputs) || !equalStreams(a.said, b.said) || len(a.rows) != len(b.rows) {
		return false
	}
	for i, w := range a.rows {
		if b.rows[i].at != w.at || !r.same(w.at, w.value, b.rows[i].value) {
			return false
		}
	}
	return true
}

func equalStreams(a, b []sent) bool {
	if len(a) != len(b) {
		return false
	}
	streams := map[int][]int{}
	for _, s := range a {
		streams[s.stream] = append(streams[s.stream], s.id)
	}
	for _, s := range b {
		next := streams[s.stream]
		if len(next) == 0 || next[0] != s.id {
			return false
		}
		streams[s.stream] = next[1:]
	}
	return true
}
