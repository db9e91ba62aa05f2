package wire

import (
	"maps"
	"slices"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
)

// put adds an entry of a list that is a map in memory; a key that stands there twice is not ours.
func put[K comparable, V any](c *check, field string, m map[K]V, k K, v V) {
	if _, ok := m[k]; ok {
		c.fail(field, "names %v twice", k)
	}
	m[k] = v
}

// mapFor is nil where there is nothing to put, as in the zero row.
func mapFor[K comparable, V any, M any](list []M) map[K]V {
	if len(list) == 0 {
		return nil
	}
	return make(map[K]V, len(list))
}

func chunkerRowTo(c *check, v *ledger.ChunkerRow) *wirepb.ChunkerRow {
	m := &wirepb.ChunkerRow{
		Latest:    c.version("latest", int64(v.Latest)),
		Forgotten: c.version("forgotten", int64(v.Forgotten)),
	}
	for _, p := range slices.Sorted(maps.Keys(v.Forwarded)) {
		m.Forwarded = append(m.Forwarded, &wirepb.ChunkerRow_Forwarded{
			Partition: p,
			Version:   c.version("forwarded", int64(v.Forwarded[p])),
		})
	}
	for _, id := range slices.Sorted(maps.Keys(v.Messages)) {
		s := v.Messages[id]
		m.Messages = append(m.Messages, &wirepb.ChunkerRow_Submission{
			MessageId: id,
			Version:   c.version("version", int64(s.Version)),
			Hash:      hashTo(&s.Hash),
			At:        timeTo(s.At),
		})
	}
	return m
}

func chunkerRowFrom(c *check, m *wirepb.ChunkerRow) ledger.ChunkerRow {
	v := ledger.ChunkerRow{
		Latest:    rag.Version(c.version("latest", m.Latest)),
		Forgotten: rag.Version(c.version("forgotten", m.Forgotten)),
		Forwarded: mapFor[int32, rag.Version](m.Forwarded),
		Messages:  mapFor[string, ledger.Submission](m.Messages),
	}
	for _, f := range m.Forwarded {
		put(c, "forwarded", v.Forwarded, f.Partition, rag.Version(c.version("forwarded", f.Version)))
	}
	for _, s := range m.Messages {
		put(c, "messages", v.Messages, s.MessageId, ledger.Submission{
			Version: rag.Version(c.version("version", s.Version)),
			Hash:    c.hash("hash", s.Hash),
			At:      c.time("at", s.At),
		})
	}
	return v
}

func trackerRowTo(c *check, v *ledger.TrackerRow) *wirepb.TrackerRow {
	m := &wirepb.TrackerRow{
		DocumentId: v.DocumentID,
		MessageId:  v.MessageID,
		Version:    c.version("version", int64(v.Revision.Version)),
		Generation: c.to("generation", v.Revision.Generation),
		Status:     wirepb.Status(statuses.number(c, "status", v.Status)),
		Chunks:     uint32(c.chunks("chunks", v.Chunks)),
		Attempt:    c.to("attempt", v.Attempt),
		Failure:    failureTo(c, v.Failure),
	}
	for _, e := range v.Events {
		m.Events = append(m.Events, &wirepb.TrackerRow_Event{
			Generation: c.to("generation of an event", e.Generation),
			Attempt:    c.to("attempt of an event", e.Attempt),
			Stage:      e.Stage,
			Status:     wirepb.Status(statuses.someNumber(c, "status of an event", e.Status)),
			At:         timeTo(e.At),
		})
	}
	return m
}

func trackerRowFrom(c *check, m *wirepb.TrackerRow) ledger.TrackerRow {
	v := ledger.TrackerRow{
		DocumentID: m.DocumentId,
		MessageID:  m.MessageId,
		Revision:   revisionFrom(c, m.Version, m.Generation),
		Status:     statuses.value(c, "status", int32(m.Status)),
		Chunks:     c.chunks("chunks", int(m.Chunks)),
		Attempt:    c.from("attempt", m.Attempt),
		Failure:    failureFrom(c, m.Failure),
	}
	for _, e := range m.Events {
		v.Events = append(v.Events, ledger.TrackerEvent{
			Generation: c.from("generation of an event", e.Generation),
			Attempt:    c.from("attempt of an event", e.Attempt),
			Stage:      e.Stage,
			Status:     statuses.someValue(c, "status of an event", int32(e.Status)),
			At:         c.time("time of an event", e.At),
		})
	}
	return v
}

func letterRowTo(c *check, v *ledger.LetterRow) *wirepb.LetterRow {
	return &wirepb.LetterRow{
		Id:          v.ID,
		Subject:     subjectTo(c, new(wirepb.Subject), &v.Subject),
		State:       wirepb.LetterRow_State(letterStates.number(c, "state", v.State)),
		Due:         timeTo(v.Due),
		Cause:       c.version("cause", int64(v.Cause)),
		CauseTopic:  v.CauseTopic,
		Position:    positionTo(c, &v.Position),
		Failure:     failureTo(c, &v.Failure),
		Attempts:    c.to("attempts", v.Attempts),
		FirstFailed: timeTo(v.FirstFailed),
		LastFailed:  timeTo(v.LastFailed),
		Original:    rawTo(&v.Original),
		Lost:        sentence(v.Lost),
		Reason:      sentence(v.Reason),
	}
}

func letterRowFrom(c *check, m *wirepb.LetterRow) ledger.LetterRow {
	v := ledger.LetterRow{
		ID:          m.Id,
		Subject:     subjectFrom(c, m.Subject),
		State:       letterStates.value(c, "state", int32(m.State)),
		Due:         c.time("due", m.Due),
		Cause:       rag.Version(c.version("cause", m.Cause)),
		CauseTopic:  m.CauseTopic,
		Position:    positionFrom(c, m.Position),
		Attempts:    c.from("attempts", m.Attempts),
		FirstFailed: c.time("first failed", m.FirstFailed),
		LastFailed:  c.time("last failed", m.LastFailed),
		Original:    rawFrom(c, m.Original),
		Lost:        m.Lost,
		Reason:      m.Reason,
	}
	if f := failureFrom(c, m.Failure); f != nil {
		v.Failure = *f
	}
	return v
}
