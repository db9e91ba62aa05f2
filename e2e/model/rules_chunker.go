package model

// The decisions of the protocol, one small function each. s.mut brings a mutant back, s.fix asks whether a hole is closed,
// s.drop leaves a rule out.

// maxAttempts is how often a version is tried in a generation.
const maxAttempts = 3

// chunksOf is the splitter: content -> number of chunks.
func chunksOf(content string) int {
	switch content[0] {
	case 'B':
		return 3
	case 'C':
		return 1
	}
	return 2
}

// poison: contents by first letter. A B C are healthy; P dies at the chunker, Q one chunk dies at the embedder, R one object
// is refused by the store, X fails there transiently for ever. An operator may fix the cause.
func (s *Sim) poison(content string, kind byte) bool { return content[0] == kind && !s.fixed[content] }

// out is a record on its way to a topic.
type out struct {
	topic int
	rec   *Rec
}

// versionOf is the offset of the record in its document's home partition, plus one.
func (s *Sim) versionOf(off int) int {
	if s.mut(MutWallClockVersions) {
		return s.now + 1
	}
	return off + 1
}

// identity is what a record's message id and position say.
type identity int

const (
	idNew identity = iota
	idRedelivery
	idDuplicate
	idReused
	idLater // forgotten, and used again since
)

// identify classifies a record by its message id and position.
func (s *Sim) identify(row *ChunkerRow, rec *Rec, v int) identity {
	if row.Msgs[foreignID(rec.Doc, v)].V == v && s.fix(H19) {
		return idReused
	}
	info, ok := row.Msgs[rec.Msg]
	switch {
	case !ok:
		return idNew
	case info.V == v:
		return idRedelivery
	case info.Content == rec.Content:
		return idDuplicate
	case info.V > v && s.fix(H13):
		return idLater
	}
	return idReused
}

// isUnchanged: the content is that of the version served now, and nothing later was accepted.
func (s *Sim) isUnchanged(row *ChunkerRow, join *DocRow, rec *Rec, v int) bool {
	if s.drop(RuleUnchanged) || join == nil || join.Served.N == 0 || join.Served.Content != rec.Content || join.Served.VG.V >= v {
		return false
	}
	if s.mut(MutUnchangedUnconfirmed) {
		return true
	}
	if !s.fix(H1) { // there the fence does not say that the version ended well
		return row.Latest == join.Served.VG.V || row.Latest == v && s.onlyLatestIs(row, join.Served.VG.V, v)
	}
	return row.Latest == join.Fence || row.Latest == v && join.Fence < v && s.onlyLatestIs(row, join.Fence, v)
}

// onlyLatestIs: on a redelivery of v nothing but v itself was accepted after the fence.
func (s *Sim) onlyLatestIs(row *ChunkerRow, fence, v int) bool {
	for _, m := range row.Msgs {
		if m.V > fence && m.V != v {
			return false
		}
	}
	return true
}

// reusedID: a record whose message id was used for other content is a version of its own.
func (s *Sim) reusedID(rec *Rec, v int) string {
	if s.fix(H5) {
		return foreignID(rec.Doc, v)
	}
	return rec.Msg
}

// isOld: the id is unknown only because it was forgotten: the position (here, or where it was forwarded from) is not above
// what the row has seen.
func (s *Sim) isOld(row *ChunkerRow, rec *Rec, v int) bool {
	return s.fix(H13) && v <= row.Latest || s.fix(H14) && rec.Origin > 0 && rec.Origin <= row.Forward
}

// forget keeps the cfg.Keep newest ids (0: all), and every one that is not committed yet.
func (s *Sim) forget(row *ChunkerRow, committed int) {
	for s.cfg.Keep > 0 && len(row.Msgs) > s.cfg.Keep {
		oldest := ""
		for m, i := range row.Msgs {
			if oldest == "" || i.V < row.Msgs[oldest].V {
				oldest = m
			}
		}
		if row.Msgs[oldest].V > committed {
			return
		}
		row.Forgot = max(row.Forgot, row.Msgs[oldest].V)
		delete(row.Msgs, oldest)
	}
}

// ruleChunker: what a record of documents or replays leads to.
func (s *Sim) ruleChunker(row *ChunkerRow, join *DocRow, rec *Rec, off int) (outs []out, nrow *ChunkerRow) {
	nrow = row.Clone().(*ChunkerRow)
	if rec.Kind == "replay" {
		return s.ruleReplay(row, join, rec), nrow
	}
	v := s.versionOf(off)
	vg := VG{v, 0}
	id := s.identify(row, rec, v)
	if id == idLater || id == idNew && s.isOld(row, rec, v) {
		return nil, nrow
	}
	nrow.Forward = max(nrow.Forward, rec.Origin)
	switch {
	case id == idReused:
		if s.fix(H10) {
			nrow.accept(foreignID(rec.Doc, v), rec, v)
		}
		return s.verdict(rec, s.reusedID(rec, v), vg, 0, "dead", 0), nrow
	case id == idDuplicate, id == idRedelivery && s.mut(MutDropOnSeen):
		return nil, nrow
	case id == idNew && v < row.Latest: // (with H13 open) a later version was accepted
		return s.verdict(rec, rec.Msg, vg, 0, "superseded", 0), nrow
	}
	unchanged := s.isUnchanged(row, join, rec, v)
	if id == idNew {
		nrow.accept(rec.Msg, rec, v)
	}
	switch {
	case join != nil && join.Fence > v && s.fix(H1) && !s.drop(RuleFenceAtChunker):
		return s.verdict(rec, rec.Msg, vg, 0, "superseded", 0), nrow
	case unchanged && rec.Kind == "put":
		return s.verdict(rec, rec.Msg, vg, 0, "unchanged", join.Served.VG.V), nrow
	}
	return s.process(rec, rec.Msg, vg, 0), nrow
}

// ruleReplay: version, generation and attempt travel with the document.
func (s *Sim) ruleReplay(row *ChunkerRow, join *DocRow, rec *Rec) []out {
	d := rec.Raw
	if d == nil {
		s.fail("I6: the letter of %s v%d does not hold the document record", rec.Doc, rec.VG.V)
		return nil
	}
	if replaySuperseded(join, rec.VG) || !s.fix(H1) && row.Latest > rec.VG.V {
		return s.verdict(d, rec.Msg, rec.VG, rec.Att, "superseded", 0)
	}
	return s.process(d, rec.Msg, rec.VG, rec.Att)
}

func replaySuperseded(join *DocRow, vg VG) bool { return join != nil && join.Fence > vg.V }

func (r *ChunkerRow) accept(id string, rec *Rec, v int) {
	r.Msgs[id] = MsgInfo{v, rec.Content}
	r.Latest = max(r.Latest, v)
}

// verdict tells the indexer how a version ended, or that it is to be tried again.
func (s *Sim) verdict(d *Rec, msg string, vg VG, att int, status string, base int) []out {
	o := []out{{s.rowLog(), &Rec{Kind: "verdict", Key: d.Doc, Doc: d.Doc, Msg: msg, VG: vg, Att: att, Status: status, Base: base, Content: d.Content}}}
	if status == "dead" && s.mut(MutTwoAuthors) {
		o = append(o, out{TEvents, &Rec{Kind: "event", Key: s.eventKey(d.Doc, msg), Doc: d.Doc, Msg: msg, VG: vg, Status: status}})
	}
	return o
}

// process: one chunk record per chunk and one manifest; or the delete; or the verdict on a poison document.
func (s *Sim) process(d *Rec, msg string, vg VG, att int) (o []out) {
	if d.Kind == "del" {
		return []out{{s.rowLog(), &Rec{Kind: "delete", Key: d.Doc, Doc: d.Doc, Msg: msg, VG: vg}}}
	}
	if s.poison(d.Content, 'P') {
		return s.verdict(d, msg, vg, att, "dead", 0)
	}
	n := chunksOf(d.Content)
	for i := range n {
		o = append(o, out{TChunks, &Rec{Kind: "chunk", Key: d.Content + string(rune('0'+i)), Doc: d.Doc, Msg: msg, Content: d.Content, VG: vg, Att: att, N: n, Idx: i}})
	}
	o = append(o, out{s.rowLog(), &Rec{Kind: "manifest", Key: d.Doc, Doc: d.Doc, Msg: msg, Content: d.Content, VG: vg, Att: att, N: n}})
	return append(o, out{TEvents, &Rec{Kind: "event", Key: s.eventKey(d.Doc, msg), Doc: d.Doc, Msg: msg, VG: vg, Status: "chunked"}})
}

// rowLog: everything that changes a document row travels on one topic, progress, so that all who ever own it see one order;
// vectors carries the vectors alone. With H4 open, manifests, verdicts and deletes share vectors with them.
func (s *Sim) rowLog() int {
	if s.fix(H4) {
		return TProgress
	}
	return TVectors
}

// eventKey: a message id is scoped to its document, and so is the tracker's row.
func (s *Sim) eventKey(doc, msg string) string {
	if s.fix(H17) {
		return doc + "/" + msg
	}
	return msg
}
