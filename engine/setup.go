package engine

import (
	"errors"
	"sync/atomic"

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
		return &guardedStore{Storage: st, inSession: r.inSession}, nil
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
	used      atomic.Bool
}

func (s *guardedStore) GetOffset(def int64) (int64, error) {
	s.used.Store(true)
	return s.Storage.GetOffset(def)
}

func (s *guardedStore) Close() error {
	err := s.Storage.Close()
	if !s.used.Load() && s.inSession() {
		err = joinErrors(err, errSetupGivenUp)
	}
	return err
}
