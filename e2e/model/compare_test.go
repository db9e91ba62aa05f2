package model

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// TestTheLedgerDecidesAsTheModelDoes drives the rules of the model and those of rag/ledger with the same histories of one
// document, and compares every decision and every row. The histories need not be ones that the protocol makes: records
// come in any order, again and again, with every verdict.
func TestTheLedgerDecidesAsTheModelDoes(t *testing.T) {
	for _, keep := range []int{0, 2} {
		t.Run(fmt.Sprintf("keep %d", keep), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				h := newHistory(t, keep)
				for range rapid.IntRange(1, 200).Draw(t, "length") {
					h.now += rapid.IntRange(1, 50).Draw(t, "steps")
					h.sim.now = h.now
					h.actions[rapid.SampledFrom(h.names).Draw(t, "action")]()
				}
			})
		})
	}
}

const theDocument = "d0"

// history is one document, as the model has it and as the ledger has it.
type history struct {
	t       *rapid.T
	sim     *Sim
	keep    int
	now     int
	actions map[string]func()
	names   []string

	documents []*Rec
	ids       map[int]string // version -> the message id whose status it has
	chunker   pair[ChunkerRow, ledger.ChunkerRow]
	progress  []*Rec // the log
	pending   []*Rec // progress records on their way
	doc       pair[DocRow, ledger.DocumentRow]
	docs      []pair[DocRow, ledger.DocumentRow] // as they were, for late joins and zombies
	chunkers  []pair[ChunkerRow, ledger.ChunkerRow]
	said      []out // events, letters and commands on their way
	commands  []*Rec
	letters   map[string]pair[LetterRow, ledger.LetterRow]
	replays   []*Rec
	tracker   map[string]pair[TrackRow, ledger.TrackerRow]
}

type pair[M, L any] struct {
	model  *M
	ledger *L
}

func newHistory(t *rapid.T, keep int) *history {
	h := &history{t: t, sim: New(Cfg{Seed: 1, Events: []Ev{}, NoAssert: true, Keep: keep}), keep: keep, ids: map[int]string{},
		letters: map[string]pair[LetterRow, ledger.LetterRow]{}, tracker: map[string]pair[TrackRow, ledger.TrackerRow]{}}
	h.chunker.model, h.doc.model = newChunkerRow(), newDocRow()
	h.docs = append(h.docs, h.doc)
	h.chunkers = append(h.chunkers, h.chunker)
	weights := map[string]int{"submit": 4, "redeliver document": 3, "progress": 6, "receipt": 6, "letter": 3, "operator": 3}
	h.actions = map[string]func(){
		"submit": h.submit, "redeliver document": h.redeliver, "replay": h.replay,
		"progress": h.nextProgress, "any progress": h.anyProgress, "receipt": h.receipt, "redeliver progress": h.redeliverProgress,
		"removed": h.removed, "forget": h.forget, "ask": h.ask, "letter": h.letter, "operator": h.operator,
		"redeliver command": h.redeliverCommand, "event": h.event, "merge": h.merge,
	}
	for _, name := range slices.Sorted(maps.Keys(h.actions)) {
		for range max(1, weights[name]) {
			h.names = append(h.names, name)
		}
	}
	return h
}

func pick[T any](h *history, what string, from []T) T {
	return from[rapid.IntRange(0, len(from)-1).Draw(h.t, what)]
}

func (h *history) equal(what string, model, ledger any) {
	h.t.Helper()
	if !reflect.DeepEqual(model, ledger) {
		h.t.Fatalf("%s\nmodel:  %v\nledger: %v", what, model, ledger)
	}
}

// ---------------------------------------------------------------- chunker

func (h *history) submit() {
	rec := &Rec{Kind: "put", Key: theDocument, Doc: theDocument, Msg: fmt.Sprintf("m%d", len(h.documents)), Content: pick(h, "content", []string{"A1", "C1", "C1", "B1", "P1"})}
	if rapid.IntRange(0, 5).Draw(h.t, "delete") == 0 {
		rec.Kind, rec.Content = "del", ""
	}
	if len(h.documents) > 0 && rapid.IntRange(0, 2).Draw(h.t, "again") == 0 { // resent or reused
		rec.Msg = pick(h, "sent before", h.documents).Msg
	}
	if rapid.IntRange(0, 4).Draw(h.t, "forwarded") == 0 {
		rec.Origin = rapid.IntRange(1, 5).Draw(h.t, "origin")
	}
	h.documents = append(h.documents, rec)
	h.ids[len(h.documents)] = foreignID(theDocument, len(h.documents)) // of a duplicate it stays so
	h.chunk(rec, len(h.documents)-1)
}

func (h *history) redeliver() {
	if len(h.documents) > 0 {
		off := rapid.IntRange(0, len(h.documents)-1).Draw(h.t, "offset")
		h.chunk(h.documents[off], off)
	}
}

func (h *history) chunk(rec *Rec, off int) {
	join := pick(h, "join", h.docs)
	v := off + 1
	again := h.chunker.model.Msgs[rec.Msg].V == v || h.chunker.model.Msgs[foreignID(rec.Doc, v)].V == v
	outs, row := h.sim.ruleChunker(h.chunker.model, join.model, rec, off)
	d := ledger.DecideDocument(h.chunker.ledger, join.ledger, incoming(rec, off))
	h.equal("outputs of "+describe(rec), tellOuts(outs), tellOuts(h.decided(d, rec, v)))
	if len(outs) > 0 {
		h.ids[v] = d.MessageID
		h.equal("redelivery", again, d.Redelivery)
	}
	h.chunker.model = row
	if d.Row != nil {
		h.chunker.ledger = d.Row
	}
	h.sameChunkerRow("after " + describe(rec))
	h.emit(outs)
}

// decided is what a chunker emits by the ledger's decision.
func (h *history) decided(d ledger.ChunkerDecision, rec *Rec, v int) []out {
	switch d.Action {
	case ledger.ActProcess:
		return h.sim.process(rec, d.MessageID, VG{V: v}, 0)
	case ledger.ActUnchanged:
		return h.sim.verdict(rec, d.MessageID, VG{V: v}, 0, "unchanged", int(d.Base))
	case ledger.ActSuperseded:
		return h.sim.verdict(rec, d.MessageID, VG{V: v}, 0, "superseded", 0)
	case ledger.ActReused:
		return h.sim.verdict(rec, d.MessageID, VG{V: v}, 0, "dead", 0)
	case ledger.ActDuplicate, ledger.ActOld:
		return nil
	}
	h.t.Fatalf("no action %v", d.Action)
	return nil
}

func tellOuts(outs []out) (told []string) {
	for _, o := range outs {
		told = append(told, fmt.Sprintf("%s: %s base %d", topicName[o.topic], describe(o.rec), o.rec.Base))
	}
	return told
}

// emit puts what the chunker says on its way; a crash may lose a part of it.
func (h *history) emit(outs []out) {
	for _, o := range outs {
		switch o.topic {
		case TProgress:
			h.pending = append(h.pending, o.rec)
		case TEvents:
			h.said = append(h.said, o)
		}
	}
}

func (h *history) replay() {
	if len(h.replays) == 0 {
		return
	}
	rec := pick(h, "replay", h.replays)
	join := pick(h, "join", h.docs)
	h.equal("replay below the fence", replaySuperseded(join.model, rec.VG), ledger.ReplaySuperseded(join.ledger, revision(rec.VG)))
	if rec.Raw != nil {
		outs, _ := h.sim.ruleChunker(h.chunker.model, join.model, rec, 0)
		h.emit(outs)
	}
}

func (h *history) sameChunkerRow(when string) {
	h.t.Helper()
	h.equal("chunker row "+when, tellChunker(h.chunker.model), tellLedgerChunker(h.chunker.ledger))
	h.chunkers = append(h.chunkers, h.chunker)
}

// forget: both rows, up to some committed offset.
func (h *history) forget() {
	committed := rapid.IntRange(0, len(h.documents)).Draw(h.t, "committed documents")
	row := h.chunker.model.Clone().(*ChunkerRow)
	h.sim.forget(row, committed)
	h.chunker.model = row
	doc := h.doc.model.Clone().(*DocRow)
	committedProgress := rapid.IntRange(0, len(h.progress)).Draw(h.t, "committed progress")
	h.sim.forgetFinals(doc, pos(TProgress, committedProgress))
	h.doc.model = doc
	if h.keep > 0 {
		k := ledgerSettings(h.keep).Keep
		h.chunker.ledger = ledger.ForgetMessages(h.chunker.ledger, rag.Version(committed+1), at(h.now), k)
		h.doc.ledger = ledger.ForgetFinals(h.doc.ledger, rag.Version(committedProgress+1), at(h.now), k)
	}
	h.sameChunkerRow("after forgetting")
	h.sameDocRow("after forgetting")
}

// merge: what a zombie's late row makes of the owner's.
func (h *history) merge() {
	old := pick(h, "chunker's zombie", h.chunkers)
	merged := pair[ChunkerRow, ledger.ChunkerRow]{h.chunker.model.Merge(old.model).(*ChunkerRow), ledger.MergeChunkerRow(h.chunker.ledger, old.ledger)}
	h.equal("merged chunker row", tellChunker(merged.model), tellLedgerChunker(merged.ledger))
	h.chunker = merged
	was := pick(h, "indexer's zombie", h.docs)
	if was.model.Applied != h.doc.model.Applied { // of equal ones the model takes any
		h.equal("merged document row", tellDoc(h.doc.model.Merge(was.model).(*DocRow)), tellLedgerDoc(ledger.MergeDocumentRow(h.doc.ledger, was.ledger)))
	}
}
