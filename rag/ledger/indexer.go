package ledger

import (
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
)

// Settings of the indexer's decisions.
type Settings struct {
	// Attempts is how often a version is tried in a generation before it dies; below 1 means DefaultAttempts.
	Attempts int
	// RemovalDelay is how long what was served before stays in the store; longer than any reader's view may lag.
	RemovalDelay time.Duration
	// Backoff is the wait before an attempt, from 1 (the first retry) on; nil: none.
	Backoff func(attempt int) time.Duration
	Keep    Keep
}

// DefaultAttempts is how often a version is tried in a generation.
const DefaultAttempts = 3

func (s Settings) attempts() int {
	if s.Attempts < 1 {
		return DefaultAttempts
	}
	return s.Attempts
}

func (s Settings) backoff(attempt int) time.Duration {
	if s.Backoff == nil {
		return 0
	}
	return s.Backoff(attempt)
}

// ApplyProgress is the row after the progress record at position cause (packed like a version). row may be nil and is
// never changed. A record at or below row.Applied has been applied before: row itself comes back. now is used for what
// waits for a time (removals), and where the record does not say when it was said.
func ApplyProgress(row *DocumentRow, p rag.Progress, cause rag.Version, now time.Time, s Settings) *DocumentRow {
	if row == nil {
		row = &DocumentRow{}
	}
	if cause <= row.Applied {
		return row
	}
	if p.At.IsZero() {
		p.At = now
	}
	c := change{row: row.clone(), p: p, cause: cause, now: now, settings: s}
	c.row.Applied = cause
	c.hear()
	switch p.Kind {
	case rag.ProgressRemoved:
		c.removed()
	case rag.ProgressReceipt:
		c.receipt()
	case rag.ProgressManifest, rag.ProgressDelete, rag.ProgressVerdict:
		c.word()
	}
	c.bound()
	return c.row
}

// change is one record on its way into a row that is not shared yet.
type change struct {
	row      *DocumentRow
	p        rag.Progress
	cause    rag.Version
	now      time.Time
	settings Settings
}

// hear notes of which versions the chunker has spoken. Words on a version that come from the stages behind it may overtake
// what the chunker says of an earlier one; its own words, which share a partition of one topic, do not.
func (c *change) hear() {
	if c.p.Revision.Generation > 0 {
		return
	}
	switch c.p.Kind {
	case rag.ProgressManifest, rag.ProgressDelete:
	case rag.ProgressVerdict:
		failed := c.p.Status == rag.StatusDead || c.p.Status == rag.StatusRetrying
		if failed && (c.p.Failure == nil || c.p.Failure.Stage != rag.StageChunker) {
			return
		}
	default:
		return
	}
	c.row.Heard = max(c.row.Heard, c.p.Revision.Version)
}

// removed: the store has acknowledged a removal. One that was scheduled again since stays.
func (c *change) removed() {
	if due, ok := c.row.Due[c.p.Removal]; ok && !due.After(c.p.Due) {
		delete(c.row.Due, c.p.Removal)
	}
}

// receipt: the store has acknowledged chunks. It may come before the manifest.
func (c *change) receipt() {
	rev := c.p.Revision
	if c.row.ended(c.p.MessageID, rev) || rev.Version < c.row.Fence || c.row.forgotten(rev) {
		if c.row.Served.Revision != rev { // a zombie, or a batch that was in flight, wrote what nobody will serve
			c.remove(true, rev)
		}
		return
	}
	w := c.work()
	for _, r := range c.p.Confirmed {
		w.Confirmed = w.Confirmed.With(r.From, r.To)
	}
	c.row.Work[rev] = w
	c.complete()
}

// word: a manifest, a delete or a verdict; each but the manifest ends its revision.
func (c *change) word() {
	rev := c.p.Revision
	if c.row.ended(c.p.MessageID, rev) || c.row.forgotten(rev) {
		return
	}
	if rev.Version < c.row.Fence {
		c.end(rag.StatusSuperseded)
		c.remove(true, rev)
		return
	}
	switch c.p.Kind {
	case rag.ProgressManifest:
		w := c.work()
		w.Count, w.ContentIdentity, w.Warnings = c.p.Count, c.p.ContentIdentity, c.p.Warnings
		w.Attempt = max(w.Attempt, c.p.Attempt)
		c.row.Work[rev] = w
		if mutant.Active == mutant.FenceOnAcceptance {
			c.moveFence()
		}
		c.complete()
	case rag.ProgressDelete:
		first := c.row.first(rev)
		c.end(rag.StatusDeleted)
		c.serve(Served{Revision: rev, At: c.p.At}, first)
	case rag.ProgressVerdict:
		c.verdict()
	}
}

func (c *change) verdict() {
	switch c.p.Status {
	case rag.StatusUnchanged:
		c.end(rag.StatusUnchanged)
		c.moveFence()
		c.remove(true, c.p.Revision)
	case rag.StatusSuperseded, rag.StatusDead: // neither moves the fence: a version that dies supersedes nothing
		c.end(c.p.Status)
		c.remove(true, c.p.Revision)
	case rag.StatusRetrying:
		c.retry()
	}
}

// retry: a transient failure leads to the next attempt, or to the end. Each failing chunk sends a verdict; the first one of
// an attempt counts.
func (c *change) retry() {
	rev := c.p.Revision
	w := c.work()
	if c.p.Attempt < w.Attempt {
		return
	}
	if c.p.Attempt+1 >= c.settings.attempts() {
		c.end(rag.StatusDead)
		c.remove(true, rev)
		return
	}
	w.Attempt, w.RetryCause, w.Failure = c.p.Attempt+1, c.cause, c.p.Failure
	if len(c.row.Work) > wordyInWork {
		w.Failure = inShort(w.Failure)
	}
	w.RetryDue = c.p.At.Add(c.settings.backoff(w.Attempt))
	if w.FirstFailed.IsZero() {
		w.FirstFailed = c.p.At
	}
	c.row.Work[rev] = w
}

// work is the entry of the record's revision, as of this record.
func (c *change) work() Work {
	w := c.row.Work[c.p.Revision]
	w.MessageID, w.Partition, w.At = c.p.MessageID, c.p.Partition, c.p.At
	return w
}

// complete serves the record's revision once all its chunks are confirmed by the store.
func (c *change) complete() {
	rev := c.p.Revision
	w := c.row.Work[rev]
	if w.Count == 0 || !w.Confirmed.Full(w.Count) {
		return
	}
	first := c.row.first(rev)
	c.end(rag.StatusIndexed)
	c.serve(Served{Revision: rev, Count: w.Count, ContentIdentity: w.ContentIdentity, At: c.p.At}, first)
}

// serve shows a revision to readers and schedules the removal of what lies lower. Where the row has never known another
// version nothing lower was written, and the removal is left out.
func (c *change) serve(s Served, first bool) {
	c.row.Served = s
	c.moveFence()
	if !first && mutant.Active != mutant.NoStaleDelete {
		c.remove(false, s.Revision)
	}
}

// moveFence: the record's version ended well, and what is in work below it is superseded.
func (c *change) moveFence() {
	c.row.Fence = max(c.row.Fence, c.p.Revision.Version)
	for _, rev := range sortedRevisions(c.row.Work) {
		if rev.Version < c.row.Fence {
			w := c.row.Work[rev]
			c.final(w.MessageID, Final{Revision: rev, Partition: w.Partition, Status: rag.StatusSuperseded, Attempt: w.Attempt})
			c.remove(true, rev)
		}
	}
}

// end says the last word on the record's revision.
func (c *change) end(status rag.Status) {
	p := c.p
	f := Final{Revision: p.Revision, Partition: p.Partition, Status: status, Attempt: p.Attempt, Count: p.Count, Warnings: p.Warnings}
	switch status {
	case rag.StatusDead:
		f.Failure, f.FirstFailed = p.Failure, p.At
	case rag.StatusUnchanged:
		f.Count = c.row.Served.Count
	}
	c.final(p.MessageID, f)
}

// final records the last word on a revision, which is then no longer in work; a word once said in a generation is never
// changed. Its attempt is the highest that was scheduled, so that the letter of that attempt is closed.
func (c *change) final(messageID string, f Final) {
	w, working := c.row.Work[f.Revision]
	delete(c.row.Work, f.Revision)
	if c.row.ended(messageID, f.Revision) {
		return
	}
	if working {
		f.Attempt = max(f.Attempt, w.Attempt)
		f.Count = max(f.Count, w.Count)
		if len(f.Warnings) == 0 {
			f.Warnings = w.Warnings
		}
		if !w.FirstFailed.IsZero() && f.Status == rag.StatusDead {
			f.FirstFailed = w.FirstFailed
		}
	}
	f.Cause, f.At = c.cause, c.p.At
	c.row.Finals[messageID] = f
}

// remove schedules a removal: exactly the chunks of rev, or all below it.
func (c *change) remove(exact bool, rev rag.Revision) {
	c.row.Due[rag.Removal{Exact: exact, Revision: rev}] = c.now.Add(c.settings.RemovalDelay)
}

// ended: the last word on the revision was said.
func (r *DocumentRow) ended(messageID string, rev rag.Revision) bool {
	f, ok := r.Finals[messageID]
	return ok && !f.Revision.Less(rev)
}

// forgotten: the last word on the revision, which is no longer in work, was said and forgotten; nothing is said any more. Of
// a replay nothing is assumed: it may be new.
func (r *DocumentRow) forgotten(rev rag.Revision) bool {
	if rev.Generation > 0 || rev.Version > r.Floor {
		return false
	}
	_, working := r.Work[rev]
	return !working
}

// first: the row has never known a revision but this one.
func (r *DocumentRow) first(rev rag.Revision) bool {
	for other := range r.Work {
		if other != rev {
			return false
		}
	}
	return r.Fence == 0 && len(r.Finals) == 0
}

func (r *DocumentRow) clone() *DocumentRow {
	c := *r
	c.Work, c.Finals, c.Due = cloneMap(r.Work), cloneMap(r.Finals), cloneMap(r.Due)
	return &c
}

// FenceAllows reports whether a chunk of the revision may still be written: its version is not below the fence and the
// last word on it was not said. row may be nil.
func FenceAllows(row *DocumentRow, messageID string, rev rag.Revision) bool {
	return row == nil || rev.Version >= row.Fence && !row.ended(messageID, rev) && !row.forgotten(rev)
}

// Confirmed reports whether the store has acknowledged the chunk, as far as the row of a revision in work shows.
func Confirmed(row *DocumentRow, rev rag.Revision, index int) bool {
	return row != nil && row.Work[rev].Confirmed.Has(index)
}
