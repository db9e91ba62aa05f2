package model

import (
	"slices"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// ---------------------------------------------------------------- indexer

// nextProgress: one of the records on their way arrives.
func (h *history) nextProgress() {
	if len(h.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(h.pending)-1).Draw(h.t, "pending")
	rec := h.pending[i]
	h.pending = slices.Delete(h.pending, i, i+1)
	h.append(rec)
}

// subject is a record about some generation of a version that was submitted.
func (h *history) subject(kind string) *Rec {
	if len(h.documents) == 0 {
		h.submit()
	}
	vg := VG{rapid.IntRange(1, len(h.documents)).Draw(h.t, "version"), rapid.IntRange(0, 2).Draw(h.t, "generation")}
	d := h.documents[vg.V-1]
	rec := &Rec{Kind: kind, Key: theDocument, Doc: theDocument, VG: vg, Msg: h.ids[vg.V], Content: d.Content}
	if rec.Content == "" {
		rec.Content = "B1" // (a delete has no chunks; somebody says that it has)
	}
	return rec
}

// anyProgress is a record that somebody might write: a zombie, a wrong program.
func (h *history) anyProgress() {
	rec := h.subject(pick(h, "kind", []string{"manifest", "delete", "verdict", "verdict"}))
	rec.Att = rapid.IntRange(0, 2).Draw(h.t, "attempt")
	switch rec.Kind {
	case "manifest":
		rec.N = chunksOf(rec.Content)
	case "verdict":
		rec.Status = pick(h, "status", []string{"dead", "retry", "retry", "unchanged", "superseded"})
		rec.Base = h.doc.model.Served.VG.V
		if rec.Status == "dead" || rec.Status == "retry" {
			rec.Stage = pick(h, "stage", []string{"", "embedder"})
		}
	}
	h.append(rec)
}

// receipt: of what is in work, mostly; of something that has ended, or never was.
func (h *history) receipt() {
	rec := h.subject("receipt")
	if work := sortedVG(h.doc.model.Work); len(work) > 0 && rapid.IntRange(0, 4).Draw(h.t, "stray") > 0 {
		rec.VG = pick(h, "in work", work)
		w := h.doc.model.Work[rec.VG]
		rec.Msg, rec.Content = w.Msg, w.Content
	}
	rec.N = rapid.IntRange(1, 1<<chunksOf(rec.Content)-1).Draw(h.t, "chunks")
	h.append(rec)
}

// removed: a due removal was done, perhaps one that was scheduled again since.
func (h *history) removed() {
	rec := &Rec{Kind: "removed", Key: theDocument, Doc: theDocument, Due: DueRemoval{rapid.Bool().Draw(h.t, "exact"), h.subject("").VG}}
	for d, step := range h.doc.model.Due {
		if rec.N == 0 || step < rec.N || step == rec.N && d.VG.less(rec.Due.VG) || step == rec.N && d.VG == rec.Due.VG && d.Exact {
			rec.Due, rec.N = d, step
		}
	}
	first, due, ok := ledger.FirstDue(h.doc.ledger)
	if rec.N > 0 {
		h.equal("first due", []any{removalOf(rec.Due), at(rec.N), true}, []any{first, due, ok})
	}
	rec.N -= rapid.IntRange(0, 1).Draw(h.t, "earlier")
	h.append(rec)
}

func (h *history) redeliverProgress() {
	if len(h.progress) > 0 {
		off := rapid.IntRange(0, len(h.progress)-1).Draw(h.t, "offset")
		h.apply(h.progress[off], off)
	}
}

func (h *history) append(rec *Rec) {
	h.progress = append(h.progress, rec)
	h.apply(rec, len(h.progress)-1)
}

// apply gives one record of the progress log to both indexers.
func (h *history) apply(rec *Rec, off int) {
	cause, position := pos(TProgress, off), rag.Version(off+1)
	row, now := h.sim.ruleIndex(h.doc.model, rec, cause, off)
	if len(now) > 0 {
		h.t.Fatal("the model removes at once")
	}
	before := h.doc.ledger
	h.doc.model = row
	h.doc.ledger = ledger.ApplyProgress(before, progressOf(rec), position, at(h.now), ledgerSettings(h.keep))
	if before != nil && position <= before.Applied && h.doc.ledger != before {
		h.t.Fatal("a redelivery changes the row")
	}
	h.sameDocRow("after " + describe(rec))
	said := h.sim.say(theDocument, row, cause)
	h.equal("said after "+describe(rec), tellSaid(said), tellLedgerSaid(ledger.Say(theDocument, h.doc.ledger, position)))
	h.said = append(h.said, said...)
}

func (h *history) sameDocRow(when string) {
	h.t.Helper()
	h.equal("document row "+when, tellDoc(h.doc.model), tellLedgerDoc(h.doc.ledger))
	h.docs = append(h.docs, h.doc)
}

// ask: the fence before a write, and what is confirmed.
func (h *history) ask() {
	rec := h.subject("vector")
	h.equal("fence", h.sim.fenceAllows(h.doc.model, rec.Msg, rec.VG), ledger.FenceAllows(h.doc.ledger, rec.Msg, revision(rec.VG)))
	i := rapid.IntRange(0, 2).Draw(h.t, "index")
	h.equal("confirmed", h.doc.model.Work[rec.VG].Bits&(1<<i) != 0, ledger.Confirmed(h.doc.ledger, revision(rec.VG), i))
	cur, ok := ledger.Latest(h.doc.ledger)
	for vg := range h.doc.model.Work {
		if !ok || cur.Revision.Less(revision(vg)) {
			h.t.Fatalf("%v is in work, the latest is %v", vg, cur)
		}
	}
}

// ---------------------------------------------------------------- tracker, letters

// event: one of those on their way reaches the tracker; it may come again.
func (h *history) event() {
	var events []*Rec
	for _, o := range h.said {
		if o.topic == TEvents {
			events = append(events, o.rec)
		}
	}
	if len(events) == 0 {
		return
	}
	rec := pick(h, "event", events)
	key := foreignID(rec.Msg, rec.VG.V) // a forgotten id that came again is another submission
	p := h.tracker[key]
	if p.model == nil {
		p.model = &TrackRow{}
	}
	p.model = h.sim.ruleTracker(p.model, rec)
	p.ledger = ledger.ApplyEvent(p.ledger, rag.Event{Subject: rag.Subject{DocumentID: theDocument, MessageID: rec.Msg, Revision: revision(rec.VG), Attempt: rec.Att},
		Stage: "model", Status: statusOf(rec.Status), At: at(h.now)})
	h.tracker[key] = p
	h.equal("status of "+key, []any{p.model.Gen, p.model.Status}, []any{p.ledger.Revision.Generation, string(p.ledger.Status)})
}

// letter: one of the letters and commands that the indexer has said arrives.
func (h *history) letter() {
	var outs []out
	for _, o := range h.said {
		if o.topic != TEvents {
			outs = append(outs, o)
		}
	}
	if len(outs) == 0 {
		return
	}
	o := pick(h, "letter", outs)
	rec := *o.rec
	rec.Raw = h.documents[rec.VG.V-1]
	if o.topic == TLetters {
		h.dead(&rec)
		return
	}
	h.commands = append(h.commands, &rec)
	h.command(&rec, len(h.commands)-1)
}

// operator asks for a replay or a discard, or a timer writes its record.
func (h *history) operator() {
	if len(h.letters) == 0 {
		return
	}
	id := pick(h, "letter", sortedKeys(h.letters))
	l := h.letters[id].model
	rec := &Rec{Kind: pick(h, "command", []string{"cmd", "cmd", "due", "due", "discard"}), Key: id, Doc: theDocument, Msg: l.Msg}
	rec.VG = VG{offsetOf(id), l.Gen}
	if rec.Kind != "due" {
		rec.VG.G = max(0, rec.VG.G-rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(h.t, "an earlier failure"))
	} else {
		rec.Att = max(0, l.Att-rapid.IntRange(0, 1).Draw(h.t, "late"))
	}
	h.commands = append(h.commands, rec)
	h.command(rec, len(h.commands)-1)
}

func (h *history) redeliverCommand() {
	if len(h.commands) > 0 {
		off := rapid.IntRange(0, len(h.commands)-1).Draw(h.t, "offset")
		h.command(h.commands[off], off)
	}
}

func (h *history) dead(rec *Rec) {
	p := h.letterPair(rec.Key)
	_, p.model = h.sim.ruleLetters(p.model, rec, pos(TLetters, 0))
	p.ledger = ledger.ApplyLetter(p.ledger, letterOf(rec))
	h.sameLetter(rec, p)
}

func (h *history) command(rec *Rec, off int) {
	p := h.letterPair(rec.Key)
	outs, row := h.sim.ruleLetters(p.model, rec, pos(TCommands, off))
	next, replay, refused := ledger.ApplyCommand(p.ledger, commandOf(rec), topicName[TCommands], rag.Version(off+1))
	h.equal("a replay follows "+describe(rec), len(outs) > 0, replay != nil)
	for _, o := range outs {
		h.equal("replay", []any{revision(o.rec.VG), o.rec.Att, o.rec.Msg, rawOf(o.rec.Raw)},
			[]any{replay.Revision, replay.Attempt, replay.MessageID, replay.Original})
		h.replays = append(h.replays, o.rec)
	}
	asked := rec.Kind == "cmd" || rec.Kind == "discard"
	unchanged := row.State == p.model.State && row.Gen == p.model.Gen && len(outs) == 0
	past := p.model.Cause != "" && pos(TCommands, off) <= p.model.Cause
	h.equal("refused "+describe(rec), asked && unchanged && !past, refused)
	p.model, p.ledger = row, next
	h.sameLetter(rec, p)
}

func (h *history) letterPair(id string) pair[LetterRow, ledger.LetterRow] {
	p := h.letters[id]
	if p.model == nil {
		p.model = &LetterRow{}
	}
	return p
}

func (h *history) sameLetter(rec *Rec, p pair[LetterRow, ledger.LetterRow]) {
	h.t.Helper()
	h.equal("letter row after "+describe(rec), tellLetter(p.model), tellLedgerLetter(p.ledger))
	_, due := ledger.NextDue(p.ledger)
	h.equal("timer", p.model.State == "scheduled", due)
	old := h.letters[rec.Key]
	if p.ledger != nil && old.ledger != nil && old.model.order() != p.model.order() {
		h.equal("merged letter row", tellLetter(old.model.Merge(p.model).(*LetterRow)), tellLedgerLetter(ledger.MergeLetterRow(old.ledger, p.ledger)))
	}
	if p.ledger != nil {
		h.letters[rec.Key] = p
	}
}
