package model

import (
	"fmt"
	"maps"
)

// The cluster as the pods see it: sends that land, partitions that move, tables that are recovered.

func (s *Sim) send(pod *Pod, topic int, rec *Rec, t *Task) {
	if topic < 0 {
		return
	}
	if t != nil {
		t.pending++
	}
	p := part(rec.Key)
	if rec.Kind != "row" && rec.Idx == wrongPartition {
		p = (p + 1) % P
	}
	pod.queues[topic][p] = append(pod.queues[topic][p], &send{topic, p, rec, t})
}

func (s *Sim) land(x *send, who string) {
	c := *x.rec
	off := s.topics[x.topic][x.part].append(&c, s.now)
	c.Origin = x.rec.Origin
	if x.topic == TDocs && x.part == part(c.Key) {
		s.shadow = append(s.shadow, shadowRec{x.part, off, &c})
	}
	s.tracef("%s -> %s/%d@%d %s", who, topicName[x.topic], x.part, off, describe(&c))
	if x.task != nil {
		x.task.pending--
	}
	if x.topic == TabIndexer {
		s.flipped[c.Key] = append(s.flipped[c.Key], flip{c.Row.(*DocRow).Served.VG, s.now})
	}
	if x.topic == TDocs {
		for _, cl := range s.clients {
			if cl.rec == x.rec {
				cl.acked = true
			}
		}
	}
}

func describe(r *Rec) string {
	if r.Kind == "row" {
		return "row " + r.Key + " " + r.Row.String()
	}
	return fmt.Sprintf("%s %s %s v%d.%d a%d %s n%d #%d %s", r.Kind, r.Doc, r.Msg, r.VG.V, r.VG.G, r.Att, r.Content, r.N, r.Idx, r.Status)
}

func (s *Sim) rebalance(g *Group) {
	g.gen++
	var members []*Pod
	for _, p := range s.pods {
		if p.group == g && p.up && p.paused <= s.now {
			members = append(members, p)
		}
	}
	for p := range P {
		g.owner[p] = nil
		if len(members) > 0 {
			g.owner[p] = members[s.rng.IntN(len(members))]
		}
	}
	for _, pod := range s.pods {
		if pod.group != g || !pod.up {
			continue
		}
		for _, pc := range append([]*PC(nil), pod.pcs...) {
			if g.owner[pc.part] == pod && pc.stale == 0 && s.rng.IntN(2) == 0 {
				pc.gen = g.gen // kept
			} else if pod.paused > s.now {
				pc.stale = pod.paused + lateness
			} else {
				s.close(pc)
			}
		}
	}
	for p, pod := range g.owner {
		if pod != nil && pod.holds(p) == nil {
			s.open(pod, p)
		}
	}
}

// zombie: it holds partitions that it has lost and does not know it yet.
func (p *Pod) zombie() bool {
	for _, pc := range p.pcs {
		if pc.stale > 0 {
			return true
		}
	}
	return false
}

func (p *Pod) holds(part int) *PC {
	for _, pc := range p.pcs {
		if pc.part == part && pc.stale == 0 {
			return pc
		}
	}
	return nil
}

// close: the pod knows that the partition is gone. Each task is abandoned, or goes on for a while without a session.
func (s *Sim) close(pc *PC) {
	pod := pc.pod
	for i, x := range pod.pcs {
		if x == pc {
			pod.pcs = append(pod.pcs[:i:i], pod.pcs[i+1:]...)
		}
	}
	pc.stale = s.now
	pc.disk = &Disk{rows: maps.Clone(pc.disk.rows)}
	for _, t := range append([]*Task(nil), pc.tasks...) {
		if s.rng.IntN(2) == 0 {
			t.stop()
			t.drop()
		} else {
			pod.leftover = append(pod.leftover, t)
			pod.killAt = s.now + lateness
		}
	}
}

// open recovers the table into the local store, merging , and starts from the committed offsets.
func (s *Sim) open(pod *Pod, p int) {
	g := pod.group
	pc := &PC{pod: pod, part: p, gen: g.gen, timers: map[string]bool{}}
	if pod.disk[p] == nil {
		pod.disk[p] = &Disk{rows: map[string]Row{}}
	}
	pc.disk = pod.disk[p]
	pod.pcs = append(pod.pcs, pc)
	if g.table >= 0 {
		s.followTable(pc, true)
	}
	for _, t := range g.inputs {
		off := g.committed[t][p]
		if off < 0 {
			off = 0 // the oldest
			if s.mut(MutNewestOffset) {
				off = len(s.topics[t][p].recs)
			}
		}
		pc.next[t] = off
		pc.gates[t] = &Gate{done: map[int]bool{}, mark: off}
	}
	s.tracef("%s opens %s/%d gen %d from %v", pod, g.name, p, g.gen, pc.next)
}

// followTable merges what stands in the table log into the local rows and writes again what differs.
func (s *Sim) followTable(pc *PC, recovery bool) {
	log := s.topics[pc.pod.group.table][pc.part]
	differ := map[string]bool{}
	for ; pc.disk.pos < len(log.recs); pc.disk.pos++ {
		r := log.recs[pc.disk.pos]
		if r == nil {
			continue
		}
		row := mergeRows(s, pc.disk.rows[r.Key], r.Row)
		pc.disk.rows[r.Key] = row
		if row.String() != r.Row.String() {
			differ[r.Key] = true
		} else {
			delete(differ, r.Key)
		}
	}
	for _, k := range sortedKeys(differ) {
		s.send(pc.pod, pc.pod.group.table, &Rec{Kind: "row", Key: k, Row: pc.disk.rows[k]}, nil)
	}
}

func mergeRows(s *Sim, old, new Row) Row {
	if old == nil || s.mut(MutRowsOverwritten) {
		return new
	}
	if d, ok := old.(*DocRow); ok && !s.fix(H4) {
		return d.mergeByFields(new.(*DocRow))
	}
	return old.Merge(new)
}

func (s *Sim) readDocument(doc string, v int) *Rec {
	l := s.topics[TDocs][part(doc)]
	if v < 1 || v > len(l.recs) {
		return nil
	}
	return l.recs[v-1]
}

func letterID(doc string, v int) string  { return fmt.Sprintf("documents/%s@%d", doc, v) }
func foreignID(doc string, v int) string { return fmt.Sprintf("%s@%d", doc, v) }
