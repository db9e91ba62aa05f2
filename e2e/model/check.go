package model

import (
	"fmt"
	"sort"
)

// checkReaders: at any moment a reader, who filters by the row that its view shows, sees all chunks of that version.
func (s *Sim) checkReaders() {
	v := s.views["api-docs"]
	doc := docName(s.now % 3)
	row, ok := v.rows[doc].(*DocRow)
	if !ok {
		return
	}
	for i := range row.Served.N {
		if c, ok := s.object(doc, row.Served.VG, i); !ok || c != row.Served.Content {
			s.fail("reader: %s is served at v%d.%d but chunk %d of %d is not in the store", doc, row.Served.VG.V, row.Served.VG.G, i, row.Served.N)
		}
	}
}

func (s *Sim) object(doc string, vg VG, i int) (string, bool) {
	if s.mut(MutRandomChunkIDs) {
		for id, c := range s.store.objects {
			if id.doc == doc && id.vg.V == vg.V && id.idx == i {
				return c, true
			}
		}
	}
	if !s.fix(H6) {
		vg.G = 0
	}
	c, ok := s.store.objects[objID{doc, vg, i, 0}]
	return c, ok
}

// expected is the sequential model: what one record must come to, given the log of its document.
type expected struct {
	doc, msg, content, kind string
	v                       int
	good, last              bool
}

func (s *Sim) model() (recs []expected) {
	type known struct{ content, kind string }
	msgs := map[string]known{}
	lastGood := map[string]int{}
	for _, sr := range s.shadow {
		r, v := sr.rec, sr.off+1
		k, seen := msgs[r.Doc+"/"+r.Msg]
		if seen && k.content == r.Content {
			continue // a resent id is not a version
		}
		e := expected{doc: r.Doc, msg: r.Msg, content: r.Content, kind: r.Kind, v: v, good: true}
		if seen {
			e.msg, e.good = foreignID(r.Doc, v), false
		} else {
			msgs[r.Doc+"/"+r.Msg] = known{r.Content, r.Kind}
			e.good = r.Kind == "del" || r.Content[0] < 'P'
		}
		recs = append(recs, e)
		if e.good || s.wasFixed(e) {
			lastGood[r.Doc] = len(recs) - 1
		}
	}
	for _, i := range lastGood {
		recs[i].last = true
	}
	return recs
}

// wasFixed: an operator repaired the cause, and the replay (or a retry after the repair) ended well.
func (s *Sim) wasFixed(e expected) bool {
	if !s.fixed[e.content] && e.msg != foreignID(e.doc, e.v) {
		return false // (the replay of a reused id needs no repair: the operator wants it)
	}
	st := s.tracked(s.eventKey(e.doc, e.msg))
	return st == "indexed" || st == "unchanged" || st == "deleted"
}

func (s *Sim) tracked(key string) string {
	for _, p := range s.pods {
		if p.group != nil && p.group.table == TabTracker {
			for _, pc := range p.pcs {
				if r, ok := pc.disk.rows[key]; ok && pc.part == part(key) {
					return r.(*TrackRow).Status
				}
			}
		}
	}
	return ""
}

func (s *Sim) ownerRow(table int, key string) Row {
	for _, g := range s.groups {
		if g.table == table {
			if pod := g.owner[part(key)]; pod != nil && pod.holds(part(key)) != nil {
				return pod.holds(part(key)).disk.rows[key]
			}
		}
	}
	return nil
}

// checkEnd: promises 1 to 5 when the pipeline is idle.
func (s *Sim) checkEnd() {
	finals := map[string]string{}
	for p := range P {
		for _, r := range s.topics[TEvents][p].recs {
			if r == nil || rank(r.Status) < 9 {
				continue
			}
			k := fmt.Sprintf("%s g%d", r.Key, r.VG.G)
			if old, ok := finals[k]; ok && old != r.Status {
				s.fail("I1: two finals for %s: %s and %s", k, old, r.Status)
				return
			}
			finals[k] = r.Status
		}
	}
	recs := s.model()
	for _, e := range recs {
		s.checkRecord(e)
	}
	for d := range 3 {
		s.checkDoc(docName(d), recs)
	}
	s.checkReplays()
	s.checkIdle()
	s.checkTables()
}

func (s *Sim) checkRecord(e expected) {
	st := s.tracked(s.eventKey(e.doc, e.msg))
	name := fmt.Sprintf("%s v%d (%s %s, %s)", e.doc, e.v, e.kind, e.content, e.msg)
	ok := false
	switch st {
	case "indexed":
		ok = e.kind == "put" && (e.good || s.wasFixed(e))
	case "unchanged":
		ok = e.kind == "put" && (e.good || s.wasFixed(e))
	case "deleted":
		ok = e.kind == "del" && (e.good || s.wasFixed(e))
	case "superseded":
		ok = !e.last
	case "dead":
		ok = !e.good
	}
	if !ok {
		s.fail("I1: %s ended as %q", name, st)
		return
	}
	row, _ := s.ownerRow(TabIndexer, e.doc).(*DocRow)
	if row == nil || row.Finals[e.msg].Status != st && (s.cfg.Keep == 0 || row.Finals[e.msg].Status != "") {
		s.fail("I1: %s is %q for the tracker, but the document row says %v", name, st, row)
		return
	}
	l, _ := s.ownerRow(TabLetters, letterID(e.doc, e.v)).(*LetterRow)
	if (st == "dead") != (l != nil && (l.State == "waiting" || l.State == "discarded")) {
		s.fail("I6: %s is %s but its letter is %v", name, st, l)
		return
	}
	if st == "dead" && (l.Raw == nil || l.Raw.Content != e.content || l.Raw.Kind != e.kind) {
		s.fail("I6: the letter of %s is not the document record", name)
	}
}

func (s *Sim) checkDoc(doc string, recs []expected) {
	row, _ := s.ownerRow(TabIndexer, doc).(*DocRow)
	want := ""
	for _, e := range recs {
		if e.doc == doc && e.last && e.kind == "put" {
			want = e.content
		}
	}
	var got []objID
	for id := range s.store.objects {
		if id.doc == doc {
			got = append(got, id)
		}
	}
	sort.Slice(got, func(i, j int) bool {
		return got[i].vg.less(got[j].vg) || got[i].vg == got[j].vg && got[i].idx < got[j].idx
	})
	n := 0
	if want != "" {
		n = chunksOf(want)
	}
	if row == nil {
		if n > 0 {
			s.fail("I2: %s should serve %s and has no row", doc, want)
		}
		return
	}
	if row.Served.N != n || n > 0 && row.Served.Content != want {
		s.fail("I2: %s serves %v, the model wants %q", doc, row.Served, want)
		return
	}
	for _, id := range got {
		served := row.Served.VG
		if !s.fix(H6) {
			served.G = 0
		}
		if id.vg != served {
			s.fail("I3: %s serves v%d.%d but the store holds a chunk of v%d.%d", doc, served.V, served.G, id.vg.V, id.vg.G)
			return
		}
	}
	if len(got) != n {
		s.fail("I2: %s has %d chunks in the store, wants %d", doc, len(got), n)
	}
}

// checkReplays: a failure is replayed only when an operator asked for just that, and no generation is replayed that nobody
// asked for.
func (s *Sim) checkReplays() {
	asked, replayed := map[string]bool{}, map[string]bool{}
	for p := range P {
		for _, r := range s.topics[TCommands][p].recs {
			if r != nil && r.Kind == "cmd" {
				asked[fmt.Sprint(r.Key, " generation ", r.VG.G)] = true
			}
		}
		for _, r := range s.topics[TReplays][p].recs {
			if r != nil && r.VG.G > 0 {
				replayed[fmt.Sprint(letterID(r.Doc, r.VG.V), " generation ", r.VG.G-1)] = true
			}
		}
	}
	for _, failure := range sortedKeys(replayed) {
		if !asked[failure] {
			s.fail("I6: the failure of letter %s was replayed, and nobody asked for that", failure)
		}
	}
}

// checkIdle: nothing hangs.
func (s *Sim) checkIdle() {
	for d := range 3 {
		if row, ok := s.ownerRow(TabIndexer, docName(d)).(*DocRow); ok && (len(row.Work) > 0 || len(row.Due) > 0) {
			s.fail("hang: %s has versions in work: %s", docName(d), row)
		}
	}
	for _, g := range s.groups {
		for _, t := range g.inputs {
			for p := range P {
				n := len(s.topics[t][p].recs)
				for n > 0 && s.topics[t][p].recs[n-1] == nil {
					n--
				}
				if n > 0 && g.committed[t][p] < n {
					s.fail("hang: %s has lag on %s/%d: %d of %d", g.name, topicName[t], p, g.committed[t][p], n)
				}
			}
		}
		if g.table != TabLetters {
			continue
		}
		for p := range P {
			if pod := g.owner[p]; pod != nil {
				for id, r := range pod.holds(p).disk.rows {
					if st := r.(*LetterRow).State; st != "waiting" && st != "resolved" && st != "superseded" && st != "discarded" {
						s.fail("hang: letter %s is %s", id, st)
					}
				}
			}
		}
	}
}

// checkTables: a fresh pod (or view) that recovers a table after compaction has the same rows as the owner.
func (s *Sim) checkTables() {
	s.compact(true)
	for _, g := range s.groups {
		for p := range P {
			if g.table < 0 || g.owner[p] == nil {
				continue
			}
			fresh := map[string]Row{}
			for _, r := range s.topics[g.table][p].recs {
				if r != nil {
					fresh[r.Key] = mergeRows(s, fresh[r.Key], r.Row)
				}
			}
			for k, row := range g.owner[p].holds(p).disk.rows {
				if fresh[k] == nil || fresh[k].String() != row.String() {
					s.fail("table: a fresh recovery of %s[%s] gives %v, the owner has %v", g.name, k, fresh[k], row)
				}
			}
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

func sortedVG[V any](m map[VG]V) []VG {
	var out []VG
	for k := range m {
		out = append(out, k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].less(out[j]) })
	return out
}
