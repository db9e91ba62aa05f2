package checker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Target is the run that is checked: idle, every fault over, due removals done.
type Target struct {
	Broker string // host:port, or several with commas between them
	Prefix string // of the topics; "" is waymark
	Epoch  int
	API    API
	Store  string // the file of SQLite
	// Objects lists what the store holds, each document's objects by version, generation and number; nil reads Store.
	Objects func(context.Context) (map[string][]Object, error)
	// Read tells what a document record means; nil is ReadJSON.
	Read Read
	// Embed is the vector of a text, where the embedder is one whose vectors are known; nil leaves I4 out.
	Embed func(text string, dimensions int) []float32
	// Traces are the files that the test build of each process wrote; none leaves I5 out.
	Traces []string
	// Readers is what was seen while the run went on; nil leaves I7 and the readers' half of I2 out.
	Readers *Readers
	// Strangers is what the keys of records begin with that the test itself wrote to internal topics; "" for none.
	Strangers string
	// Replayed are ids of submissions that died, were replayed and may have ended well, or be superseded, since.
	Replayed []string
}

// Report says what was looked at: a check of nothing passes too.
type Report struct {
	Submissions, Duplicates, Documents, Chunks, Vectors, Letters, Events, Marks, Observations int
	// LateRows counts document rows that stand behind a newer one in their table: what stopped processes wrote.
	LateRows   int
	Statuses   map[string]int
	Violations []string
}

// Err is all violations as one error, nil if there are none.
func (r *Report) Err() error {
	errs := make([]error, len(r.Violations))
	for i, v := range r.Violations {
		errs[i] = errors.New(v)
	}
	return errors.Join(errs...)
}

// Tell logs the report, and its violations as errors, of many the first ones.
func (r *Report) Tell(t interface {
	Helper()
	Log(args ...any)
	Error(args ...any)
	Errorf(format string, args ...any)
}) {
	t.Helper()
	t.Log("noted:", r)
	const told = 20
	for _, v := range r.Violations[:min(told, len(r.Violations))] {
		t.Error(v)
	}
	if n := len(r.Violations); n > told {
		t.Errorf("… and %d more", n-told)
	}
}

// String is one line.
func (r *Report) String() string {
	return fmt.Sprintf("%d submissions %v (and %d duplicates) of %d documents, %d chunks, %d vectors, %d letters, %d events, %d marked offsets, %d observations of readers, %d late rows: %d violations",
		r.Submissions, r.Statuses, r.Duplicates, r.Documents, r.Chunks, r.Vectors, r.Letters, r.Events, r.Marks, r.Observations, r.LateRows, len(r.Violations))
}

type check struct {
	ctx    context.Context
	target Target
	report *Report

	log      Log
	model    *Model
	letters  []Letter
	messages map[[2]string]Message
	stored   map[string][]Object
}

func (c *check) prefix() string {
	if c.target.Prefix == "" {
		return "waymark"
	}
	return c.target.Prefix
}

func (c *check) topic(name string) string { return c.prefix() + "." + name }

func (c *check) fail(format string, args ...any) {
	c.report.Violations = append(c.report.Violations, fmt.Sprintf(format, args...))
}

func (c *check) failed(err error) {
	if err != nil {
		c.report.Violations = append(c.report.Violations, err.Error())
	}
}

// Check compares the run with the model. The error is of the check itself: something could not be read.
func Check(ctx context.Context, t Target) (*Report, error) {
	c := &check{ctx: ctx, target: t, report: &Report{Statuses: map[string]int{}}, messages: map[[2]string]Message{}}
	if t.Read == nil {
		c.target.Read = ReadJSON
	}
	if err := c.gather(); err != nil {
		return nil, err
	}
	for _, s := range c.model.Submissions {
		c.checkSubmission(s)
	}
	if err := c.checkDocuments(); err != nil {
		return nil, err
	}
	c.checkLetters()
	c.checkEvents()
	c.checkTables()
	for _, file := range t.Traces {
		marks, violations, err := CheckTrace(file)
		if err != nil {
			return nil, err
		}
		c.report.Marks += marks
		c.report.Violations = append(c.report.Violations, violations...)
	}
	if t.Readers != nil {
		c.checkReaders(t.Readers)
	}
	return c.report, nil
}

// gather reads everything once.
func (c *check) gather() (err error) {
	topics := []string{c.topic("documents"), c.topic("events"), c.topic("dead-letters"), c.prefix() + "-indexer-table"}
	if c.log, err = ReadLog(c.ctx, c.target.Broker, topics); err != nil {
		return err
	}
	if c.target.Strangers != "" {
		for topic, records := range c.log {
			c.log[topic] = slices.DeleteFunc(records, func(r *kgo.Record) bool { return strings.HasPrefix(string(r.Key), c.target.Strangers) })
		}
	}
	partitions, err := Partitions(c.ctx, c.target.Broker, c.topic("documents"))
	if err != nil {
		return err
	}
	c.model = NewModel(c.log[c.topic("documents")], partitions, c.target.Epoch, c.target.Read)
	c.report.Submissions, c.report.Duplicates, c.report.Documents = len(c.model.Submissions), c.model.Duplicates, len(c.model.Served)
	if c.letters, err = c.target.API.Letters(c.ctx); err != nil {
		return err
	}
	if c.stored, err = c.objects(); err != nil {
		return err
	}
	return c.askMessages()
}

func (c *check) objects() (map[string][]Object, error) {
	if c.target.Objects != nil {
		return c.target.Objects(c.ctx)
	}
	return ReadStore(c.ctx, c.target.Store)
}

// askers is how many requests run at once.
const askers = 8

// askMessages asks for every submission.
func (c *check) askMessages() error {
	var mu sync.Mutex
	var all error
	var asking sync.WaitGroup
	todo := make(chan *Submission)
	for range askers {
		asking.Go(func() {
			for s := range todo {
				m, err := c.target.API.Message(c.ctx, s.DocumentID, s.MessageID)
				mu.Lock()
				var unknown *StatusError
				switch {
				case errors.As(err, &unknown) && unknown.Status == 404:
					c.fail("I1: %s of %s has no status: %s", s.MessageID, s.DocumentID, unknown.Body)
				case err != nil:
					all = errors.Join(all, err)
				default:
					c.messages[[2]string{s.DocumentID, s.MessageID}] = m
				}
				mu.Unlock()
			}
		})
	}
	for _, s := range c.model.Submissions {
		todo <- s
	}
	close(todo)
	asking.Wait()
	return all
}

func (c *check) message(s *Submission) Message {
	return c.messages[[2]string{s.DocumentID, s.MessageID}]
}

func (c *check) status(s *Submission) string { return c.message(s).Status }

// checkSubmission: its status is final, one that the model allows, and said of its own version (I1).
func (c *check) checkSubmission(s *Submission) {
	m, known := c.messages[[2]string{s.DocumentID, s.MessageID}]
	if !known {
		return // said already
	}
	c.report.Statuses[m.Status]++
	allowed := s.Allowed
	if slices.Contains(c.target.Replayed, s.MessageID) {
		allowed = append(slices.Clone(allowed), "dead", "superseded")
	}
	switch {
	case !m.Final || !slices.Contains(allowed, m.Status):
		c.fail("I1: %s of %s (%s/%d@%d) is %s (final %t, error %+v), the model allows %v", s.MessageID, s.DocumentID,
			s.Record.Topic, s.Record.Partition, s.Record.Offset, m.Status, m.Final, m.Error, allowed)
	case m.Version != s.Version:
		c.fail("I1: %s of %s has the version %d, its record makes %d", s.MessageID, s.DocumentID, m.Version, s.Version)
	}
}

// checkDocuments: what is served, and what the store holds, of every document (I2, I3, I4).
func (c *check) checkDocuments() error {
	known := map[string]bool{}
	for id, want := range c.model.Served {
		known[id] = true
		hits, err := c.target.API.Served(c.ctx, id)
		var refused *StatusError
		if errors.As(err, &refused) && (refused.Status == 400 || refused.Status == 422) {
			hits, err = nil, nil // an id that no document can have: it cannot be asked for, and must not be stored
		}
		if err != nil {
			return err
		}
		c.report.Chunks += len(hits)
		c.checkDocument(id, want, hits)
		c.failed(checkStored(id, c.stored[id], hits))
		if c.target.Embed != nil {
			c.report.Vectors += len(c.stored[id])
			c.failed(checkVectors(id, c.stored[id], c.target.Embed))
		}
	}
	for id, objects := range c.stored {
		if !known[id] {
			c.fail("I3: the store holds %d objects of %q, which nobody submitted", len(objects), id)
		}
	}
	return nil
}

func (c *check) checkDocument(id string, want *Submission, hits []Hit) {
	if want == nil || want.Delete {
		if len(hits) > 0 {
			c.fail("I2: %s: %d chunks are served, the model wants none", id, len(hits))
		}
		return
	}
	if err := CheckServed(id, want.Text, hits); err != nil {
		c.fail("I2: %v", err)
		return
	}
	served := c.model.at(id, hits[0].Version)
	switch {
	case served == nil:
		c.fail("I2: %s is served as of version %d, which no record made", id, hits[0].Version)
	case served.Content != want.Content:
		c.fail("I2: %s is served as of version %d, the model wants %d", id, served.Version, want.Version)
	case served != want && c.status(want) != "unchanged":
		c.fail("I2: %s is served as of version %d, but %d is %s", id, served.Version, want.Version, c.status(want))
	case c.status(served) != "indexed":
		c.fail("I2: %s is served as of version %d, which is %s", id, served.Version, c.status(served))
	}
}

// versions of the documents topic that a reader may have seen.
func (c *check) text(documentID string, version int64) (string, bool) {
	s := c.model.at(documentID, version)
	if s == nil || s.Delete {
		return "", false
	}
	return s.Text, true
}
