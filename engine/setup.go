package engine

import (
	"errors"
	"sync/atomic"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka/storage"
)

// errSetupGivenUp: the setup of a partition ended because that of another one had failed.
var errSetupGivenUp = errors.New("the setup was given up: that of another partition failed")

// guarded makes stores say so when goka gives up a partition's setup. goka closes the store of a table then, forgets it,
// and reports nothing; it goes on with the table, and the process dies of the nil pointer. An error ends the session
// instead, and the processor is built anew. When the session is over anyway, goka looks for itself.
func (r *runner) guarded(build storage.Builder) storage.Builder {
	return func(topic string, partition int32) (storage.Storage, error) {
		st, err := build(topic, partition)
		if err != nil {
			return nil, err
		}
		newest := func() (int64, error) { return r.client.GetOffset(topic, partition, sarama.OffsetNewest) }
		return &guardedStore{Storage: st, inSession: r.inSession, newest: newest}, nil
	}
}

func (r *runner) inSession() bool {
	r.mu.Lock()
	s := r.session
	r.mu.Unlock()
	return s != nil && s.Context().Err() == nil
}

// guardedStore is a store that knows whether goka has begun to use it: its first question is always the offset.
type guardedStore struct {
	storage.Storage
	inSession func() bool
	newest    func() (int64, error) // the offset behind the last record of the table's topic
	used      atomic.Bool
}

// GetOffset is what goka reads on from. A topic that ends before that has lost records, or was made anew: goka would never
// come up on an empty one, and trusts any other. It reads the whole topic instead; rows merge.
func (s *guardedStore) GetOffset(def int64) (int64, error) {
	s.used.Store(true)
	at, err := s.Storage.GetOffset(def)
	if err != nil || at < 0 {
		return at, err
	}
	if newest, err := s.newest(); err == nil && at >= newest {
		return def, nil
	}
	return at, nil
}

func (s *guardedStore) Close() error {
	err := s.Storage.Close()
	if !s.used.Load() && s.inSession() {
		err = joinErrors(err, errSetupGivenUp)
	}
	return err
}
