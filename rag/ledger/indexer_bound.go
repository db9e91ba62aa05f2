package ledger

import (
	"slices"

	"github.com/waymarkhq/waymark/rag"
)

// MaxInWork is the number of versions of one document that may be in work at once. A row that holds more would come near
// the limit of a record, and one that cannot be written stops its partition.
const MaxInWork = 10_000

// wordyInWork is the number of versions in work above which their failures have no sentence: ten thousand of a kilobyte
// would not fit.
const wordyInWork = 1_000

// MaxDue is the number of removals that a row may have due.
const MaxDue = 10_000

// What a row may hold in bytes. Both together, and the removals that are due, fit into a record.
const (
	maxWorkBytes   = 6 << 20
	maxFinalsBytes = 11 << 19
	// What one entry has at most: 32 warnings of 512 bytes, a sentence and an id; in work also the bitmap of the largest
	// document. Rows of few entries need not be measured.
	mostFinalBytes = 20 << 10
	mostWorkBytes  = mostFinalBytes + MaxChunks/8
	// entryBytes bounds what each entry has besides: numbers, times, a hash.
	entryBytes = 160
)

// bound keeps the row writable. What is in work is bounded by what is in work alone, so that it stays a function of the log:
// which ends were forgotten depends on clocks.
func (c *change) bound() {
	c.boundWork()
	c.boundFinals()
	c.boundDue()
}

// boundWork takes the warnings of the earliest versions in work where there are too many bytes, and then ends the earliest:
// the later ones are what will be served.
func (c *change) boundWork() {
	work := c.row.Work
	if len(work) <= maxWorkBytes/mostWorkBytes {
		return
	}
	size := 0
	for _, w := range work {
		size += w.bytes()
	}
	if size <= maxWorkBytes && len(work) <= MaxInWork {
		return
	}
	revisions := sortedRevisions(work)
	for _, rev := range revisions {
		if size <= maxWorkBytes {
			break
		}
		w := work[rev]
		size -= textBytes(w.Warnings)
		w.Warnings = nil
		work[rev] = w
	}
	for _, rev := range revisions {
		if size <= maxWorkBytes && len(work) <= MaxInWork {
			break
		}
		w := work[rev]
		size -= w.bytes()
		c.final(w.MessageID, Final{Revision: rev, Partition: w.Partition, Status: rag.StatusDead, Attempt: w.Attempt, FirstFailed: c.p.At,
			Failure: &rag.Failure{Stage: "indexer", Class: rag.ClassMessage, Reason: rag.ReasonTooManyVersions,
				Message: "as many later versions of the document are in work as its row can hold"}})
		c.remove(true, rev)
	}
}

// boundFinals takes the warnings of the earliest ends where there are too many bytes, and then their sentences; not the
// sentences that this record is about to say.
func (c *change) boundFinals() {
	finals := c.row.Finals
	if len(finals) <= maxFinalsBytes/mostFinalBytes {
		return
	}
	size := 0
	for id, f := range finals {
		size += f.bytes(id)
	}
	if size <= maxFinalsBytes {
		return
	}
	ids := sortedBy(finals, func(a, b Final) int { return compareRevisions(a.Revision, b.Revision) })
	shorten := func(short func(Final) Final) {
		for _, id := range ids {
			if size <= maxFinalsBytes {
				return
			}
			f := finals[id]
			size -= f.bytes(id)
			f = short(f)
			size += f.bytes(id)
			finals[id] = f
		}
	}
	shorten(func(f Final) Final {
		f.Warnings = nil
		return f
	})
	shorten(func(f Final) Final {
		if f.Cause == c.cause {
			return f
		}
		return f.inShort()
	})
}

// boundDue merges removals where there are too many. What lies below the revision that is served goes by one removal, at the
// latest time of those that it stands for; of the other ones the earliest stays, so that something is removed however often
// another version is served. What is left are versions that ended above the one that is served. Of these the lowest are
// passed by: nobody reads their chunks, and the next version that is served removes them.
func (c *change) boundDue() {
	due := c.row.Due
	if len(due) <= MaxDue {
		return
	}
	all := rag.Removal{Revision: c.row.Served.Revision}
	earliest, _, some := firstDue(due, func(r rag.Removal) bool { return !r.Exact })
	for r, at := range due {
		if r == all || some && r == earliest || !r.Revision.Less(all.Revision) {
			continue
		}
		if until, ok := due[all]; !ok || until.Before(at) {
			due[all] = at
		}
		delete(due, r)
	}
	if len(due) <= MaxDue {
		return
	}
	left := make([]rag.Removal, 0, len(due))
	for r := range due {
		if r.Exact {
			left = append(left, r)
		}
	}
	slices.SortFunc(left, func(a, b rag.Removal) int { return compareRevisions(a.Revision, b.Revision) })
	for _, r := range left[:min(len(left), len(due)-MaxDue)] {
		delete(due, r)
	}
}

func (w Work) bytes() int {
	return entryBytes + len(w.MessageID) + 8*len(w.Confirmed) + textBytes(w.Warnings) + failureBytes(w.Failure)
}

func (f Final) bytes(messageID string) int {
	return entryBytes + len(messageID) + textBytes(f.Warnings) + failureBytes(f.Failure)
}

func textBytes(list []string) int {
	n := 0
	for _, s := range list {
		n += len(s) + 4
	}
	return n
}

func failureBytes(f *rag.Failure) int {
	if f == nil {
		return 0
	}
	return 16 + len(f.Stage) + len(f.Reason) + len(f.Message)
}
