package model

import (
	"fmt"
	"strings"
)

// timers: due removals of the indexer, due retries of the dead-letter group. Both stand in rows, so that the next owner finds them.
func (s *Sim) timers(pc *PC, add func(int, func())) {
	switch pc.pod.group.table {
	case TabIndexer:
		for _, doc := range sortedKeys(pc.disk.rows) {
			due, at, ok := s.firstDue(doc, pc.disk.rows[doc].(*DocRow).Due)
			key := fmt.Sprint(doc, due, at)
			if !ok || pc.timers[key] {
				continue
			}
			add(aTimer, func() {
				pc.timers[key] = true
				s.start(pc, &Rec{Key: doc, Doc: doc, Due: due, N: at}, -1, 0, nil, handleDueRemoval)
			})
		}
	case TabLetters:
		for _, id := range sortedKeys(pc.disk.rows) {
			l := pc.disk.rows[id].(*LetterRow)
			rec := &Rec{Kind: "due", Key: id, Msg: l.Msg, VG: VG{0, l.Gen}, Att: l.Att}
			key := fmt.Sprint(id, l.Gen, l.Att)
			if l.State != "scheduled" || l.Due > s.now || pc.timers[key] {
				continue
			}
			_, _ = fmt.Sscanf(id[len("documents/"):], "d%d@%d", new(int), &rec.VG.V)
			rec.Doc = strings.Split(id[len("documents/"):], "@")[0]
			add(aTimer, func() {
				pc.timers[key] = true
				if s.fix(H7) {
					s.send(pc.pod, TCommands, rec, nil)
				} else {
					s.start(pc, rec, -1, 0, nil, handleDueRetry)
				}
			})
		}
	}
}

// firstDue is the lowest removal that is due. The clock of one that takes away what was served before starts when the row
// that says so is acknowledged: views need that time to see it.
func (s *Sim) firstDue(doc string, m map[DueRemoval]int) (first DueRemoval, at int, ok bool) {
	for d, t := range m {
		if t > s.now {
			continue
		}
		if !d.Exact && s.fix(H3c) && (s.flipped[doc] == nil || s.now < s.flipAt(doc, d.VG)+2*lateness) {
			continue
		}
		if !ok || d.VG.less(first.VG) || d.VG == first.VG && d.Exact {
			first, at, ok = d, t, true
		}
	}
	return
}

// flipAt: when a row that serves vg or later stood in the table first.
func (s *Sim) flipAt(doc string, vg VG) int {
	for _, f := range s.flipped[doc] {
		if !f.vg.less(vg) {
			return f.at
		}
	}
	return s.now
}

type flip struct {
	vg VG
	at int
}
