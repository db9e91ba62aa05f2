package openai

import "sync"

// growAfter is how many full batches in a row must be accepted before a larger one is tried again.
const growAfter = 100

// batchLimit is how many texts a service takes at once, as far as it has shown: halved when it refuses a batch for its
// number, doubled again after a while, since the reason may have been a few long texts.
type batchLimit struct {
	mu     sync.Mutex
	limit  int
	most   int // as configured
	streak int // full batches accepted since the last change
}

func newBatchLimit(most int) *batchLimit { return &batchLimit{limit: most, most: most} }

func (l *batchLimit) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// refused tells that n texts were too many.
func (l *batchLimit) refused(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = min(l.limit, max(1, n/2))
	l.streak = 0
}

// accepted tells that n texts were not too many.
func (l *batchLimit) accepted(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n < l.limit {
		return
	}
	if l.streak++; l.streak >= growAfter {
		l.limit, l.streak = min(2*l.limit, l.most), 0
	}
}
