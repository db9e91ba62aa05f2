package model

import (
	"fmt"
	"math/rand/v2"
)

var contents = []string{"A1", "A2", "B1", "C1", "A1", "B1"}
var poisons = []string{"P1", "Q1", "R1", "X1"}

// makeSchedule draws a workload and faults from the seed.
func makeSchedule(cfg Cfg) (evs []Ev) {
	r := rand.New(rand.NewPCG(cfg.Seed, 99))
	docs := 1 + r.IntN(3)
	window := 100 + r.IntN(horizon-100) // dense or sparse
	add := func(kind string, a, b int, c string) { evs = append(evs, Ev{r.IntN(window), kind, a, b, c}) }
	for range 4 + r.IntN(10) {
		d := r.IntN(docs)
		switch k := r.IntN(20); {
		case k < 11:
			wrong := 0
			if r.IntN(8) == 0 {
				wrong = wrongPartition
			}
			add("put", d, wrong, contents[r.IntN(len(contents))])
		case k < 14:
			add("put", d, 0, poisons[r.IntN(len(poisons))])
		case k < 16:
			add("del", d, 0, "")
		case k < 18:
			add("resend", r.IntN(8), 0, "")
		default:
			add("reuse", r.IntN(8), 0, contents[r.IntN(len(contents))])
		}
	}
	for range r.IntN(5) {
		evs = append(evs, Ev{r.IntN(horizon), "replay", r.IntN(4), r.IntN(3), ""})
	}
	if r.IntN(4) == 0 {
		add("discard", 0, 0, "")
	}
	if r.IntN(8) == 0 {
		add("twin", 0, r.IntN(docs), contents[r.IntN(len(contents))])
	}
	kinds := []string{"crash", "crash", "wipe", "pause", "pause", "pause", "rebalance", "delay", "delay", "transient", "applied now", "applied later", "applied later", "never",
		"embed", "storedown", "reset", "compact", "compact", "leader"}
	for range r.IntN(24) {
		add(kinds[r.IntN(len(kinds))], r.IntN(64), r.IntN(lateness), "")
	}
	return evs
}

// reuseRemembered in B of a scenario: the id is not forgotten yet, for sure.
const reuseRemembered = 1

// apply does one entry of the schedule.
func (s *Sim) apply(e Ev) {
	pod := s.victim(e)
	s.tracef("* %s", e)
	switch e.Kind {
	case "put", "del":
		s.newClient(&Rec{Kind: e.Kind, Doc: docName(e.A), Msg: fmt.Sprintf("m%d", len(s.clients)), Content: e.C, Idx: e.B})
	case "twin": // another document, the same message id
		if len(s.clients) == 0 || s.clients[0].rec.Doc == docName(e.B) {
			return
		}
		s.newClient(&Rec{Kind: "put", Doc: docName(e.B), Msg: s.clients[0].rec.Msg, Content: e.C})
	case "resend", "reuse":
		if len(s.clients) == 0 || s.cfg.Keep > 0 && e.B != reuseRemembered { // (a forgotten id makes a new version, by design)
			return
		}
		c := *s.clients[e.A%len(s.clients)].rec
		if e.Kind == "reuse" {
			if c.Content == e.C {
				return
			}
			c.Kind, c.Content = "put", e.C
		}
		s.newClient(&c)
	case "discard":
		v := s.views["api-letters"]
		for _, id := range sortedKeys(v.rows) {
			if l := v.rows[id].(*LetterRow); l.State == "waiting" {
				s.command(&Rec{Kind: "discard", Key: id, VG: VG{G: l.Gen}})
				return
			}
		}
	case "stale replay": // an operator whose page shows the first failure of a letter, whatever became of it since
		for _, id := range sortedKeys(s.views["api-letters"].rows) {
			s.command(&Rec{Kind: "cmd", Key: id, Doc: docOf(id), VG: VG{V: versionIn(id)}})
			s.count("replay")
			return
		}
	case "replay": // an operator: fixes the cause (or not), and asks for a replay of a waiting letter
		v := s.views["api-letters"]
		for _, id := range sortedKeys(v.rows) {
			l := v.rows[id].(*LetterRow)
			if l.State != "waiting" {
				continue
			}
			if e.A--; e.A >= 0 {
				continue
			}
			if e.B > 0 && l.Raw != nil {
				s.fixed[l.Raw.Content] = true
			}
			for range 1 + e.B%2 { // two operators at once
				s.command(&Rec{Kind: "cmd", Key: id, Doc: docOf(id), VG: VG{versionIn(id), l.Gen}})
			}
			s.count("replay")
			return
		}
	case "crash", "wipe":
		if pod.up {
			s.crash(pod, e.Kind == "wipe", 1+e.B)
		}
	case "pause":
		if pod.up && pod.paused <= s.now {
			s.count("pause")
			pod.paused = s.now + 1 + e.B
			if pod.group != nil && e.B > 20 {
				pod.expelled = true // the session expires
				s.rebalance(pod.group)
			}
		}
	case "delay": // its sends do not land for a while
		pod.delayed = s.now + e.B
		s.count("delay")
	case "stall":
		pod.stalled = s.now + e.B
		s.count("stall")
	case "rebalance":
		s.count("rebalance")
		s.rebalance(s.groups[e.A%len(s.groups)])
	case "transient", "applied now", "applied later", "never":
		s.store.faults = append(s.store.faults, e.Kind)
	case "embed":
		s.embedFaults++
	case "storedown":
		s.storeDown = s.now + e.B
		s.count("storedown")
	case "reset":
		g := s.groups[e.A%len(s.groups)]
		for t := range g.committed {
			g.committed[t] = [P]int{-1, -1}
		}
		s.count("reset")
		for _, p := range s.pods { // the group must be empty for that
			if p.group == g && p.up {
				for _, pc := range append([]*PC(nil), p.pcs...) {
					s.close(pc)
				}
			}
		}
		s.rebalance(g)
	case "compact":
		s.compact(false)
	case "leader":
		if s.mut(MutAcksOne) { // the tail that was only on the old leader is gone
			for t := range s.topics {
				for p, l := range s.topics[t] {
					if n := len(l.recs); n > 0 && n > s.delivered(t, p) && (e.A+t+p)%2 == 0 {
						s.tracef("lost %s/%d@%d", topicName[t], p, n-1)
						l.recs[n-1] = nil
					}
				}
			}
		}
	}
}

// victim: the pod that the event names, or the A-th of those that have work in flight.
func (s *Sim) victim(e Ev) *Pod {
	var busy []*Pod
	for _, p := range s.pods {
		if p.name == e.C {
			return p
		}
	}
	for _, p := range s.pods {
		n := len(p.leftover)
		for _, pc := range p.pcs {
			n += len(pc.tasks)
		}
		for t := range p.queues {
			for _, q := range p.queues[t] {
				n += len(q)
			}
		}
		if p.up && n > 0 {
			busy = append(busy, p)
		}
	}
	if len(busy) == 0 {
		busy = s.pods
	}
	return busy[e.A%len(busy)]
}

func (s *Sim) delivered(topic, p int) (m int) {
	for _, pod := range s.pods {
		for _, pc := range pod.pcs {
			if pc.part == p {
				m = max(m, pc.next[topic])
			}
		}
	}
	return m
}

func (s *Sim) compact(all bool) {
	lag := tableLag
	if s.drop(RuleTableLag) {
		lag = 0
	}
	chance := func() bool { return s.rng.IntN(3) > 0 }
	for _, t := range []int{TabChunker, TabIndexer, TabTracker, TabLetters} {
		for _, l := range s.topics[t] {
			s.seen["compacted"] += l.compact(s.now, lag, all, chance)
		}
	}
	for _, l := range s.topics[TDocs] {
		l.compact(s.now, docsLag, false, chance)
	}
}

func docName(i int) string { return fmt.Sprintf("d%d", i) }

func (s *Sim) newClient(rec *Rec) {
	rec.Key = rec.Doc
	s.clients = append(s.clients, &client{rec: rec})
}

func (s *Sim) command(rec *Rec) {
	s.topics[TCommands][part(rec.Key)].append(rec, s.now)
	s.tracef("command %s", describe(rec))
}

// docOf and versionIn take the id of a letter apart.
func docOf(letterID string) string { return letterID[len("documents/") : len("documents/")+2] }

func versionIn(letterID string) (v int) {
	_, _ = fmt.Sscanf(letterID[len("documents/d0@"):], "%d", &v) // the model wrote it
	return v
}

// crash: tasks and memory are gone; of each queue a prefix may still land, late.
func (s *Sim) crash(pod *Pod, wipe bool, after int) {
	s.count("crash")
	for _, pc := range pod.pcs {
		for _, t := range append([]*Task(nil), pc.tasks...) {
			t.stop()
			t.drop()
		}
	}
	for _, t := range append([]*Task(nil), pod.leftover...) {
		t.stop()
		t.drop()
	}
	pod.pcs, pod.leftover, pod.up, pod.paused, pod.upAt = nil, nil, false, 0, s.now+after
	pod.upserts, pod.cache = map[string]int{}, map[string]bool{}
	if wipe {
		pod.disk = [P]*Disk{}
		s.count("wipe")
	}
	for t := range pod.queues {
		for p, q := range pod.queues[t] {
			if n := s.rng.IntN(len(q) + 1); n > 0 {
				for _, x := range q[:n] {
					x.task = nil
				}
				s.late = append(s.late, lateSend{q[:n:n], s.now + 1 + s.rng.IntN(lateness), pod.name})
				s.count("late send")
			}
			pod.queues[t][p] = nil
		}
	}
	if pod.group != nil {
		s.rebalance(pod.group)
	}
}

func (s *Sim) startDrain() {
	s.draining = true
	s.tracef("* drain")
	for _, pod := range s.pods {
		pod.upAt = min(pod.upAt, s.now)
	}
	s.storeDown = min(s.storeDown, s.now)
	s.store.faults, s.embedFaults = nil, 0
}
