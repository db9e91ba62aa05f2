package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
)

// How the model's values and those of the ledger correspond: a step is a second, an offset o is the version o+1, a content
// is its hash.

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const forwarder = 7 // the partition that every forwarded record comes from

func at(step int) time.Time { return epoch.Add(time.Duration(step) * time.Second) }

func contentHash(content string) rag.Hash { return rag.ContentIdentity(rag.Hash{}, content) }

func identityHash(content string) rag.Hash {
	return rag.ContentIdentity(contentHash(content), "settings")
}

func revision(vg VG) rag.Revision { return rag.Revision{Version: rag.Version(vg.V), Generation: vg.G} }

func removalOf(d DueRemoval) rag.Removal {
	return rag.Removal{Exact: d.Exact, Revision: revision(d.VG)}
}

func statusOf(s string) rag.Status {
	if s == "retry" {
		return rag.StatusRetrying
	}
	return rag.Status(s)
}

func ledgerSettings(keep int) ledger.Settings {
	return ledger.Settings{Attempts: maxAttempts, RemovalDelay: removalDelay * time.Second,
		Backoff: func(int) time.Duration { return retryDelay * time.Second }, Keep: ledger.Keep{For: -1, Count: keep}}
}

func incoming(rec *Rec, off int) ledger.Incoming {
	in := ledger.Incoming{MessageID: rec.Msg, ForeignID: foreignID(rec.Doc, off+1), Hash: contentHash(rec.Content), Delete: rec.Kind == "del",
		Version: rag.Version(off + 1), At: epoch}
	if !in.Delete {
		in.Identity = identityHash(rec.Content)
	}
	if rec.Origin > 0 {
		in.Origin = &ledger.Origin{Partition: forwarder, Offset: int64(rec.Origin - 1)}
	}
	return in
}

func progressOf(rec *Rec) rag.Progress {
	p := rag.Progress{Subject: rag.Subject{DocumentID: rec.Doc, MessageID: rec.Msg, Revision: revision(rec.VG), Attempt: rec.Att}}
	switch rec.Kind {
	case "manifest":
		p.Kind, p.Count, p.ContentIdentity = rag.ProgressManifest, rec.N, identityHash(rec.Content)
	case "verdict":
		p.Kind, p.Status, p.Base = rag.ProgressVerdict, statusOf(rec.Status), rag.Version(rec.Base)
		p.Failure = &rag.Failure{Stage: cmp.Or(rec.Stage, rag.StageChunker), Class: rag.ClassTransient, Reason: rec.Status}
	case "delete":
		p.Kind = rag.ProgressDelete
	case "receipt":
		p.Kind = rag.ProgressReceipt
		for i := range 8 {
			if rec.N&(1<<i) != 0 {
				p.Confirmed = append(p.Confirmed, rag.IndexRange{From: i, To: i + 1})
			}
		}
	case "removed":
		p.Kind, p.Removal, p.Due = rag.ProgressRemoved, removalOf(rec.Due), at(rec.N)
	}
	return p
}

func rawOf(rec *Rec) rag.Raw {
	if rec == nil {
		return rag.Raw{}
	}
	return rag.Raw{Key: []byte(rec.Doc), Value: []byte(rec.Content)}
}

func commandOf(rec *Rec) rag.Command {
	c := rag.Command{LetterID: rec.Key, Subject: rag.Subject{DocumentID: rec.Doc, MessageID: rec.Msg, Revision: revision(rec.VG), Attempt: rec.Att}}
	switch {
	case rec.Kind == "cmd":
		c.Kind = rag.CommandReplay
	case rec.Kind == "due":
		c.Kind = rag.CommandDue
	case rec.Kind == "discard":
		c.Kind = rag.CommandDiscard
	case rec.Status == "retrying":
		c.Kind, c.Original = rag.CommandSchedule, rawOf(rec.Raw)
	default:
		c.Kind, c.Status = rag.CommandClose, statusOf(rec.Status)
	}
	return c
}

func letterOf(rec *Rec) rag.Letter {
	return rag.Letter{ID: rec.Key, Subject: rag.Subject{DocumentID: rec.Doc, MessageID: rec.Msg, Revision: revision(rec.VG), Attempt: rec.Att}, Original: rawOf(rec.Raw)}
}

// The rows, told in the same words. What one side does not have is left out: on the model's, times and failures.

func tellChunker(r *ChunkerRow) string {
	msgs := map[string]string{}
	for id, m := range r.Msgs {
		msgs[id] = fmt.Sprintf("%d %x", m.V, contentHash(m.Content))
	}
	return fmt.Sprintf("latest %d forgot %d forward %d %v", r.Latest, r.Forgot, r.Forward, msgs)
}

func tellLedgerChunker(r *ledger.ChunkerRow) string {
	if r == nil {
		return tellChunker(newChunkerRow())
	}
	msgs := map[string]string{}
	for id, m := range r.Messages {
		msgs[id] = fmt.Sprintf("%d %x", m.Version, m.Hash)
	}
	return fmt.Sprintf("latest %d forgot %d forward %d %v", r.Latest, r.Forgotten, r.Forwarded[forwarder], msgs)
}

func tellDoc(r *DocRow) string {
	work, finals, due := map[rag.Revision]string{}, map[string]string{}, map[rag.Removal]time.Time{}
	for vg, w := range r.Work {
		work[revision(vg)] = fmt.Sprintf("%s n%d bits%b a%d retry%d %x", w.Msg, w.N, w.Bits, w.Att, offsetOf(w.RetryCause)+1, identityIf(w.N > 0, w.Content))
	}
	for id, f := range r.Finals {
		finals[id] = fmt.Sprintf("%v %s a%d by %d", revision(f.VG), f.Status, f.Att, offsetOf(f.Cause)+1)
	}
	for d, step := range r.Due {
		due[removalOf(d)] = at(step)
	}
	return fmt.Sprintf("applied %d fence %d floor %d heard %d served %v n%d %x\nwork %v\nfinals %v\ndue %v", r.Applied+1, r.Fence, r.Floor, r.Heard,
		revision(r.Served.VG), r.Served.N, identityIf(r.Served.N > 0, r.Served.Content), work, finals, due)
}

func tellLedgerDoc(r *ledger.DocumentRow) string {
	if r == nil {
		return tellDoc(newDocRow())
	}
	work, finals := map[rag.Revision]string{}, map[string]string{}
	for rev, w := range r.Work {
		bits := 0
		for i := range 8 {
			if w.Confirmed.Has(i) {
				bits |= 1 << i
			}
		}
		work[rev] = fmt.Sprintf("%s n%d bits%b a%d retry%d %x", w.MessageID, w.Count, bits, w.Attempt, w.RetryCause, w.ContentIdentity)
	}
	for id, f := range r.Finals {
		finals[id] = fmt.Sprintf("%v %s a%d by %d", f.Revision, f.Status, f.Attempt, f.Cause)
	}
	return fmt.Sprintf("applied %d fence %d floor %d heard %d served %v n%d %x\nwork %v\nfinals %v\ndue %v", r.Applied, r.Fence, r.Floor, r.Heard,
		r.Served.Revision, r.Served.Count, r.Served.ContentIdentity, work, finals, maps.Clone(r.Due))
}

func identityIf(known bool, content string) rag.Hash {
	if !known {
		return rag.Hash{}
	}
	return identityHash(content)
}

// offsetOf is the offset in a position of the model; -1 for none.
func offsetOf(pos string) int {
	off := -1
	if i := slices.Index([]byte(pos), '@'); i >= 0 {
		_, _ = fmt.Sscanf(pos[i+1:], "%d", &off) // the model wrote it
	}
	return off
}

func tellLetter(r *LetterRow) string {
	if r == nil || r.State == "" {
		return "none"
	}
	return fmt.Sprintf("%s g%d a%d of %s by %d", r.State, r.Gen, r.Att, r.Msg, offsetOf(r.Cause)+1)
}

func tellLedgerLetter(r *ledger.LetterRow) string {
	if r == nil {
		return "none"
	}
	return fmt.Sprintf("%s g%d a%d of %s by %d", r.State, r.Subject.Revision.Generation, r.Subject.Attempt, r.Subject.MessageID, r.Cause)
}

// tellSaid is what a document row says: events, and what the dead-letter group is told.
func tellSaid(outs []out) (said []string) {
	for _, o := range outs {
		said = append(said, fmt.Sprintf("%s to %s: %s %v a%d", o.rec.Status, topicName[o.topic], o.rec.Msg, revision(o.rec.VG), o.rec.Att))
	}
	slices.Sort(said)
	return said
}

func tellLedgerSaid(words []ledger.Word) (said []string) {
	for _, w := range words {
		if w.Status == rag.StatusEmbedded {
			continue // the model does not know it
		}
		said = append(said, fmt.Sprintf("%s to events: %s %v a0", w.Status, w.Subject.MessageID, w.Subject.Revision))
		topic := map[ledger.LetterWord]string{ledger.LetterDead: "dead-letters", ledger.LetterSchedule: "commands", ledger.LetterClose: "commands"}[w.Letter]
		if topic != "" {
			said = append(said, fmt.Sprintf("%s to %s: %s %v a%d", w.Status, topic, w.Subject.MessageID, w.Subject.Revision, w.Subject.Attempt))
		}
	}
	slices.Sort(said)
	return said
}
