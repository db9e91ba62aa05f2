package ledger

import (
	"bytes"
	"cmp"
	"maps"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
)

// Origin is the position of a record that was forwarded to its document's home partition.
type Origin struct {
	Partition int32
	Offset    int64
}

// Incoming is a record of the documents topic as the chunker identifies it, in its document's home partition.
type Incoming struct {
	MessageID string
	// ForeignID is the position of the record as an id: under it a record dies that reuses a message id.
	ForeignID string
	Hash      rag.Hash // of the submission
	Identity  rag.Hash // of the content; zero for a delete
	Delete    bool
	Version   rag.Version
	At        time.Time // timestamp of the record
	Origin    *Origin   // nil unless it was forwarded
}

// ChunkerAction says what the chunker does with a document record.
type ChunkerAction int

// What may follow from a document record.
const (
	// ActProcess: parse, split and emit, or pass the delete on.
	ActProcess ChunkerAction = iota + 1
	// ActUnchanged: the verdict unchanged, against ChunkerDecision.Base.
	ActUnchanged
	// ActSuperseded: the verdict superseded; a later version has ended well already.
	ActSuperseded
	// ActReused: the verdict dead (message_id_reused), under ChunkerDecision.MessageID.
	ActReused
	// ActDuplicate: the same submission came before; no output.
	ActDuplicate
	// ActOld: its id was forgotten, offsets were reset or it was forwarded again; no output.
	ActOld
)

func (a ChunkerAction) String() string {
	switch a {
	case ActProcess:
		return "process"
	case ActUnchanged:
		return "unchanged"
	case ActSuperseded:
		return "superseded"
	case ActReused:
		return "reused"
	case ActDuplicate:
		return "duplicate"
	case ActOld:
		return "old"
	}
	return "none"
}

// ChunkerDecision is what a document record means.
type ChunkerDecision struct {
	Action ChunkerAction
	// Redelivery: this very record was handled before. Its outputs are emitted and its row is written all the same.
	Redelivery bool
	MessageID  string      // whose status the outputs speak of
	Base       rag.Version // unchanged: the served version that it was compared with
	Row        *ChunkerRow // to be written after the outputs; nil: the row stays as it is
}

// DecideDocument says what a document record means. row is the chunker's row of the document, join the indexer's row as
// it is seen from here, which may be late; both may be nil and neither is changed.
func DecideDocument(row *ChunkerRow, join *DocumentRow, in Incoming) ChunkerDecision {
	if row == nil {
		row = &ChunkerRow{}
	}
	switch known := identify(row, in); {
	case known == idOld:
		return ChunkerDecision{Action: ActOld, MessageID: in.MessageID}
	case known == idDuplicate || known == idRedelivery && mutant.Active == mutant.DropOnSeen:
		d := ChunkerDecision{Action: ActDuplicate, MessageID: in.MessageID}
		if next := row.clone(); next.forwarded(in) {
			d.Row = next
		}
		return d
	case known == idReused || known == idReusedAgain:
		// Dead ones count as accepted: a replay may still make them the version that is served.
		return ChunkerDecision{Action: ActReused, Redelivery: known == idReusedAgain, MessageID: in.ForeignID,
			Row: row.accept(in, in.ForeignID)}
	default:
		d := ChunkerDecision{Action: ActProcess, Redelivery: known == idRedelivery, MessageID: in.MessageID,
			Row: row.accept(in, in.MessageID)}
		switch {
		case join != nil && join.Fence > in.Version:
			d.Action = ActSuperseded
		case isUnchanged(row, join, in):
			d.Action, d.Base = ActUnchanged, join.Served.Revision.Version
		}
		return d
	}
}

type identity int

const (
	idNew identity = iota
	idOld
	idRedelivery
	idDuplicate
	idReused
	idReusedAgain
)

// identify classifies a record by its message id and position.
func identify(row *ChunkerRow, in Incoming) identity {
	foreign, dead := row.Messages[in.ForeignID]
	dead = dead && in.ForeignID != in.MessageID
	if dead && foreign.Version == in.Version {
		return idReusedAgain // even if the id that it reused has been forgotten since
	}
	m, ok := row.Messages[in.MessageID]
	switch {
	case !ok && isOld(row, in):
		return idOld
	case !ok:
		return idNew
	case m.Version == in.Version:
		return idRedelivery
	case m.Hash == in.Hash:
		return idDuplicate
	case m.Version > in.Version:
		return idOld // its id was forgotten, and used again since
	case dead && in.Origin != nil && foreign.Hash == in.Hash:
		return idDuplicate // it was forwarded twice and has died already
	}
	return idReused
}

// isOld: the id is unknown only because it was forgotten, as the position, or the one that the record was forwarded from,
// is not above what the row has seen.
func isOld(row *ChunkerRow, in Incoming) bool {
	if in.Version <= row.Latest {
		return true
	}
	from, ok := in.originVersion()
	return ok && from <= row.Forwarded[in.Origin.Partition]
}

// originVersion is the position that the record was forwarded from, in the epoch in which it landed.
func (in Incoming) originVersion() (rag.Version, bool) {
	if in.Origin == nil {
		return 0, false
	}
	v, err := rag.NewVersion(in.Version.Epoch(), in.Origin.Offset)
	return v, err == nil
}

// isUnchanged: the content is that of the version served now, and nothing but this record was accepted above the fence.
func isUnchanged(row *ChunkerRow, join *DocumentRow, in Incoming) bool {
	if in.Delete || join == nil || join.Served.Count == 0 || join.Served.ContentIdentity != in.Identity ||
		join.Served.Revision.Version >= in.Version {
		return false
	}
	if row.Latest == join.Fence || mutant.Active == mutant.UnchangedUnconfirmed {
		return true
	}
	if row.Latest != in.Version {
		return false
	}
	for _, m := range row.Messages { // a redelivery: the row knows the record already
		if m.Version > join.Fence && m.Version != in.Version {
			return false
		}
	}
	return true
}

// accept is the row after the record was accepted under the id.
func (r *ChunkerRow) accept(in Incoming, id string) *ChunkerRow {
	next := r.clone()
	next.forwarded(in)
	next.Latest = max(next.Latest, in.Version)
	if _, ok := next.Messages[id]; !ok {
		next.Messages[id] = Submission{Version: in.Version, Hash: in.Hash, At: in.At}
	}
	return next
}

// forwarded notes where the record was forwarded from, and reports whether that was news. For use on a clone only.
func (r *ChunkerRow) forwarded(in Incoming) bool {
	from, ok := in.originVersion()
	if !ok || from <= r.Forwarded[in.Origin.Partition] {
		return false
	}
	r.Forwarded[in.Origin.Partition] = from
	return true
}

func (r *ChunkerRow) clone() *ChunkerRow {
	return &ChunkerRow{Latest: r.Latest, Forgotten: r.Forgotten, Forwarded: cloneMap(r.Forwarded), Messages: cloneMap(r.Messages)}
}

// ReplaySuperseded reports whether a replayed revision lies below the fence, as far as the joined row shows: then the
// chunker's verdict is superseded, and the document is not processed again. The chunker's row does not change by a replay.
func ReplaySuperseded(join *DocumentRow, rev rag.Revision) bool {
	return join != nil && join.Fence > rev.Version
}

// ForgetMessages returns the row without message ids that are both beyond k.Count and older than k.For, oldest version
// first, but only those whose records are committed (their version is below committed): a record that may come again
// must be recognised. It returns row itself when there is nothing to forget.
func ForgetMessages(row *ChunkerRow, committed rag.Version, now time.Time, k Keep) *ChunkerRow {
	if row == nil || len(row.Messages) <= k.Count {
		return row
	}
	ids := sortedBy(row.Messages, compareSubmissions)
	next := row
	for _, id := range ids[:len(ids)-k.Count] {
		m := row.Messages[id]
		if m.Version >= committed || !k.old(m.At, now) {
			break
		}
		if next == row {
			next = row.clone()
		}
		delete(next.Messages, id)
		next.Forgotten = max(next.Forgotten, m.Version)
	}
	return next
}

// MergeChunkerRow joins two rows field by field; it is commutative, associative and idempotent.
func MergeChunkerRow(a, b *ChunkerRow) *ChunkerRow {
	if a == nil || b == nil {
		return either(a, b)
	}
	c := a.clone()
	c.Latest, c.Forgotten = max(a.Latest, b.Latest), max(a.Forgotten, b.Forgotten)
	for p, v := range b.Forwarded {
		c.Forwarded[p] = max(c.Forwarded[p], v)
	}
	highest(c.Messages, b.Messages, compareSubmissions)
	maps.DeleteFunc(c.Messages, func(_ string, m Submission) bool { return m.Version <= c.Forgotten })
	return c
}

func compareSubmissions(a, b Submission) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), bytes.Compare(a.Hash[:], b.Hash[:]), a.At.Compare(b.At))
}
