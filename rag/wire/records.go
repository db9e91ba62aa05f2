package wire

import (
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
)

func chunkTo(c *check, v *rag.Chunk) *wirepb.Chunk {
	var m struct {
		chunk   wirepb.Chunk
		subject wirepb.Subject
	}
	return chunkInto(c, &m.chunk, &m.subject, v)
}

func chunkInto(c *check, m *wirepb.Chunk, s *wirepb.Subject, v *rag.Chunk) *wirepb.Chunk {
	m.Subject = subjectTo(c, s, &v.Subject)
	m.Index = uint32(c.chunks("index", v.Index))
	m.Count = uint32(c.chunks("count", v.Count))
	m.Text = v.Text
	m.Start = c.to("start", v.Start)
	m.End = c.to("end", v.End)
	m.Title = v.Title
	m.Source = v.Source
	m.Metadata = v.Metadata
	m.Heading = v.Heading
	m.Page = c.to("page", v.Page)
	if p := v.Parent; p != (rag.Parent{}) {
		m.Parent = &wirepb.Parent{Start: c.to("parent.start", p.Start), End: c.to("parent.end", p.End), Text: p.Text}
	}
	return m
}

func chunkFrom(c *check, m *wirepb.Chunk) rag.Chunk {
	return rag.Chunk{
		Subject:  subjectFrom(c, m.GetSubject()),
		Index:    c.chunks("index", int(m.GetIndex())),
		Count:    c.chunks("count", int(m.GetCount())),
		Text:     m.GetText(),
		Start:    c.from("start", m.GetStart()),
		End:      c.from("end", m.GetEnd()),
		Title:    m.GetTitle(),
		Source:   m.GetSource(),
		Metadata: m.GetMetadata(),
		Heading:  m.GetHeading(),
		Page:     c.from("page", m.GetPage()),
		Parent: rag.Parent{
			Start: c.from("parent.start", m.GetParent().GetStart()),
			End:   c.from("parent.end", m.GetParent().GetEnd()),
			Text:  m.GetParent().GetText(),
		},
	}
}

// vectorTo borrows the values: they are read while the record is encoded and copied once, into its bytes.
func vectorTo(c *check, v *rag.Vector) *wirepb.Vector {
	m := new(struct {
		vector  wirepb.Vector
		chunk   wirepb.Chunk
		subject wirepb.Subject
	})
	m.vector.Chunk = chunkInto(c, &m.chunk, &m.subject, &v.Chunk)
	m.vector.Values = v.Values
	return &m.vector
}

func vectorFrom(c *check, m *wirepb.Vector) rag.Vector {
	return rag.Vector{Chunk: chunkFrom(c, m.GetChunk()), Values: m.GetValues()}
}

func progressTo(c *check, v *rag.Progress) *wirepb.Progress {
	m := &wirepb.Progress{
		Kind:            wirepb.Progress_Kind(progressKinds.someNumber(c, "kind", v.Kind)),
		Subject:         subjectTo(c, new(wirepb.Subject), &v.Subject),
		At:              timeTo(v.At),
		Count:           uint32(c.chunks("count", v.Count)),
		ContentIdentity: hashTo(&v.ContentIdentity),
		Title:           v.Title,
		Source:          v.Source,
		Metadata:        v.Metadata,
		Warnings:        sentences(v.Warnings),
		Status:          wirepb.Status(statuses.number(c, "status", v.Status)),
		Base:            c.version("base", int64(v.Base)),
		Failure:         failureTo(c, v.Failure),
		Due:             timeTo(v.Due),
	}
	for _, r := range v.Confirmed {
		m.Confirmed = append(m.Confirmed, rangeTo(c, r))
	}
	if v.Removal != (rag.Removal{}) {
		m.Removal = removalTo(c, &v.Removal)
	}
	return m
}

func progressFrom(c *check, m *wirepb.Progress) rag.Progress {
	v := rag.Progress{
		Kind:            progressKinds.someValue(c, "kind", int32(m.GetKind())),
		Subject:         subjectFrom(c, m.GetSubject()),
		At:              c.time("at", m.GetAt()),
		Count:           c.chunks("count", int(m.GetCount())),
		ContentIdentity: c.hash("content identity", m.GetContentIdentity()),
		Title:           m.GetTitle(),
		Source:          m.GetSource(),
		Metadata:        m.GetMetadata(),
		Warnings:        m.GetWarnings(),
		Status:          statuses.value(c, "status", int32(m.GetStatus())),
		Base:            rag.Version(c.version("base", m.GetBase())),
		Failure:         failureFrom(c, m.GetFailure()),
		Removal:         removalFrom(c, m.GetRemoval()),
		Due:             c.time("due", m.GetDue()),
	}
	for _, r := range m.GetConfirmed() {
		v.Confirmed = append(v.Confirmed, rangeFrom(c, r))
	}
	return v
}

func rangeTo(c *check, r rag.IndexRange) *wirepb.IndexRange {
	if r.From > r.To {
		c.fail("range of confirmed chunks", "ends at %d, before its start %d", r.To, r.From)
	}
	return &wirepb.IndexRange{From: uint32(c.chunks("confirmed from", r.From)), To: uint32(c.chunks("confirmed to", r.To))}
}

func rangeFrom(c *check, m *wirepb.IndexRange) rag.IndexRange {
	r := rag.IndexRange{From: c.chunks("confirmed from", int(m.From)), To: c.chunks("confirmed to", int(m.To))}
	if r.From > r.To {
		c.fail("range of confirmed chunks", "ends at %d, before its start %d", r.To, r.From)
	}
	return r
}

func eventTo(c *check, v *rag.Event) *wirepb.Event {
	return &wirepb.Event{
		Subject: subjectTo(c, new(wirepb.Subject), &v.Subject),
		Stage:   v.Stage,
		Status:  wirepb.Status(statuses.someNumber(c, "status", v.Status)),
		At:      timeTo(v.At),
		Chunks:  uint32(c.chunks("chunks", v.Chunks)),
		Failure: failureTo(c, v.Failure),
	}
}

func eventFrom(c *check, m *wirepb.Event) rag.Event {
	return rag.Event{
		Subject: subjectFrom(c, m.GetSubject()),
		Stage:   m.GetStage(),
		Status:  statuses.someValue(c, "status", int32(m.GetStatus())),
		At:      c.time("at", m.GetAt()),
		Chunks:  c.chunks("chunks", int(m.GetChunks())),
		Failure: failureFrom(c, m.GetFailure()),
	}
}

func commandTo(c *check, v *rag.Command) *wirepb.Command {
	return &wirepb.Command{
		Kind:     wirepb.Command_Kind(commandKinds.someNumber(c, "kind", v.Kind)),
		LetterId: v.LetterID,
		Subject:  subjectTo(c, new(wirepb.Subject), &v.Subject),
		At:       timeTo(v.At),
		Status:   wirepb.Status(statuses.number(c, "status", v.Status)),
		Due:      timeTo(v.Due),
		Failure:  failureTo(c, v.Failure),
		Position: positionTo(c, &v.Position),
		Original: rawTo(&v.Original),
		Reason:   sentence(v.Reason),
	}
}

func commandFrom(c *check, m *wirepb.Command) rag.Command {
	return rag.Command{
		Kind:     commandKinds.someValue(c, "kind", int32(m.GetKind())),
		LetterID: m.GetLetterId(),
		Subject:  subjectFrom(c, m.GetSubject()),
		At:       c.time("at", m.GetAt()),
		Status:   statuses.value(c, "status", int32(m.GetStatus())),
		Due:      c.time("due", m.GetDue()),
		Failure:  failureFrom(c, m.GetFailure()),
		Position: positionFrom(c, m.GetPosition()),
		Original: rawFrom(c, m.GetOriginal()),
		Reason:   m.GetReason(),
	}
}

func replayTo(c *check, v *rag.Replay) *wirepb.Replay {
	return &wirepb.Replay{
		Subject:  subjectTo(c, new(wirepb.Subject), &v.Subject),
		Position: positionTo(c, &v.Position),
		Original: rawTo(&v.Original),
	}
}

func replayFrom(c *check, m *wirepb.Replay) rag.Replay {
	return rag.Replay{
		Subject:  subjectFrom(c, m.GetSubject()),
		Position: positionFrom(c, m.GetPosition()),
		Original: rawFrom(c, m.GetOriginal()),
	}
}
