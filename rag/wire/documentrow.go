package wire

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
)

func documentRowTo(c *check, v *ledger.DocumentRow) *wirepb.DocumentRow {
	m := &wirepb.DocumentRow{
		Applied: c.version("applied", int64(v.Applied)),
		Fence:   c.version("fence", int64(v.Fence)),
		Floor:   c.version("floor", int64(v.Floor)),
		Heard:   c.version("heard", int64(v.Heard)),
		Served: &wirepb.DocumentRow_Served{
			Version:         c.version("served version", int64(v.Served.Revision.Version)),
			Generation:      c.to("served generation", v.Served.Revision.Generation),
			Count:           uint32(c.chunks("served count", v.Served.Count)),
			ContentIdentity: hashTo(&v.Served.ContentIdentity),
			At:              timeTo(v.Served.At),
		},
	}
	for _, rev := range slices.SortedFunc(maps.Keys(v.Work), compareRevisions) {
		m.Work = append(m.Work, workTo(c, rev, v.Work[rev]))
	}
	for _, id := range slices.Sorted(maps.Keys(v.Finals)) {
		m.Finals = append(m.Finals, finalTo(c, id, v.Finals[id]))
	}
	for _, r := range slices.SortedFunc(maps.Keys(v.Due), compareRemovals) {
		m.Due = append(m.Due, &wirepb.DocumentRow_Due{Removal: removalTo(c, &r), At: timeTo(v.Due[r])})
	}
	return m
}

func documentRowFrom(c *check, m *wirepb.DocumentRow) ledger.DocumentRow {
	s := m.GetServed()
	v := ledger.DocumentRow{
		Applied: rag.Version(c.version("applied", m.Applied)),
		Fence:   rag.Version(c.version("fence", m.Fence)),
		Floor:   rag.Version(c.version("floor", m.Floor)),
		Heard:   rag.Version(c.version("heard", m.Heard)),
		Served: ledger.Served{
			Revision:        revisionFrom(c, s.GetVersion(), s.GetGeneration()),
			Count:           c.chunks("served count", int(s.GetCount())),
			ContentIdentity: c.hash("served content identity", s.GetContentIdentity()),
			At:              c.time("served at", s.GetAt()),
		},
		Work:   mapFor[rag.Revision, ledger.Work](m.Work),
		Finals: mapFor[string, ledger.Final](m.Finals),
		Due:    mapFor[rag.Removal, time.Time](m.Due),
	}
	for _, w := range m.Work {
		put(c, "work", v.Work, revisionFrom(c, w.Version, w.Generation), workFrom(c, w))
	}
	for _, f := range m.Finals {
		put(c, "finals", v.Finals, f.MessageId, finalFrom(c, f))
	}
	for _, d := range m.Due {
		put(c, "due removals", v.Due, removalFrom(c, d.Removal), c.time("due", d.At))
	}
	return v
}

func workTo(c *check, rev rag.Revision, w ledger.Work) *wirepb.DocumentRow_Work {
	if len(w.Confirmed) > maxChunks/64 {
		c.fail("confirmed", "has %d words, more than %d", len(w.Confirmed), maxChunks/64)
	}
	return &wirepb.DocumentRow_Work{
		Version:         c.version("version in work", int64(rev.Version)),
		Generation:      c.to("generation in work", rev.Generation),
		MessageId:       w.MessageID,
		Partition:       w.Partition,
		Count:           uint32(c.chunks("count", w.Count)),
		Confirmed:       w.Confirmed,
		Attempt:         c.to("attempt", w.Attempt),
		ContentIdentity: hashTo(&w.ContentIdentity),
		Warnings:        sentences(w.Warnings),
		RetryCause:      c.version("retry cause", int64(w.RetryCause)),
		RetryDue:        timeTo(w.RetryDue),
		Failure:         failureTo(c, w.Failure),
		FirstFailed:     timeTo(w.FirstFailed),
		At:              timeTo(w.At),
	}
}

func workFrom(c *check, m *wirepb.DocumentRow_Work) ledger.Work {
	if len(m.Confirmed) > maxChunks/64 {
		c.fail("confirmed", "has %d words, more than %d", len(m.Confirmed), maxChunks/64)
	}
	return ledger.Work{
		MessageID:       m.MessageId,
		Partition:       m.Partition,
		Count:           c.chunks("count", int(m.Count)),
		Confirmed:       m.Confirmed,
		Attempt:         c.from("attempt", m.Attempt),
		ContentIdentity: c.hash("content identity", m.ContentIdentity),
		Warnings:        m.Warnings,
		RetryCause:      rag.Version(c.version("retry cause", m.RetryCause)),
		RetryDue:        c.time("retry due", m.RetryDue),
		Failure:         failureFrom(c, m.Failure),
		FirstFailed:     c.time("first failed", m.FirstFailed),
		At:              c.time("at", m.At),
	}
}

func finalTo(c *check, messageID string, f ledger.Final) *wirepb.DocumentRow_Final {
	return &wirepb.DocumentRow_Final{
		MessageId:   messageID,
		Version:     c.version("version of a final", int64(f.Revision.Version)),
		Generation:  c.to("generation of a final", f.Revision.Generation),
		Partition:   f.Partition,
		Status:      wirepb.Status(statuses.someNumber(c, "status of a final", f.Status)),
		Attempt:     c.to("attempt of a final", f.Attempt),
		Cause:       c.version("cause of a final", int64(f.Cause)),
		Count:       uint32(c.chunks("count of a final", f.Count)),
		Failure:     failureTo(c, f.Failure),
		Warnings:    sentences(f.Warnings),
		FirstFailed: timeTo(f.FirstFailed),
		At:          timeTo(f.At),
	}
}

func finalFrom(c *check, m *wirepb.DocumentRow_Final) ledger.Final {
	return ledger.Final{
		Revision:    revisionFrom(c, m.Version, m.Generation),
		Partition:   m.Partition,
		Status:      statuses.someValue(c, "status of a final", int32(m.Status)),
		Attempt:     c.from("attempt of a final", m.Attempt),
		Cause:       rag.Version(c.version("cause of a final", m.Cause)),
		Count:       c.chunks("count of a final", int(m.Count)),
		Failure:     failureFrom(c, m.Failure),
		Warnings:    m.Warnings,
		FirstFailed: c.time("first failed", m.FirstFailed),
		At:          c.time("at", m.At),
	}
}

func compareRevisions(a, b rag.Revision) int {
	return cmp.Or(cmp.Compare(a.Version, b.Version), cmp.Compare(a.Generation, b.Generation))
}

func compareRemovals(a, b rag.Removal) int {
	if a.Exact != b.Exact {
		if a.Exact {
			return 1
		}
		return -1
	}
	return compareRevisions(a.Revision, b.Revision)
}
