package model

import "fmt"

// The five groups: what each does with one record, as a sequence of steps. Between any two steps the scheduler may crash
// or pause the pod, move the partition, or run anybody else.

func pos(topic, off int) string { return fmt.Sprintf("%s@%05d", topicName[topic], off) }

// emit sends the outputs; every send is awaited before the message is done.
func (s *Sim) emit(t *Task, outs []out) {
	for _, o := range outs {
		t.step()
		s.send(t.pc.pod, o.topic, o.rec, t)
	}
}

func handleChunker(s *Sim, t *Task) {
	row, _ := t.row(t.rec.Key).(*ChunkerRow)
	if row == nil {
		row = newChunkerRow()
	}
	join, _ := s.views["join"].rows[t.rec.Key].(*DocRow)
	redelivery := t.topic == TDocs && row.Msgs[t.rec.Msg].V == s.versionOf(t.off)
	if home := part(t.rec.Key); home != t.pc.part { // forwarded once, with its message id and its origin
		c := *t.rec
		c.Origin, c.Idx = t.off+1, 0
		s.emit(t, []out{{TDocs, &c}})
		t.release()
		t.acked()
		return
	}
	outs, nrow := s.ruleChunker(row, join, t.rec, t.off)
	s.forget(nrow, t.pc.pod.group.committed[TDocs][t.pc.part])
	s.emit(t, outs)
	if !(redelivery && s.mut(MutRowNotWrittenAgain)) {
		t.setRow(t.rec.Key, nrow)
	}
	t.release()
	t.acked()
}

func handleEmbedder(s *Sim, t *Task) {
	rec := t.rec
	t.release() // batches run beside the partition's goroutine
	t.step()
	var o out
	switch {
	case s.poison(rec.Content, 'Q') && rec.Idx == 1:
		o = s.failed("embedder", rec, "dead")
	case s.embedFails(rec.Doc):
		o = s.failed("embedder", rec, "retry")
	default:
		if s.mut(MutCacheHitSaysNothing) && t.pc.pod.cache[rec.Key] {
			t.acked()
			return
		}
		t.pc.pod.cache[rec.Key] = true
		v := *rec
		v.Kind, v.Key = "vector", rec.Doc
		o = out{TVectors, &v}
	}
	if s.mut(MutTwoAuthors) && o.rec.Status == "dead" {
		s.send(t.pc.pod, TEvents, &Rec{Kind: "event", Key: s.eventKey(rec.Doc, rec.Msg), Doc: rec.Doc, Msg: rec.Msg, VG: rec.VG, Status: "dead"}, t)
	}
	s.emit(t, []out{o})
	t.acked()
}

// failed is the verdict of a stage that has one chunk in hand.
func (s *Sim) failed(stage string, chunk *Rec, status string) out {
	o := s.verdict(&Rec{Doc: chunk.Doc, Content: chunk.Content}, chunk.Msg, chunk.VG, chunk.Att, status, 0)[0]
	o.rec.Stage = stage
	return o
}

func (s *Sim) embedFails(doc string) bool {
	if s.embedFaults == 0 || s.transients[doc] >= maxAttempts-1 {
		return false
	}
	s.embedFaults--
	s.transients[doc]++
	s.count("embed transient")
	return true
}

// item is one chunk waiting for a batch.
type item struct {
	rec  *Rec
	done bool
}

func (t *Task) docRow() *DocRow { return t.docRowOf(t.rec.Doc) }
func (t *Task) docRowOf(doc string) *DocRow {
	if row, ok := t.row(doc).(*DocRow); ok {
		return row
	}
	return newDocRow()
}

func handleIndexer(s *Sim, t *Task) {
	rec, row, cause := t.rec, t.docRow(), pos(t.topic, t.off)
	if rec.Kind == "vector" {
		t.release()
		if !s.fenceAllows(row, rec.Msg, rec.VG) || row.Work[rec.VG].Bits&(1<<rec.Idx) != 0 {
			return
		}
		it := &item{rec: rec}
		t.pc.batch = append(t.pc.batch, it)
		if s.mut(MutCommitBeforeUpsert) {
			t.pc.finish(s, t)
		}
		t.wait(func() bool { return it.done })
		return
	}
	nrow, removals := s.ruleIndex(row, rec, cause, t.off)
	s.forgetFinals(nrow, pos(s.rowLog(), t.pc.pod.group.committed[s.rowLog()][t.pc.part]))
	if rec.Kind == "manifest" && s.mut(MutDropOnSeen) && row.Work[rec.VG].N != 0 {
		return
	}
	if s.fix(H9) { // what the row says is said once the row is durable
		t.setRow(rec.Doc, nrow)
		t.release()
		t.acked()
		s.emit(t, s.say(rec.Doc, nrow, cause))
	} else {
		s.emit(t, s.say(rec.Doc, nrow, cause))
		t.setRow(rec.Doc, nrow)
		t.release()
	}
	if s.fix(H3b) {
		t.acked()
	}
	for _, r := range removals {
		s.removal(t, rec.Doc, r)
	}
	t.acked()
}

// removal waits for the document's upserts in flight in this pod, then removes until the store acknowledges it.
func (s *Sim) removal(t *Task, doc string, r DueRemoval) {
	pod := t.pc.pod
	for {
		if !s.drop(RuleRemovalWaits) {
			t.wait(func() bool { return pod.upserts[doc] == 0 })
		}
		t.step()
		switch s.remove(pod, doc, r) {
		case "ok":
			return
		case "outage":
			t.wait(func() bool { return s.now >= s.storeDown })
		}
	}
}

// handleBatch writes a batch of chunks, object by object, and sends one receipt per version.
func handleBatch(s *Sim, t *Task) {
	type ver struct {
		doc, msg, content string
		vg                VG
	}
	var order []ver
	bits := map[ver]int{}
	var outs []out
	for _, it := range t.items {
		rec := it.rec
		v := ver{rec.Doc, rec.Msg, rec.Content, rec.VG}
	retry:
		t.step()
		if !t.session(s) {
			return // abandoned: no receipt, the offset stays uncommitted
		}
		if !s.fenceAllows(t.docRowOf(rec.Doc), rec.Msg, rec.VG) {
			continue
		}
		t.pc.pod.upserts[rec.Doc]++
		t.onDrop = func() { t.pc.pod.upserts[rec.Doc]-- }
		t.step()
		res := s.upsert(t.pc.pod, rec.Doc, rec.VG, rec.Idx, rec.Content)
		if res == "ambiguous" && s.mut(MutAmbiguousIsDone) {
			res = "ok"
		}
		if (res == "transient" || res == "rejected") && s.mut(MutItemErrorsIgnored) {
			res = "ok"
		}
		t.step()
		t.onDrop()
		t.onDrop = nil
		switch res {
		case "ok":
			if bits[v] == 0 {
				order = append(order, v)
			}
			bits[v] |= 1 << rec.Idx
		case "ambiguous":
			goto retry
		case "outage":
			if s.mut(MutOutageIsAttempt) {
				outs = append(outs, s.failed("indexer", rec, "retry"))
				continue
			}
			t.wait(func() bool { return s.now >= s.storeDown })
			goto retry
		case "transient":
			outs = append(outs, s.failed("indexer", rec, "retry"))
		case "rejected":
			outs = append(outs, s.failed("indexer", rec, "dead"))
		}
	}
	for _, v := range order {
		outs = append(outs, out{TProgress, &Rec{Kind: "receipt", Key: v.doc, Doc: v.doc, Msg: v.msg, Content: v.content, VG: v.vg, N: bits[v]}})
	}
	s.emit(t, outs)
	t.acked()
	for _, it := range t.items {
		it.done = true
	}
}

// handleDueRemoval runs when a removal of the row is due; its record `removed` clears the row.
func handleDueRemoval(s *Sim, t *Task) {
	if !t.session(s) {
		return
	}
	s.removal(t, t.rec.Doc, t.rec.Due)
	s.emit(t, []out{{s.rowLog(), &Rec{Kind: "removed", Key: t.rec.Doc, Doc: t.rec.Doc, Due: t.rec.Due, N: t.rec.N}}})
	t.acked()
}

func handleTracker(s *Sim, t *Task) {
	row, _ := t.row(t.rec.Key).(*TrackRow)
	if row == nil {
		row = &TrackRow{}
	}
	t.setRow(t.rec.Key, s.ruleTracker(row, t.rec))
	t.release()
	t.acked()
}

func handleLetters(s *Sim, t *Task) {
	row, _ := t.row(t.rec.Key).(*LetterRow)
	if row == nil {
		row = &LetterRow{}
	}
	outs, nrow := s.ruleLetters(row, t.rec, pos(t.topic, t.off))
	s.emit(t, outs)
	t.setRow(t.rec.Key, nrow)
	t.release()
	t.acked()
}

// handleDueRetry (H7 off): the timer sends the replay and writes the row itself; no offset holds it.
func handleDueRetry(s *Sim, t *Task) {
	row := t.row(t.rec.Key).(*LetterRow).Clone().(*LetterRow)
	row.State = "sent"
	t.setRow(t.rec.Key, row)
	s.emit(t, []out{s.replay(t.rec.Doc, t.rec.VG.V, row)})
	t.acked()
}
