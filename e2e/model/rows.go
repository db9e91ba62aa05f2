package model

import (
	"fmt"
	"maps"
	"sort"
	"strings"
)

// Row is a value of a group table. Rows are immutable once stored: change a Clone.
type Row interface {
	Clone() Row
	Merge(Row) Row // commutative, associative, idempotent
	String() string
}

// ChunkerRow says which message ids came at which version, and the latest accepted version.
type ChunkerRow struct {
	Latest  int
	Forward int // highest origin position of a forwarded record
	Forgot  int // highest version whose id was forgotten
	Msgs    map[string]MsgInfo
}

// MsgInfo is what the chunker remembers of a message id.
type MsgInfo struct {
	V       int
	Content string
}

func newChunkerRow() *ChunkerRow { return &ChunkerRow{Msgs: map[string]MsgInfo{}} }

// Clone is a copy that may be changed.
func (r *ChunkerRow) Clone() Row {
	c := *r
	c.Msgs = maps.Clone(r.Msgs)
	return &c
}

// Merge is field by field. What one of the rows has forgotten does not come back.
func (r *ChunkerRow) Merge(o Row) Row {
	b, c := o.(*ChunkerRow), r.Clone().(*ChunkerRow)
	c.Latest, c.Forward, c.Forgot = max(c.Latest, b.Latest), max(c.Forward, b.Forward), max(c.Forgot, b.Forgot)
	for k, v := range b.Msgs {
		if w, ok := c.Msgs[k]; !ok || v.V > w.V { // the later: an id that was forgotten came again
			c.Msgs[k] = v
		}
	}
	maps.DeleteFunc(c.Msgs, func(_ string, m MsgInfo) bool { return m.V <= c.Forgot })
	return c
}
func (r *ChunkerRow) String() string {
	return fmt.Sprintf("latest=%d msgs=%s", r.Latest, mapString(r.Msgs))
}

// DocRow is the document row of the indexer.
type DocRow struct {
	Applied int // offset of the last index record applied (one log per document)
	Fence   int
	Floor   int // highest version whose final was forgotten
	Heard   int // highest version of which the chunker has spoken: it speaks in the order of versions
	Served  Served
	Work    map[VG]Work
	Finals  map[string]Final // by message id
	Due     map[DueRemoval]int
	Done    map[DueRemoval]int // only for mergeByFields: what was deleted from Due must not come back by a merge
}

// Served is what readers filter by. N == 0: nothing (deleted at VG, or never indexed).
type Served struct {
	VG      VG
	N       int
	Content string
}

// Work is a version in work.
type Work struct {
	Msg        string
	N          int // 0 until the manifest came
	Bits       int // confirmed chunks
	Att        int
	Content    string
	RetryCause string
}

// Final is the last word on a message id in a generation.
type Final struct {
	VG     VG
	Status string
	Att    int
	Cause  string // position of the record that caused it: its redelivery says it again
}

// DueRemoval is a removal that the row schedules: everything below VG, or exactly VG.
type DueRemoval struct {
	Exact bool
	VG    VG
}

func newDocRow() *DocRow {
	return &DocRow{Applied: -1, Work: map[VG]Work{}, Finals: map[string]Final{}, Due: map[DueRemoval]int{}, Done: map[DueRemoval]int{}}
}

// Clone is a copy that may be changed.
func (r *DocRow) Clone() Row {
	c := *r
	c.Work, c.Finals, c.Due, c.Done = maps.Clone(r.Work), maps.Clone(r.Finals), maps.Clone(r.Due), maps.Clone(r.Done)
	return &c
}

// mergeByFields is what a merge has to be while the indexer reads two topics (H4 open).
func (r *DocRow) mergeByFields(b *DocRow) *DocRow {
	c := r.Clone().(*DocRow)
	c.Applied, c.Fence, c.Floor = max(r.Applied, b.Applied), max(r.Fence, b.Fence), max(r.Floor, b.Floor)
	c.Heard = max(r.Heard, b.Heard)
	if c.Served.VG.less(b.Served.VG) {
		c.Served = b.Served
	}
	for k, v := range b.Work {
		w := c.Work[k]
		if v.Att > w.Att || v.Att == w.Att && v.RetryCause > w.RetryCause {
			w.Att, w.RetryCause = v.Att, v.RetryCause
		}
		w.Msg, w.Content = max(v.Msg, w.Msg), max(v.Content, w.Content)
		w.N, w.Bits = max(w.N, v.N), w.Bits|v.Bits
		c.Work[k] = w
	}
	for k, v := range b.Finals {
		if w, ok := c.Finals[k]; !ok || w.VG.less(v.VG) || w.VG == v.VG && v.Status+v.Cause < w.Status+w.Cause {
			c.Finals[k] = v
		}
	}
	for k, v := range b.Due {
		c.Due[k] = max(c.Due[k], v)
	}
	for k, v := range b.Done {
		c.Done[k] = max(c.Done[k], v)
	}
	for k, v := range c.Done {
		if at, ok := c.Due[k]; ok && at <= v {
			delete(c.Due, k)
		}
	}
	for _, f := range c.Finals {
		for vg := range c.Work {
			if vg == f.VG {
				delete(c.Work, vg)
			}
		}
	}
	return c
}

// Merge takes the longer prefix: with one log per document a row is a function of a prefix of that log.
func (r *DocRow) Merge(o Row) Row {
	if b := o.(*DocRow); b.Applied > r.Applied {
		return b
	}
	return r
}
func (r *DocRow) String() string {
	return fmt.Sprintf("applied=%d fence=%d served=%v work=%s finals=%s due=%s", r.Applied, r.Fence, r.Served, mapString(r.Work), mapString(r.Finals), mapString(r.Due))
}

// TrackRow is the tracker's row of a message id.
type TrackRow struct {
	Gen    int
	Status string
}

// Clone is a copy that may be changed.
func (r *TrackRow) Clone() Row { c := *r; return &c }

// Merge takes the status that is further on.
func (r *TrackRow) Merge(o Row) Row {
	b := o.(*TrackRow)
	if b.Gen > r.Gen || b.Gen == r.Gen && rank(b.Status) > rank(r.Status) {
		return b
	}
	return r
}
func (r *TrackRow) String() string { return fmt.Sprintf("g%d %s", r.Gen, r.Status) }

// rank orders the statuses of one generation (promise 5). All finals have the same rank.
func rank(status string) int {
	switch status {
	case "":
		return 0
	case "chunked":
		return 1
	case "retrying":
		return 2
	}
	return 9
}

// LetterRow is the dead-letter group's row of a letter.
type LetterRow struct {
	State string // waiting scheduled sent replaying discarded superseded resolved
	Gen   int
	Att   int
	Due   int
	Msg   string
	Raw   *Rec
	Cause string // position of the command that caused State
}

// Clone is a copy that may be changed.
func (r *LetterRow) Clone() Row { c := *r; return &c }

// runs: a replay or a retry is under way.
func (r *LetterRow) runs() bool { return r.State == "replaying" || r.State == "sent" }

// order is how far the letter has come.
func (r *LetterRow) order() int {
	step := map[string]int{"scheduled": 0, "sent": 1, "replaying": 0, "waiting": 8, "discarded": 9, "superseded": 10, "resolved": 11}[r.State]
	if step < 8 {
		step += 2 * r.Att
	}
	return r.Gen*100 + step
}

// Merge takes the state that is further on.
func (r *LetterRow) Merge(o Row) Row {
	b := o.(*LetterRow)
	if b.order() > r.order() {
		return b
	}
	return r
}
func (r *LetterRow) String() string { return fmt.Sprintf("%s g%d a%d", r.State, r.Gen, r.Att) }

func mapString[K comparable, V any](m map[K]V) string {
	var out []string
	for k, v := range m {
		out = append(out, fmt.Sprintf("%v:%v", k, v))
	}
	sort.Strings(out)
	return "{" + strings.Join(out, " ") + "}"
}
