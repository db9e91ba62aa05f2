package kafka

import (
	"errors"
	"fmt"
	"maps"
	"slices"
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
	limits := []int{DefaultTopicBytes}
	if opts.Limits != nil {
		limits = slices.Compact(slices.Sorted(maps.Values(opts.Limits)))
	}
	for _, limit := range limits {
		l, err := newLane(cfg, limit, opts.Gather, settle)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start producer: %w", err), c.close())
		}
		c.lanes[limit] = l
	}
	return c, nil
}

// leave waits for what a producer has in flight. What has no answer by then is ended by cutting the connection, for all who use
// it: nothing of a producer is written once it has closed, and whom else that broker does not answer has the same trouble. The
// last one that leaves closes the connection.
func (c *connection) leave(p *Producer) error {
	c.of.mu.Lock()
	if c.of.current == c {
		c.of.current = nil
	}
	c.of.mu.Unlock()
	err := p.drain(p.patience(time.Now()))
	if err != nil {
		err = errors.Join(err, c.cut())
		_ = p.drain(closeTimeoutMax) // each attempt fails at once now
	}
	c.of.mu.Lock()
	c.users--
	last := c.users == 0
	c.of.mu.Unlock()
	if last {
		err = errors.Join(err, c.close())
	}
	return err
}

// cut ends every record on its way with an error, and every later one.
func (c *connection) cut() (err error) {
	for _, l := range c.lanes {
		err = errors.Join(err, l.cutOff())
	}
	return err
}

// close ends the connection; nothing is in flight any more, and nobody sends.
func (c *connection) close() error {
	var all sync.WaitGroup
	errs := make(chan error, len(c.lanes))
	for _, l := range c.lanes {
		all.Go(func() { errs <- l.close(closeTimeoutMin) })
	}
	all.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}
