package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

// Accepted answers a submission: the record is kept.
type Accepted struct {
	MessageID  string `json:"message_id" doc:"Names this submission; its progress is at status_url."`
	DocumentID string `json:"document_id"`
	StatusURL  string `json:"status_url" doc:"Path of the submission's progress."`
}

// submission is a document on its way to the publisher.
type submission struct {
	doc rag.Document
	raw bool
	// ours says that the message id was made here, so that no other document has it.
	ours bool
}

// submit publishes one document and answers only once it is kept.
func (s *Server) submit(ctx context.Context, sub submission) (Accepted, *Problem) {
	doc := &sub.doc
	if doc.ID == "" {
		doc.ID = s.deps.NewID()
	}
	if doc.MessageID == "" {
		doc.MessageID, sub.ours = s.deps.NewID(), true
	}
	hash := doc.SubmissionHash()
	if !sub.ours {
		if p := s.checkReuse(ctx, *doc, hash); p != nil {
			return Accepted{}, p
		}
	}
	if p := s.slots.enter(ctx, 1); p != nil {
		return Accepted{}, p
	}
	defer s.slots.leave(1)
	if err := s.publish(ctx, sub); err != nil {
		return Accepted{}, s.publishProblem(err)
	}
	if !sub.ours {
		s.recent.remember(doc.ID, doc.MessageID, hash)
	}
	return Accepted{MessageID: doc.MessageID, DocumentID: doc.ID, StatusURL: statusURL(sub)}, nil
}

// publish gives the record to the publisher. A caller that goes away does not stop it: the record may be on its way
// already, and its place must not be given to another one meanwhile. Only the time limit and a forced shutdown do.
func (s *Server) publish(ctx context.Context, sub submission) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.PublishTimeout)
	defer cancel()
	_, err := s.deps.Publisher.Publish(ctx, sub.doc, sub.raw)
	return err
}

func (s *Server) publishProblem(err error) *Problem {
	if errors.Is(err, ErrTooLarge) {
		return problem(kindTooLarge, "the document is above what one record of the log may hold; larger ones need a blob store, see the setting blobs.url").
			at("body", "body").because(rag.ReasonTooLarge)
	}
	p := problem(kindNotKept, "%v", err).after(time.Second)
	var u unavailability
	if errors.As(err, &u) {
		reason, after := u.Unavailable()
		p = p.because(reason).after(after)
	}
	s.log.Warn("a submission could not be kept", "error", err)
	return p
}

// checkReuse refuses a message id that is known to stand for another submission of the document.
func (s *Server) checkReuse(ctx context.Context, doc rag.Document, hash rag.Hash) *Problem {
	known, ok := s.recent.lookup(doc.ID, doc.MessageID)
	if !ok && s.deps.Submissions != nil {
		var err error
		known, ok, err = s.deps.Submissions.Submission(ctx, doc.ID, doc.MessageID)
		if err != nil {
			// The pipeline judges it anyway; a reader that is away must not stop the submission.
			s.log.Warn("cannot look up a message id", "error", err)
			return nil
		}
	}
	if !ok || known == hash {
		return nil
	}
	return problem(kindMessageIDReused, "the message id %s stands for another submission of this document", doc.MessageID).
		at("body", "message_id").because(rag.ReasonMessageIDReused)
}

func statusURL(sub submission) string {
	u := "/v1/messages/" + url.PathEscape(sub.doc.MessageID)
	if !sub.ours {
		u += "?document_id=" + url.QueryEscape(sub.doc.ID)
	}
	return u
}

// checkDocumentID judges a document id from a path, a query or a list.
func checkDocumentID(in, field, id string) *Problem {
	return idProblem(wire.CheckDocumentID(id), in, field, id, "document_id_bytes", rag.MaxDocumentIDBytes)
}

// checkMessageID judges a message id from a path, a header or a list.
func checkMessageID(in, field, id string) *Problem {
	return idProblem(wire.CheckMessageID(id), in, field, id, "message_id_bytes", rag.MaxMessageIDBytes)
}

func idProblem(err error, in, field, id, limit string, most int64) *Problem {
	var f *wire.FieldError
	if !errors.As(err, &f) {
		return nil
	}
	k := kindInvalidParameter
	if in == "body" {
		k = kindInvalidField
	}
	p := problem(k, "%s", f.Message).at(in, field).because(f.Reason)
	if int64(len(id)) > most {
		return p.over(limit, most)
	}
	return p
}

// recent remembers what the last message ids given to this process stood for, so that the usual mistake (one key for
// two contents) is answered at once. It is bounded; what it has forgotten, the pipeline judges.
type recent struct {
	mu   sync.Mutex
	now  func() time.Time
	seen map[rag.Hash]recentEntry
	ring []rag.Hash
	next int
}

type recentEntry struct {
	hash rag.Hash
	at   time.Time
}

func newRecent(size int, now func() time.Time) *recent {
	return &recent{now: now, seen: make(map[rag.Hash]recentEntry), ring: make([]rag.Hash, size)}
}

func recentKey(documentID, messageID string) rag.Hash {
	// Neither id contains a NUL.
	return sha256.Sum256([]byte(documentID + "\x00" + messageID))
}

func (r *recent) lookup(documentID, messageID string) (rag.Hash, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.seen[recentKey(documentID, messageID)]
	if !ok || r.now().Sub(e.at) >= messageIDRetention {
		return rag.Hash{}, false
	}
	return e.hash, true
}

func (r *recent) remember(documentID, messageID string, hash rag.Hash) {
	key := recentKey(documentID, messageID)
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.seen[key]
	if ok && r.now().Sub(e.at) < messageIDRetention {
		return // the pipeline counts the retention from the first submission too
	}
	if !ok {
		delete(r.seen, r.ring[r.next])
		r.ring[r.next] = key
		r.next = (r.next + 1) % len(r.ring)
	}
	r.seen[key] = recentEntry{hash: hash, at: r.now()}
}
