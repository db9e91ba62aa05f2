package model

import "strings"

// ruleTracker: a status never goes back.
func (s *Sim) ruleTracker(row *TrackRow, rec *Rec) *TrackRow {
	return (&TrackRow{row.Gen, row.Status}).Merge(&TrackRow{rec.VG.G, rec.Status}).(*TrackRow)
}

// ruleLetters: letters, their schedules and closes, timers and what operators ask for.
func (s *Sim) ruleLetters(row *LetterRow, rec *Rec, cause string) (o []out, nrow *LetterRow) {
	n := row.Clone().(*LetterRow)
	command := strings.HasPrefix(cause, topicName[TCommands]+"@")
	if command && row.Cause != "" && cause <= row.Cause && s.fix(H20) { // it has had its effect; its output may be lost
		if cause == row.Cause && row.runs() {
			o = []out{s.replay(rec.Doc, rec.VG.V, n)}
		}
		return o, n
	}
	switch rec.Kind {
	case "letter":
		in := letterRow(s.now, rec)
		if row.State != "" && in.order() <= row.order() {
			return nil, n
		}
		if s.fix(H20) {
			in.Cause = row.Cause
			if command {
				in.Cause = cause
			}
		}
		return nil, in
	case "cmd":
		if row.Cause == cause && row.State == "replaying" {
			break // redelivery
		}
		if row.State != "waiting" || s.fix(H21) && row.Gen != rec.VG.G {
			return nil, n // refused: running, after success, or another failure than the one that was seen
		}
		n.State, n.Gen, n.Att, n.Cause = "replaying", row.Gen+1, 0, cause
	case "due":
		if row.Cause == cause && row.State == "sent" {
			break
		}
		if row.State != "scheduled" || row.Gen != rec.VG.G || row.Att != rec.Att {
			return nil, n
		}
		n.State, n.Cause = "sent", cause
	case "discard":
		if row.State == "waiting" && (row.Gen == rec.VG.G || !s.fix(H21)) {
			n.State = "discarded"
			if s.fix(H20) {
				n.Cause = cause
			}
		}
		return nil, n
	}
	return []out{s.replay(rec.Doc, rec.VG.V, n)}, n
}

// letterRow is the row that a letter, a schedule or a close asks for.
func letterRow(now int, rec *Rec) *LetterRow {
	in := &LetterRow{State: "resolved", Gen: rec.VG.G, Att: rec.Att, Msg: rec.Msg, Raw: rec.Raw}
	switch rec.Status {
	case "retrying":
		in.State, in.Due = "scheduled", now+retryDelay
	case "dead":
		in.State = "waiting"
	case "superseded":
		in.State = "superseded"
	}
	return in
}

// replay: the document again, with its version, generation and attempt; into replays, never into documents.
func (s *Sim) replay(doc string, v int, row *LetterRow) out {
	return out{TReplays, &Rec{Kind: "replay", Key: doc, Doc: doc, Msg: row.Msg, VG: VG{v, row.Gen}, Att: row.Att, Raw: row.Raw}}
}
