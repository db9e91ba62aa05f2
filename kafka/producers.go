package kafka

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Producers opens producers that send through the same connections: what several stages of one process have for a broker
// goes in one request. Each producer counts, bounds and closes what is its own. All methods may be called concurrently.
type Producers struct {
	cfg  Config
	opts ProducerOptions

	opening sync.Mutex // one connects at a time
	mu      sync.Mutex
	current *connection // what the next producer joins; nil: it makes a new one
}

// NewProducers does not connect yet. A configuration that is wrong is an error of Open.
func NewProducers(cfg Config, opts ProducerOptions) *Producers {
	return &Producers{cfg: cfg, opts: opts}
}

// Open makes a producer; it connects where no other is open, and fails when no broker answers then. Once a producer has been
// closed, the next one connects anew, beside those that are still open: who opens one again may do so because the connection
// does not work.
func (s *Producers) Open() (*Producer, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	c := s.join(nil)
	if c == nil {
		made, err := connect(s, s.cfg, s.opts)
		if err != nil {
			return nil, err
		}
		c = s.join(made)
	}
	return newProducer(c, s.opts), nil
}

// join adds a user to the connection that there is, or to a new one.
func (s *Producers) join(made *connection) *connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made != nil {
		s.current = made
	}
	if s.current != nil {
		s.current.users++
	}
	return s.current
}

// connection is what producers share.
type connection struct {
	of    *Producers
	lanes map[int]*lane // by limit
	users int           // guarded by Producers.mu
}

func connect(of *Producers, cfg Config, opts ProducerOptions) (*connection, error) {
	c := &connection{of: of, lanes: make(map[int]*lane)}
	for _, limit := range distinct(opts.Limits) {
		l, err := newLane(cfg, limit, opts.Gather, settle)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start producer: %w", err), c.close(0, func() bool { return false }))
		}
		c.lanes[limit] = l
	}
	return c, nil
}

func distinct(limits map[string]int) []int {
	if limits == nil {
		return []int{DefaultTopicBytes}
	}
	var out []int
	seen := make(map[int]bool)
	for _, l := range limits {
		if !seen[l] {
			seen[l] = true
			out = append(out, l)
		}
	}
	return out
}

// leave waits for what a producer has in flight. The last one that leaves closes the connection.
func (c *connection) leave(p *Producer) error {
	patience := p.patience(time.Now())
	c.of.mu.Lock()
	c.users--
	last := c.users == 0
	if c.of.current == c {
		c.of.current = nil
	}
	c.of.mu.Unlock()
	if !last {
		return p.drain(patience)
	}
	return c.close(patience, p.busy)
}

func (c *connection) close(patience time.Duration, busy func() bool) error {
	var all sync.WaitGroup
	errs := make(chan error, len(c.lanes))
	for _, l := range c.lanes {
		all.Go(func() { errs <- l.close(patience, busy) })
	}
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}
