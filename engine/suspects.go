package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/engine/internal/journal"
	"github.com/waymarkhq/waymark/stage"
)

// ReasonKillsProcess is the reason of a failure whose message has killed processes again and again.
const ReasonKillsProcess = "kills_process"

// killLimit is how many processes a message may kill before it is given to OnFailure unseen (contract rule 6).
const killLimit = 3

// Suspicions is where the processes of a group tell each other which messages were being worked on when one of them died,
// and how often each was alone then.
type Suspicions interface {
	// Load returns what is known, by position ("<topic>@<partition>-<offset>").
	Load(ctx context.Context, group string) (map[string]int, error)
	// Publish sets the count of a position; below zero clears it. It may be called by several goroutines.
	Publish(ctx context.Context, group, position string, count int) error
}

// suspects finds the message that kills the process. After an unclean death what was being worked on then is worked on
// one message at a time, and only a message that was alone when the process died is charged.
type suspects struct {
	r       *runner
	journal *journal.Journal
	// running is held for reading by every handler, and for writing by one that works on a suspect.
	running sync.RWMutex

	mu        sync.Mutex
	counts    map[string]int
	unheard   map[string]int // not published yet
	published map[string]bool
}

func position(topic string, partition int32, offset int64) string {
	return fmt.Sprintf("%s@%d-%d", topic, partition, offset)
}

// openSuspects reads what the process before was working on.
func openSuspects(r *runner) (*suspects, error) {
	s := &suspects{r: r, counts: map[string]int{}, unheard: map[string]int{}, published: map[string]bool{}}
	if r.env.Journal == "" {
		return s, nil
	}
	j, left, err := journal.Open(r.env.Journal)
	if err != nil {
		return nil, err
	}
	s.journal = j
	if err := s.remember(); err != nil {
		return nil, joinErrors(err, j.Close())
	}
	for _, e := range left {
		if e.Input >= len(r.group.inputs) {
			continue // of another topology
		}
		at := position(r.group.inputs[e.Input].topic, e.Partition, e.Offset)
		charge := 0
		if e.Alone {
			charge = 1
			r.log.Error("a message was alone when the process died", "position", at)
		}
		s.counts[at] += charge
		s.unheard[at] += charge
	}
	if err := s.write(); err != nil {
		return nil, joinErrors(err, j.Close())
	}
	return s, nil
}

// remember reads the counts of earlier deaths from the file beside the journal.
func (s *suspects) remember() error {
	b, err := os.ReadFile(s.countsFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading which messages are suspected: %w", err)
	}
	if err := json.Unmarshal(b, &s.counts); err != nil || s.counts == nil {
		s.r.log.Warn("the file of suspected messages cannot be read and begins anew", "error", err)
		s.counts = map[string]int{}
	}
	return nil
}

// write keeps the counts for the next process; the caller holds mu, or is alone.
func (s *suspects) write() error {
	if s.journal == nil {
		return nil
	}
	b, err := json.Marshal(s.counts)
	if err != nil {
		return fmt.Errorf("encoding which messages are suspected: %w", err)
	}
	tmp := s.countsFile() + ".tmp" // the process may die in the middle, and the next one counts on what it finds
	if err := os.WriteFile(tmp, b, 0o600); err != nil {
		return fmt.Errorf("writing which messages are suspected: %w", err)
	}
	if err := os.Rename(tmp, s.countsFile()); err != nil {
		return fmt.Errorf("writing which messages are suspected: %w", err)
	}
	return nil
}

// publishUnheard tells what nobody has heard yet, all of it at once: one after the other, many messages and a slow cluster
// would need longer than the time that there is. What was told is known from then on, whatever became of the rest.
func (s *suspects) publishUnheard(ctx context.Context, known map[string]int) error {
	type told struct {
		at  string
		err error
	}
	answers := make(chan told, len(s.unheard))
	for at, charge := range s.unheard {
		count := known[at] + charge
		go func() { answers <- told{at, s.r.env.Suspicions.Publish(ctx, s.r.group.name, at, count)} }()
	}
	var failed error
	for range len(s.unheard) {
		a := <-answers
		if a.err != nil {
			failed = a.err
			continue
		}
		known[a.at] += s.unheard[a.at]
		delete(s.unheard, a.at)
	}
	return failed
}

func (s *suspects) countsFile() string { return s.r.env.Journal + ".suspects" }

func (s *suspects) close() error {
	if s.journal == nil {
		return nil
	}
	return s.journal.Close()
}

// exchange tells the other processes what this one has seen, and learns what they have. It is called when a session
// begins: before any message of it is worked on.
func (s *suspects) exchange(ctx context.Context) error {
	if s.r.env.Suspicions == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, suspicionTimeout)
	defer cancel()
	known, err := s.r.env.Suspicions.Load(ctx, s.r.group.name)
	if err != nil {
		return fmt.Errorf("reading which messages are suspected: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.publishUnheard(ctx, known); err != nil {
		return fmt.Errorf("publishing which messages are suspected: %w", err)
	}
	for at, count := range known {
		s.counts[at] = max(s.counts[at], count)
		s.published[at] = true
	}
	return nil
}

// suspicionTimeout bounds one exchange: a session waits for it.
const suspicionTimeout = 5 * time.Second

// suspected reports whether a message has to be worked on alone, and how often it was alone when a process died.
func (s *suspects) suspected(at string) (count int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, ok = s.counts[at]
	return count, ok
}

// any reports whether anything is suspected at all: nearly always not.
func (s *suspects) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.counts) > 0
}

// enter notes that records are being worked on by a handler; the returned function ends it.
func (s *suspects) enter(input int, records []stage.Record) (leave func()) {
	alone := ""
	if len(records) == 1 && s.any() {
		at := position(records[0].Topic, records[0].Partition, records[0].Offset)
		if _, ok := s.suspected(at); ok {
			alone = at
		}
	}
	if alone == "" {
		s.running.RLock()
	} else {
		s.running.Lock()
	}
	ends := make([]func(), 0, len(records))
	if s.journal != nil {
		for _, r := range records {
			ends = append(ends, s.journal.Begin(journal.Entry{Input: input, Partition: r.Partition, Offset: r.Offset, Alone: alone != ""}))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
		if alone == "" {
			s.running.RUnlock()
			return
		}
		s.running.Unlock()
		s.clear(alone)
	}
}

// clear ends the suspicion against a message that was worked on alone, and did no harm.
func (s *suspects) clear(at string) {
	s.mu.Lock()
	delete(s.counts, at)
	told := s.published[at]
	delete(s.published, at)
	err := s.write()
	s.mu.Unlock()
	if err != nil {
		s.r.log.Warn("a suspicion could not be taken back", "position", at, "error", err)
	}
	if !told {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), suspicionTimeout)
	defer cancel()
	if err := s.r.env.Suspicions.Publish(ctx, s.r.group.name, at, -1); err != nil {
		s.r.log.Warn("a suspicion could not be taken back; the message is worked on alone once more", "position", at, "error", err)
	}
}

// convicted is the error of a message that has killed enough processes; nil for all others.
func (s *suspects) convicted(r stage.Record) error {
	if !s.any() {
		return nil
	}
	at := position(r.Topic, r.Partition, r.Offset)
	if count, ok := s.suspected(at); ok && count >= killLimit {
		return stage.Reject(ReasonKillsProcess, "the process died %d times while it worked on this message alone", count)
	}
	return nil
}
