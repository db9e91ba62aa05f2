package engine

import "sync"

// rowFailure is the first failure to read a row that a batch has asked for. What the handler makes of a row that is none does
// not count then: a newer release has written it, or the local store cannot be read.
type rowFailure struct {
	mu  sync.Mutex
	err error
}

func (r *rowFailure) watch(p *partition) func(key string) any {
	return func(key string) any {
		if p.rows == nil {
			return nil
		}
		row, err := p.rows.read(key)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.err == nil {
			r.err = err
		}
		return row
	}
}

func (r *rowFailure) first() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

func allFailed(part []batched, why error) batchResult {
	res := batchResult{errors: map[int]error{}}
	for i := range part {
		res.errors[i] = why
	}
	return res
}
