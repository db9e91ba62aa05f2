package model

import (
	"sort"
)

// The scheduler: at every step it picks, by seed, one of all things that may happen next.

type action struct {
	class int
	do    func()
}

const (
	aDeliver = iota
	aStep
	aAck
	aCommit
	aBatch
	aView
	aLate
	aTimer
	aClient
	aNotice
)

// actions lists what may happen next, with what is overdue first.
func (s *Sim) actions(acts []action) []action {
	acts = acts[:0]
	add := func(class int, do func()) { acts = append(acts, action{class, do}) }
	for _, pod := range s.pods {
		awake := pod.up && pod.paused <= s.now
		if pod.up && pod.delayed <= s.now {
			for t := range pod.queues {
				if t == TProgress && pod.stalled > s.now {
					continue
				}
				for p := range pod.queues[t] {
					if len(pod.queues[t][p]) > 0 {
						add(aAck, func() {
							q, i := pod.queues[t][p], 0
							if s.drop(RuleOneInFlight) { // several, in any order
								i = s.rng.IntN(len(q))
							}
							x := q[i]
							pod.queues[t][p] = append(q[:i:i], q[i+1:]...)
							s.land(x, pod.name)
						})
					}
				}
			}
		}
		if !awake {
			continue
		}
		for _, pc := range pod.pcs {
			s.pcActions(pc, add)
		}
		for _, t := range pod.leftover {
			if t.cond == nil || t.cond() {
				add(aStep, func() { s.run(t) })
			}
		}
	}
	for _, name := range viewNames {
		v := s.views[name]
		for p := range P {
			if v.pos[p] < len(s.topics[v.table][p].recs) {
				add(aView, func() { s.viewStep(name, v, p) })
			}
		}
	}
	for i := range s.store.late {
		add(aLate, func() { s.lateStore(i) })
	}
	for i := range s.late {
		add(aLate, func() { s.lateSend(i) })
	}
	for _, c := range s.clients {
		patience := lateness / 2
		if s.cfg.Keep > 0 { // the window of remembered ids must outlast a client's retries
			patience = 6 * lateness
		}
		if !c.acked && (c.sent == 0 || s.now > c.lastTry+patience) {
			add(aClient, func() { s.submit(c) })
		}
	}
	return acts
}

var viewNames = []string{"join", "api-docs", "api-msgs", "api-letters"}

func (s *Sim) pcActions(pc *PC, add func(int, func())) {
	g := pc.pod.group
	if pc.stale > 0 {
		add(aNotice, func() { s.close(pc) })
	}
	if pc.busy == nil && len(pc.tasks) < 12 {
		for _, t := range g.inputs {
			log := s.topics[t][pc.part].recs
			for pc.next[t] < len(log) && log[pc.next[t]] == nil { // gaps left by compaction
				pc.next[t]++
			}
			if pc.next[t] < len(log) {
				add(aDeliver, func() {
					off := pc.next[t]
					pc.next[t]++
					pc.gates[t].delivered = append(pc.gates[t].delivered, off)
					pc.busy = s.start(pc, log[off], t, off, nil, g.handle)
					s.run(pc.busy)
				})
			}
		}
	}
	for _, t := range pc.tasks {
		if t.cond == nil || t.cond() {
			add(aStep, func() { s.run(t) })
		}
	}
	if len(pc.batch) > 0 {
		add(aBatch, func() {
			n := 1 + s.rng.IntN(len(pc.batch))
			items := pc.batch[:n:n]
			pc.batch = append([]*item(nil), pc.batch[n:]...)
			s.start(pc, nil, -1, 0, items, handleBatch)
		})
	}
	for _, t := range g.inputs {
		gate := pc.gates[t]
		gate.advance(s.mut(MutUnorderedCommit))
		if gate.mark > g.committed[t][pc.part] && pc.gen == g.gen && gate.mark > 0 {
			add(aCommit, func() { s.commit(pc, t, gate.mark) })
		}
	}
	if g.table >= 0 && s.fix(H8) && pc.stale == 0 && pc.disk.pos < len(s.topics[g.table][pc.part].recs) {
		add(aView, func() { s.followTable(pc, false) })
	}
	s.timers(pc, add)
}

func (s *Sim) commit(pc *PC, topic, off int) {
	g := pc.pod.group
	g.committed[topic][pc.part] = off
	s.tracef("%s commits %s/%d@%d", pc.pod, topicName[topic], pc.part, off)
	for o := s.verified[topic][pc.part]; o < off; o++ {
		r := s.topics[topic][pc.part].recs[o]
		s.verified[topic][pc.part] = o + 1
		if r != nil && !s.truly[[3]int{topic, pc.part, o}] {
			s.fail("I5: %s committed %s/%d@%d but %d (%s) is not finished", pc.pod, topicName[topic], pc.part, off, o, describe(r))
		}
	}
}

func (s *Sim) viewStep(name string, v *View, p int) {
	r := s.topics[v.table][p].recs[v.pos[p]]
	v.pos[p]++
	if r == nil {
		return
	}
	old := v.rows[r.Key]
	row := mergeRows(s, old, r.Row)
	v.rows[r.Key] = row
	if name == "api-msgs" && old != nil {
		a, b := old.(*TrackRow), row.(*TrackRow)
		if b.Gen < a.Gen || b.Gen == a.Gen && (rank(b.Status) < rank(a.Status) || rank(a.Status) == 9 && b.Status != a.Status) {
			s.fail("I7: status of %s went from g%d %s to g%d %s", r.Key, a.Gen, a.Status, b.Gen, b.Status)
		}
	}
	if name == "api-docs" && old != nil && row.(*DocRow).Served.VG.less(old.(*DocRow).Served.VG) {
		s.fail("I7: served version of %s went back", r.Key)
	}
}

func (s *Sim) lateStore(i int) {
	s.store.late[i].apply()
	s.tracef("store: a late operation is applied")
	s.store.late = append(s.store.late[:i:i], s.store.late[i+1:]...)
}

func (s *Sim) lateSend(i int) {
	l := &s.late[i]
	s.land(l.q[0], l.who+"(dead)")
	if l.q = l.q[1:]; len(l.q) == 0 {
		s.late = append(s.late[:i:i], s.late[i+1:]...)
	}
}

func (s *Sim) submit(c *client) {
	var up []*Pod
	for _, p := range s.pods {
		if p.group == nil && p.up && p.paused <= s.now {
			up = append(up, p)
		}
	}
	if len(up) > 0 {
		c.sent++
		c.lastTry = s.now
		s.send(up[s.rng.IntN(len(up))], TDocs, c.rec, nil)
	}
}

// overdue does what may not wait any longer.
func (s *Sim) overdue() {
	for i := 0; i < len(s.store.late); i++ {
		if s.store.late[i].deadline <= s.now {
			s.lateStore(i)
			i--
		}
	}
	for i := 0; i < len(s.late); i++ {
		if s.late[i].deadline <= s.now {
			s.lateSend(i)
			i--
		}
	}
	for _, pod := range s.pods {
		if !pod.up && pod.upAt <= s.now {
			pod.up = true
			s.tracef("%s is back", pod)
			if pod.group != nil {
				s.rebalance(pod.group)
			}
		}
		if pod.killAt > 0 && pod.killAt <= s.now && pod.up {
			for _, t := range append([]*Task(nil), pod.leftover...) {
				t.stop()
				t.drop()
			}
			pod.killAt = 0
		}
		for _, pc := range append([]*PC(nil), pod.pcs...) {
			if pc.stale > 0 && pc.stale <= s.now && pod.paused <= s.now {
				s.close(pc)
			}
		}
	}
	for _, pod := range s.pods {
		if pod.expelled && pod.up && pod.paused <= s.now && !pod.zombie() {
			pod.expelled = false
			s.rebalance(pod.group)
		}
	}
	for _, name := range viewNames {
		v := s.views[name]
		for p := range P {
			for l := s.topics[v.table][p]; v.pos[p] < len(l.recs) && l.born[v.pos[p]]+lateness < s.now; {
				s.viewStep(name, v, p)
			}
		}
	}
}

// Run executes the schedule, drains without faults, and checks. It returns the first violation, or "".
func (s *Sim) Run() string {
	events := append([]Ev(nil), s.cfg.Events...)
	sort.SliceStable(events, func(i, j int) bool { return events[i].Step < events[j].Step })
	var acts []action
	for s.violation == "" {
		for len(events) > 0 && events[0].Step <= s.now {
			s.apply(events[0])
			events = events[1:]
		}
		if s.now >= horizon && !s.draining && len(events) == 0 {
			s.startDrain()
		}
		s.overdue()
		acts = s.actions(acts)
		if len(acts) == 0 {
			if s.draining && len(events) == 0 && !s.somethingDue() {
				break
			}
			s.now += 10
		} else {
			s.pick(acts).do()
			s.now++
		}
		s.checkReaders()
		if s.now > maxSteps {
			s.fail("hang: not idle after %d steps", s.now)
		}
	}
	if s.violation == "" {
		s.checkEnd()
	}
	for _, pod := range s.pods { // free the coroutines
		for _, pc := range pod.pcs {
			for _, t := range pc.tasks {
				t.stop()
			}
		}
		for _, t := range pod.leftover {
			t.stop()
		}
	}
	return s.violation
}

func (s *Sim) pick(acts []action) action {
	total := 0
	for _, a := range acts {
		total += s.weights[a.class]
	}
	n := s.rng.IntN(total)
	for _, a := range acts {
		if n -= s.weights[a.class]; n < 0 {
			return a
		}
	}
	panic("unreachable")
}

// somethingDue: a row still waits for its time, or a pod for its restart.
func (s *Sim) somethingDue() bool {
	for _, pod := range s.pods {
		if !pod.up || pod.paused > s.now || pod.delayed > s.now || pod.stalled > s.now {
			return true
		}
		for _, pc := range pod.pcs {
			for _, r := range pc.disk.rows {
				switch r := r.(type) {
				case *DocRow:
					if len(r.Due) > 0 {
						return true
					}
				case *LetterRow:
					if r.State == "scheduled" && r.Due > s.now {
						return true
					}
				}
			}
		}
	}
	for _, c := range s.clients {
		if !c.acked {
			return true
		}
	}
	return s.now < s.storeDown || len(s.late) > 0 || len(s.store.late) > 0
}
