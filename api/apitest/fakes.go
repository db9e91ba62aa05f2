package apitest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
)

// Published is one submission that a Publisher was given.
type Published struct {
	Document rag.Document
	Raw      bool
}

// Publisher keeps what it is given. Its fields may be set before it is used.
type Publisher struct {
	// Fail decides about a submission before it is kept; nil keeps all.
	Fail func(rag.Document) error
	// Hold, where it is set, is waited for before a submission is kept: receive from Entered to know that one waits.
	Hold    chan struct{}
	Entered chan rag.Document
	// Discard keeps only the number of submissions, for tests of memory.
	Discard bool

	mu        sync.Mutex
	published []Published
	count     int
}

// Publish keeps a copy of the document, or fails as the fields say.
func (p *Publisher) Publish(ctx context.Context, doc rag.Document, raw bool) (rag.Position, error) {
	if p.Entered != nil {
		select {
		case p.Entered <- doc:
		case <-ctx.Done():
			return rag.Position{}, ctx.Err()
		}
	}
	if p.Hold != nil {
		select {
		case <-p.Hold:
		case <-ctx.Done():
			return rag.Position{}, ctx.Err()
		}
	}
	if p.Fail != nil {
		if err := p.Fail(doc); err != nil {
			return rag.Position{}, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	offset := int64(p.count)
	p.count++
	if !p.Discard {
		doc.Content = slices.Clone(doc.Content)
		p.published = append(p.published, Published{Document: doc, Raw: raw})
	}
	return rag.Position{Topic: "waymark.documents", Offset: offset}, nil
}

// Published are the submissions so far, in order.
func (p *Publisher) Published() []Published {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.published)
}

// Documents are rows of documents.
type Documents struct {
	// Err, where it is set, is what every call returns.
	Err error

	mu   sync.Mutex
	rows map[string]*ledger.DocumentRow
}

// Put sets the row of a document.
func (d *Documents) Put(id string, row *ledger.DocumentRow) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rows == nil {
		d.rows = map[string]*ledger.DocumentRow{}
	}
	d.rows[id] = row
}

// Get reads a row.
func (d *Documents) Get(_ context.Context, id string) (*ledger.DocumentRow, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rows[id], d.Err
}

// Snapshot fixes what is served now.
func (d *Documents) Snapshot(context.Context) (api.Snapshot, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return snapshot{d, maps.Clone(d.rows)}, d.Err
}

type snapshot struct {
	*Documents
	then map[string]*ledger.DocumentRow
}

// Served is what the rows of then said.
func (s snapshot) Served(id string) (rag.Revision, bool) {
	row := s.then[id]
	if row == nil || row.Served.Count == 0 {
		return rag.Revision{}, false
	}
	return row.Served.Revision, true
}

// Err is that of the documents now.
func (s snapshot) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Documents.Err
}

// Close does nothing.
func (snapshot) Close() {}

// List lists rows as api.DocumentLister says.
func (d *Documents) List(_ context.Context, q api.DocumentQuery) ([]api.DocumentEntry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Err != nil {
		return nil, d.Err
	}
	var all []api.DocumentEntry
	for id, row := range d.rows {
		latest, ok := ledger.Latest(row)
		if ok && (q.Status == "" || latest.Status == q.Status) {
			all = append(all, api.DocumentEntry{ID: id, At: latest.At, Row: row})
		}
	}
	return page(all, func(e api.DocumentEntry) api.Mark { return api.Mark{At: e.At, ID: e.ID} }, q.After, q.Limit), nil
}

// page sorts from the newest to the oldest and cuts out what follows after.
func page[E any](all []E, mark func(E) api.Mark, after api.Mark, limit int) []E {
	order := func(a, b api.Mark) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) }
	slices.SortFunc(all, func(a, b E) int { return order(mark(a), mark(b)) })
	if after != (api.Mark{}) {
		all = slices.DeleteFunc(all, func(e E) bool { return order(mark(e), after) <= 0 })
	}
	return all[:min(len(all), limit)]
}

// Messages are timelines.
type Messages struct {
	Err error

	mu    sync.Mutex
	rows  []*ledger.TrackerRow
	looks int
}

// Put adds a timeline, or replaces that of the same submission.
func (m *Messages) Put(row *ledger.TrackerRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows = slices.DeleteFunc(m.rows, func(r *ledger.TrackerRow) bool {
		return r.DocumentID == row.DocumentID && r.MessageID == row.MessageID
	})
	m.rows = append(m.rows, row)
}

// Get reads timelines.
func (m *Messages) Get(_ context.Context, messageID, documentID string) ([]*ledger.TrackerRow, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	var found []*ledger.TrackerRow
	for _, r := range m.rows {
		if r.MessageID == messageID && (documentID == "" || r.DocumentID == documentID) {
			found = append(found, r)
		}
	}
	return found, m.Err
}

// Looks is how often Get was called.
func (m *Messages) Looks() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.looks
}

// Letters are dead letters with their bytes.
type Letters struct {
	Err error

	mu   sync.Mutex
	rows map[string]*ledger.LetterRow
}

// Put sets a letter.
func (l *Letters) Put(row *ledger.LetterRow) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		l.rows = map[string]*ledger.LetterRow{}
	}
	l.rows[row.ID] = row
}

// Get reads a letter.
func (l *Letters) Get(_ context.Context, id string) (*ledger.LetterRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rows[id], l.Err
}

// List lists letters as api.LetterLister says.
func (l *Letters) List(_ context.Context, q api.LetterQuery) ([]*ledger.LetterRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err != nil {
		return nil, l.Err
	}
	var all []*ledger.LetterRow
	for _, r := range l.rows {
		if (q.State == "" || r.Shown() == q.State) && (q.Stage == "" || r.Failure.Stage == q.Stage) &&
			(q.Reason == "" || r.Failure.Reason == q.Reason) && (q.DocumentID == "" || r.Subject.DocumentID == q.DocumentID) &&
			(q.Since.IsZero() || !r.LastFailed.Before(q.Since)) && (q.Until.IsZero() || r.LastFailed.Before(q.Until)) {
			all = append(all, r)
		}
	}
	return page(all, func(r *ledger.LetterRow) api.Mark { return api.Mark{At: r.LastFailed, ID: r.ID} }, q.After, q.Limit), nil
}

// Payload reads a letter's bytes.
func (l *Letters) Payload(_ context.Context, id string) (*api.Payload, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.rows[id]
	if !ok || l.Err != nil {
		return nil, l.Err
	}
	return &api.Payload{Original: r.Original, Lost: r.Lost}, nil
}

// Commander keeps the commands that it is given and applies them to Letters, as the dead-letter group would.
type Commander struct {
	Letters *Letters
	Err     error

	mu       sync.Mutex
	commands []rag.Command
}

// Command keeps one command.
func (c *Commander) Command(ctx context.Context, cmd rag.Command) error {
	if c.Err != nil {
		return c.Err
	}
	c.mu.Lock()
	c.commands = append(c.commands, cmd)
	cause := rag.Version(len(c.commands))
	c.mu.Unlock()
	row, err := c.Letters.Get(ctx, cmd.LetterID)
	if err != nil || row == nil {
		return err
	}
	next, _, _ := ledger.ApplyCommand(row, cmd, "commands", cause)
	c.Letters.Put(next)
	return nil
}

// Commands are the commands so far, in order.
func (c *Commander) Commands() []rag.Command {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.commands)
}

// Searcher holds hits, best first, and gives those that a query's Served lets through.
type Searcher struct {
	Hits []sinks.Hit
	Err  error

	mu   sync.Mutex
	last sinks.Query
}

// Search filters the hits.
func (s *Searcher) Search(_ context.Context, q sinks.Query) ([]sinks.Hit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = q
	var found []sinks.Hit
	for _, h := range s.Hits {
		if len(found) < q.K && (q.DocumentID == "" || q.DocumentID == h.Chunk.DocumentID) && q.Served(h.Chunk.DocumentID, h.Chunk.Revision) {
			found = append(found, h)
		}
	}
	return found, s.Err
}

// Last is the last query.
func (s *Searcher) Last() sinks.Query {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// Embedder gives the same vector for every text.
type Embedder struct{ Err error }

// EmbedQuery gives a vector.
func (e *Embedder) EmbedQuery(context.Context, string) ([]float32, error) {
	return []float32{1, 0, 0}, e.Err
}

// Readiness gives its reasons.
type Readiness struct{ Reasons []api.NotReady }

// Ready gives the reasons.
func (r *Readiness) Ready(context.Context) []api.NotReady { return r.Reasons }

// Freshness gives its lag.
type Freshness struct {
	Behind time.Duration
	Err    error
}

// Lag gives the lag.
func (f *Freshness) Lag(context.Context) (time.Duration, error) { return f.Behind, f.Err }

// Stats gives its counts.
type Stats struct {
	Counts api.Stats
	Err    error
}

// Stats gives the counts.
func (s *Stats) Stats(context.Context) (api.Stats, error) { return s.Counts, s.Err }
