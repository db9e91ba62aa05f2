package model

// Store is the vector store: objects by id; writes succeed, fail per object, or end without an answer (applied now, later, never).
type Store struct {
	objects map[objID]string // content
	late    []lateOp
	faults  []string // outcomes of the next operations, from the fault schedule
}
type objID struct {
	doc string
	vg  VG
	idx int
	rnd int // mutant: random chunk ids
}
type lateOp struct {
	apply    func()
	deadline int
}

// chunkID is deterministic: (document, version, generation, index).
func (s *Sim) chunkID(doc string, vg VG, idx int) objID {
	if !s.fix(H6) {
		vg.G = 0
	}
	id := objID{doc, vg, idx, 0}
	if s.mut(MutRandomChunkIDs) {
		id.rnd = 1 + s.rng.IntN(1<<30)
	}
	return id
}

func (s *Sim) nextStoreFault() string {
	if len(s.store.faults) == 0 {
		return ""
	}
	f := s.store.faults[0]
	s.store.faults = s.store.faults[1:]
	s.count("store " + f)
	return f
}

// upsert answers ok, transient, rejected, outage or ambiguous.
func (s *Sim) upsert(pod *Pod, doc string, vg VG, idx int, content string) string {
	switch {
	case s.now < s.storeDown:
		return "outage"
	case s.poison(content, 'X') && idx == 0:
		return "transient"
	case s.poison(content, 'R') && idx == 1:
		return "rejected"
	}
	id := s.chunkID(doc, vg, idx)
	apply := func() { s.store.objects[id] = content }
	f := s.nextStoreFault()
	switch f {
	case "transient":
		if s.transients[doc] >= maxAttempts-1 { // a healthy document never fails in every attempt
			f = ""
		} else {
			s.transients[doc]++
			return f
		}
	}
	return s.ambiguous(f, apply, pod, "upsert", doc, vg, idx)
}

// remove deletes a document's objects below VG, or exactly those of VG (V<0: all but |V|, a mutant).
func (s *Sim) remove(pod *Pod, doc string, r DueRemoval) string {
	if s.now < s.storeDown {
		return "outage"
	}
	f := s.nextStoreFault()
	if f == "transient" {
		return "ambiguous"
	}
	apply := func() {
		vg := r.VG
		if !s.fix(H6) {
			vg.G = 0
		}
		for id := range s.store.objects {
			if id.doc != doc {
				continue
			}
			if r.VG.V < 0 && id.vg.V != -r.VG.V || r.VG.V >= 0 && (r.Exact && id.vg == vg || !r.Exact && id.vg.less(vg)) {
				delete(s.store.objects, id)
			}
		}
	}
	return s.ambiguous(f, apply, pod, "remove", doc, r.VG, -1)
}

func (s *Sim) ambiguous(f string, apply func(), pod *Pod, what, doc string, vg VG, idx int) string {
	switch f {
	case "applied now":
		apply()
	case "applied later":
		s.store.late = append(s.store.late, lateOp{apply, s.now + lateness})
	case "never":
	default:
		apply()
		s.tracef("%s: store %s %s v%d.%d #%d", pod, what, doc, vg.V, vg.G, idx)
		return "ok"
	}
	s.tracef("%s: store %s %s v%d.%d #%d: no answer (%s)", pod, what, doc, vg.V, vg.G, idx, f)
	return "ambiguous"
}
