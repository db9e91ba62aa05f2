package checker

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Readers watches the API while a run goes on: what is served of documents, and the statuses of submissions. Make it with
// Watch.
type Readers struct {
	api    API
	stop   context.CancelFunc
	done   sync.WaitGroup
	random *rand.Rand

	mu          sync.Mutex
	documents   []string
	submissions [][2]string
	seen        map[observed]sight
	statuses    map[[2]string]position
	served      map[string]int64
	emptied     map[string]bool // documents of which something was served, and then nothing
	looks       int
	violations  []string
}

// observed is one state of a document that a reader saw.
type observed struct {
	document string
	version  int64
	hash     uint64
}

// sight is how a reader saw a state first.
type sight struct {
	hits []Hit
	at   time.Time     // when it was answered
	took time.Duration // the answer
}

// position orders the statuses of a submission.
type position struct {
	generation, rank int
	status           string
}

// Watch begins to look, as so many readers, each time at one document and one submission of those that were added. Answers
// that are no answers (an API that is away, or that refuses because its view is behind) are not counted.
func Watch(ctx context.Context, api API, seed uint64, readers int) *Readers {
	ctx, cancel := context.WithCancel(ctx)
	r := &Readers{api: api, stop: cancel, random: rand.New(rand.NewPCG(seed, 1)), seen: map[observed]sight{},
		statuses: map[[2]string]position{}, served: map[string]int64{}, emptied: map[string]bool{}}
	for range readers {
		r.done.Go(func() {
			for ctx.Err() == nil {
				r.look(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(lookEvery):
				}
			}
		})
	}
	return r
}

const lookEvery = 20 * time.Millisecond

// Add makes a submission known; without a message id only its document is looked at.
func (r *Readers) Add(documentID, messageID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.documents = append(r.documents, documentID)
	r.submissions = append(r.submissions, [2]string{documentID, messageID})
}

// Stop ends the looking.
func (r *Readers) Stop() {
	r.stop()
	r.done.Wait()
}

func (r *Readers) pick() (document string, submission [2]string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.documents) == 0 {
		return "", submission, false
	}
	// The latest ones are the ones to which something happens.
	recent := max(0, len(r.documents)-20)
	if r.random.IntN(3) == 0 {
		recent = 0
	}
	i := recent + r.random.IntN(len(r.documents)-recent)
	return r.documents[i], r.submissions[i], true
}

func (r *Readers) look(ctx context.Context) {
	document, submission, ok := r.pick()
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	known := r.known(document, submission)
	began := time.Now()
	if hits, err := r.api.Served(ctx, document); err == nil {
		now := time.Now()
		r.sawHits(known, document, sight{hits, now, now.Sub(began)})
	}
	if submission[1] == "" {
		return
	}
	if m, err := r.api.Message(ctx, submission[0], submission[1]); err == nil {
		r.sawMessage(known, m)
	}
}

// state is what readers had seen before one of them began to look: looks at the same time may be answered in any order.
type state struct {
	version int64
	status  position
}

func (r *Readers) known(document string, submission [2]string) state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return state{r.served[document], r.statuses[submission]}
}

func (r *Readers) sawHits(known state, document string, s sight) {
	hits := s.hits
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
	if len(hits) == 0 {
		if known.version != 0 {
			r.emptied[document] = true
		}
		return
	}
	h := fnv.New64a()
	for _, hit := range hits {
		fmt.Fprintf(h, "%d %d %d %d %s\n", hit.Index, hit.Version, hit.Start, hit.End, hit.Text)
	}
	if o := (observed{document, hits[0].Version, h.Sum64()}); r.seen[o].hits == nil {
		r.seen[o] = s
	}
	if before := known.version; hits[0].Version < before {
		r.violations = append(r.violations, fmt.Sprintf("I7: %s was served as of version %d, and then as of %d", document, before, hits[0].Version))
	}
	r.served[document] = max(r.served[document], hits[0].Version)
}

func (r *Readers) sawMessage(known state, m Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looks++
	id := [2]string{m.DocumentID, m.MessageID}
	now, before := position{m.Generation(), rank(m.Status), m.Status}, known.status
	switch {
	case now.generation < before.generation, now.generation == before.generation && now.rank < before.rank:
		r.violations = append(r.violations, fmt.Sprintf("I7: %s of %s went from %+v to %+v", m.MessageID, m.DocumentID, before, now))
	case now.generation == before.generation && before.rank == 9 && now.status != before.status:
		r.violations = append(r.violations, fmt.Sprintf("I7: the final of %s of %s was %s and became %s", m.MessageID, m.DocumentID, before.status, now.status))
	}
	if latest := r.statuses[id]; now.generation > latest.generation || now.generation == latest.generation && now.rank > latest.rank {
		r.statuses[id] = now
	}
}

// checkReaders: whatever a reader saw was the whole of one version (I2), and nothing went back (I7).
func (c *check) checkReaders(r *Readers) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.report.Observations = r.looks
	c.report.Violations = append(c.report.Violations, r.violations...)
	for document := range r.emptied {
		if !slices.ContainsFunc(c.model.Submissions, func(s *Submission) bool { return s.DocumentID == document && s.Delete }) {
			c.fail("I2: a reader saw nothing of %s after he had seen something, and nobody deleted it", document)
		}
	}
	for o, s := range r.seen {
		text, ok := c.text(o.document, o.version)
		if !ok {
			c.fail("I2: a reader saw version %d of %s, which no record made", o.version, o.document)
			continue
		}
		if err := CheckServed(o.document, text, s.hits); err != nil {
			c.fail("I2: a reader saw something else than the whole of version %d: %v (first at %s, in an answer that took %s)",
				o.version, err, s.at.UTC().Format("15:04:05.000"), s.took)
		}
	}
}
