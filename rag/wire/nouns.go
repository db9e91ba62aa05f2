package wire

import (
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire/wirepb"
)

// subjectTo fills in m, so that a record and its subject can share one allocation.
func subjectTo(c *check, m *wirepb.Subject, s *rag.Subject) *wirepb.Subject {
	m.DocumentId = s.DocumentID
	m.MessageId = s.MessageID
	m.Version = c.version("version", int64(s.Revision.Version))
	m.Generation = c.to("generation", s.Revision.Generation)
	m.Attempt = c.to("attempt", s.Attempt)
	m.Partition = s.Partition
	return m
}

func subjectFrom(c *check, m *wirepb.Subject) rag.Subject {
	return rag.Subject{
		DocumentID: m.GetDocumentId(),
		MessageID:  m.GetMessageId(),
		Revision:   revisionFrom(c, m.GetVersion(), m.GetGeneration()),
		Attempt:    c.from("attempt", m.GetAttempt()),
		Partition:  m.GetPartition(),
	}
}

func revisionFrom(c *check, version int64, generation uint32) rag.Revision {
	return rag.Revision{
		Version:    rag.Version(c.version("version", version)),
		Generation: c.from("generation", generation),
	}
}

func positionTo(c *check, p *rag.Position) *wirepb.Position {
	return &wirepb.Position{
		Topic:     p.Topic,
		Epoch:     c.to("epoch", p.Epoch),
		Partition: p.Partition,
		Offset:    p.Offset,
	}
}

func positionFrom(c *check, m *wirepb.Position) rag.Position {
	return rag.Position{
		Topic:     m.GetTopic(),
		Epoch:     c.from("epoch", m.GetEpoch()),
		Partition: m.GetPartition(),
		Offset:    m.GetOffset(),
	}
}

func failureTo(c *check, f *rag.Failure) *wirepb.Failure {
	if f == nil {
		return nil
	}
	return &wirepb.Failure{
		Stage:   f.Stage,
		Class:   wirepb.FailureClass(failureClasses.number(c, "class of the failure", f.Class)),
		Reason:  f.Reason,
		Message: sentence(f.Message),
	}
}

func failureFrom(c *check, m *wirepb.Failure) *rag.Failure {
	if m == nil {
		return nil
	}
	return &rag.Failure{
		Stage:   m.Stage,
		Class:   failureClasses.value(c, "class of the failure", int32(m.Class)),
		Reason:  m.Reason,
		Message: m.Message,
	}
}

func rawTo(r *rag.Raw) *wirepb.Raw {
	m := &wirepb.Raw{Key: r.Key, Value: r.Value, Timestamp: timeTo(r.Timestamp)}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, &wirepb.Raw_Header{Key: h.Key, Value: h.Value})
	}
	return m
}

func rawFrom(c *check, m *wirepb.Raw) rag.Raw {
	if m == nil {
		return rag.Raw{}
	}
	r := rag.Raw{Key: m.Key, Value: m.Value, Timestamp: c.time("timestamp of the original", m.Timestamp)}
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, rag.Header{Key: h.Key, Value: h.Value})
	}
	return r
}

func removalTo(c *check, r *rag.Removal) *wirepb.Removal {
	return &wirepb.Removal{
		Exact:      r.Exact,
		Version:    c.version("version of the removal", int64(r.Revision.Version)),
		Generation: c.to("generation of the removal", r.Revision.Generation),
	}
}

func removalFrom(c *check, m *wirepb.Removal) rag.Removal {
	return rag.Removal{Exact: m.GetExact(), Revision: revisionFrom(c, m.GetVersion(), m.GetGeneration())}
}
