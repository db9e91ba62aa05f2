package model

import "sort"

// fenceAllows: may a chunk of this version still be written?
func (s *Sim) fenceAllows(row *DocRow, msg string, vg VG) bool {
	return s.drop(RuleFenceBeforeWrite) || vg.V >= row.Fence && !row.ended(msg, vg) && !s.forgotten(row, vg)
}

// ended: the last word on the version was said in this generation.
func (r *DocRow) ended(msg string, vg VG) bool {
	f, ok := r.Finals[msg]
	return ok && !f.VG.less(vg)
}

// forgotten: the last word on the version was said and forgotten; nothing is said any more. Replays are never forgotten.
func (s *Sim) forgotten(row *DocRow, vg VG) bool {
	_, working := row.Work[vg]
	return vg.G == 0 && vg.V <= row.Floor && !working && s.fix(H16) && (vg.V < row.Fence || s.fix(H15))
}

// hear notes of which versions the chunker has spoken. Its first words on them come in their order, whatever overtakes
// them on the other topics.
func (r *DocRow) hear(rec *Rec) {
	if rec.VG.G == 0 && (rec.Kind == "manifest" || rec.Kind == "delete" || rec.Kind == "verdict" && rec.Stage == "") {
		r.Heard = max(r.Heard, rec.VG.V)
	}
}

// final records the last word on a version; a word once said in a generation is never changed.
// Its attempt is the highest that was scheduled, so that the letter of that attempt is closed.
func (s *Sim) final(row *DocRow, msg string, vg VG, status, cause string, att int) {
	if s.fix(H11) {
		att = max(att, row.Work[vg].Att)
	}
	delete(row.Work, vg)
	if !row.ended(msg, vg) {
		row.Finals[msg] = Final{vg, status, att, cause}
	}
}

// forgetFinals: as for message ids. A replayed version is never forgotten, nor one at or above the fence as long as an
// earlier one may still be new.
func (s *Sim) forgetFinals(row *DocRow, committed string) {
	ids := sortedKeys(row.Finals)
	if s.cfg.Keep == 0 || len(ids) <= s.cfg.Keep {
		return
	}
	sort.SliceStable(ids, func(i, j int) bool { return row.Finals[ids[i]].VG.less(row.Finals[ids[j]].VG) })
	for _, m := range ids[:len(ids)-s.cfg.Keep] {
		f := row.Finals[m]
		if f.VG.G > 0 && s.fix(H18) {
			continue
		}
		if f.Cause >= committed || f.VG.V >= row.Fence && f.VG.V > row.Heard && s.fix(H22) {
			return
		}
		delete(row.Finals, m)
		row.Floor = max(row.Floor, f.VG.V)
	}
}

// schedule adds a due removal to the row.
func (s *Sim) schedule(row *DocRow, exact bool, vg VG) {
	if exact && !s.fix(H2) || s.drop(RuleDueRemoval) {
		return
	}
	row.Due[DueRemoval{exact, vg}] = s.now + removalDelay
}

// moveFence: to the latest version that ended well (with H1 open: to the latest accepted version). What is in work below it
// is superseded.
func (s *Sim) moveFence(row *DocRow, v int, cause string) {
	row.Fence = max(row.Fence, v)
	for _, vg := range sortedVG(row.Work) {
		if vg.V < row.Fence {
			w := row.Work[vg]
			s.final(row, w.Msg, vg, "superseded", cause, w.Att)
			s.schedule(row, true, vg)
		}
	}
}

// complete: all chunks confirmed by the store.
func (s *Sim) complete(row *DocRow, vg VG, cause string) (removeNow []DueRemoval) {
	w, ok := row.Work[vg]
	if !ok || w.N == 0 || w.Bits != 1<<w.N-1 {
		return nil
	}
	first := row.first(vg)
	s.final(row, w.Msg, vg, "indexed", cause, w.Att)
	row.Served = Served{vg, w.N, w.Content}
	s.moveFence(row, vg.V, cause)
	return s.replaced(row, vg, first)
}

// first: the row has never known another version.
func (r *DocRow) first(vg VG) bool {
	for other := range r.Work {
		if other != vg {
			return false
		}
	}
	return r.Fence == 0 && len(r.Finals) == 0
}

// replaced: vg is served now (or deleted the document): what lies lower has to go.
func (s *Sim) replaced(row *DocRow, vg VG, first bool) []DueRemoval {
	if s.mut(MutNoStaleDelete) {
		return nil
	}
	if first && !s.drop(RuleFirstRemovesNothing) {
		return nil // the row shows that nothing lower was written
	}
	s.schedule(row, false, vg)
	if s.mut(MutRemoveAllOthers) {
		return []DueRemoval{{Exact: false, VG: VG{-vg.V, vg.G}}} // the store understands: all but vg
	}
	if s.fix(H3) {
		return nil
	}
	return []DueRemoval{{false, vg}}
}

// ruleIndex applies one record to the document row. With one log per document it is a function of row and record alone.
func (s *Sim) ruleIndex(row *DocRow, rec *Rec, cause string, off int) (nrow *DocRow, removeNow []DueRemoval) {
	row = row.Clone().(*DocRow)
	if s.fix(H4) {
		if off <= row.Applied && !s.drop(RuleApplied) {
			return row, s.again(row, cause)
		}
		row.Applied = max(off, row.Applied)
	}
	row.hear(rec)
	switch rec.Kind {
	case "removed":
		s.removed(row, rec)
		return row, nil
	case "receipt":
		return row, s.receipt(row, rec, cause)
	}
	vg, below := rec.VG, rec.VG.V < row.Fence
	if row.ended(rec.Msg, vg) {
		return row, s.again(row, cause)
	}
	if s.forgotten(row, vg) {
		return row, nil
	}
	if below {
		s.final(row, rec.Msg, vg, "superseded", cause, rec.Att)
		s.schedule(row, true, vg)
		return row, nil
	}
	switch rec.Kind {
	case "manifest":
		w := row.Work[vg]
		w.Msg, w.Content, w.N, w.Att = rec.Msg, rec.Content, rec.N, max(w.Att, rec.Att)
		row.Work[vg] = w
		if !s.fix(H1) {
			s.moveFence(row, vg.V, cause)
		}
		return row, s.complete(row, vg, cause)
	case "delete":
		first := row.first(vg)
		s.final(row, rec.Msg, vg, "deleted", cause, rec.Att)
		row.Served = Served{VG: vg}
		s.moveFence(row, vg.V, cause)
		return row, s.replaced(row, vg, first)
	case "verdict":
		s.applyVerdict(row, rec, cause)
	}
	return row, nil
}

// removed clears the removal that was done, unless it was scheduled again since.
func (s *Sim) removed(row *DocRow, rec *Rec) {
	if row.Due[rec.Due] <= rec.N {
		delete(row.Due, rec.Due)
	}
	if !s.fix(H4) && s.fix(H12) {
		row.Done[rec.Due] = max(row.Done[rec.Due], rec.N)
	}
}

// receipt: chunks that the store has acknowledged.
func (s *Sim) receipt(row *DocRow, rec *Rec, cause string) []DueRemoval {
	vg, below := rec.VG, rec.VG.V < row.Fence
	if row.ended(rec.Msg, vg) || below || s.forgotten(row, vg) {
		if row.Served.VG == vg {
			return s.again(row, cause)
		}
		return s.strayReceipt(row, vg, below)
	}
	w := row.Work[vg]
	w.Msg, w.Content = rec.Msg, rec.Content
	w.Bits |= rec.N
	row.Work[vg] = w
	return s.complete(row, vg, cause)
}

// strayReceipt: somebody wrote chunks of a version that has ended (a zombie, or a batch that was in flight).
func (s *Sim) strayReceipt(row *DocRow, vg VG, below bool) []DueRemoval {
	if s.drop(RuleStrayReceipt) {
		return nil
	}
	if !below {
		s.schedule(row, true, vg)
		return nil
	}
	if s.fix(H3) {
		row.Due[DueRemoval{true, vg}] = s.now + removalDelay
		return nil
	}
	return []DueRemoval{{true, vg}}
}

// again (H3 open): the redelivery of the record that completed a version repeats its removal.
func (s *Sim) again(row *DocRow, cause string) (r []DueRemoval) {
	if s.fix(H3) {
		return nil
	}
	for _, f := range row.Finals {
		if f.Cause == cause && (f.Status == "indexed" || f.Status == "deleted") && !s.mut(MutNoStaleDelete) {
			r = append(r, DueRemoval{false, f.VG})
		}
	}
	return r
}

func (s *Sim) applyVerdict(row *DocRow, rec *Rec, cause string) {
	vg, w := rec.VG, row.Work[rec.VG]
	switch rec.Status {
	case "unchanged":
		if rec.Base != row.Served.VG.V && !s.mut(MutUnchangedUnconfirmed) {
			s.assert("unchanged against v%d but v%d is served", rec.Base, row.Served.VG.V)
		}
		s.final(row, rec.Msg, vg, "unchanged", cause, rec.Att)
		s.moveFence(row, vg.V, cause)
		s.schedule(row, true, vg)
	case "superseded":
		if s.fix(H1) {
			s.assert("superseded verdict above the fence")
		}
		s.final(row, rec.Msg, vg, "superseded", cause, rec.Att)
		s.schedule(row, true, vg)
	case "retry": // transient: the next attempt, or dead
		if rec.Att < w.Att {
			return
		}
		if rec.Att+1 < maxAttempts {
			w.Msg, w.Att, w.RetryCause, w.Content = rec.Msg, rec.Att+1, cause, rec.Content
			row.Work[vg] = w
			return
		}
		fallthrough
	case "dead":
		s.final(row, rec.Msg, vg, "dead", cause, rec.Att)
		s.schedule(row, true, vg)
		if !s.fix(H1) {
			s.moveFence(row, vg.V, cause)
		}
	}
}

// say: everything that the record at `cause` made true, repeated on its redelivery.
func (s *Sim) say(doc string, row *DocRow, cause string) (o []out) {
	for _, msg := range sortedKeys(row.Finals) {
		f := row.Finals[msg]
		if f.Cause != cause {
			continue
		}
		o = append(o, out{TEvents, &Rec{Kind: "event", Key: s.eventKey(doc, msg), Doc: doc, Msg: msg, VG: f.VG, Status: f.Status}})
		if f.Status == "dead" || f.VG.G > 0 || f.Att > 0 {
			o = append(o, s.letter(doc, msg, f.VG, f.Att, f.Status))
		}
	}
	for _, vg := range sortedVG(row.Work) {
		if w := row.Work[vg]; w.RetryCause == cause {
			o = append(o, s.letter(doc, w.Msg, vg, w.Att, "retrying"))
			o = append(o, out{TEvents, &Rec{Kind: "event", Key: s.eventKey(doc, w.Msg), Doc: doc, Msg: w.Msg, VG: vg, Status: "retrying"}})
		}
	}
	return o
}

// letter carries the document record, read by position.
func (s *Sim) letter(doc, msg string, vg VG, att int, status string) out {
	raw := s.readDocument(doc, vg.V)
	if s.mut(MutLetterHoldsChunk) {
		raw = &Rec{Kind: "chunk", Doc: doc, Msg: msg, Content: "?"}
	}
	if s.mut(MutLetterReencoded) && raw != nil {
		c := *raw
		c.Content += " "
		raw = &c
	}
	topic := TLetters // what tools read: dead versions only
	if status != "dead" {
		topic = TCommands // schedules and closes
	}
	return out{topic, &Rec{Kind: "letter", Key: letterID(doc, vg.V), Doc: doc, Msg: msg, VG: vg, Att: att, Status: status, Raw: raw}}
}
