package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka/storage"
	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/util"
)

// Rows and the offset have prefixes of their own: in goka's storage a row with the key "__offset" overwrites the offset,
// and the partition can never be opened again.
const (
	rowPrefix = "r"
	offsetRow = "o"
)

// recoveryOffsetInterval is the pause between two notes of the offset while a table recovers: one for each record would
// halve its speed, and without any a recovery that is cut off would start again from the beginning.
const recoveryOffsetInterval = 5 * time.Second

// store is the storage of one partition.
type store struct {
	db      *leveldb.DB
	log     *slog.Logger
	now     func() time.Time
	marker  marker
	topicID string
	expiry  *Expiry
	closed  func(*store)

	marking sync.Mutex // around the marker's file

	// write serialises writers with the sweep, which could otherwise remove a row that was written after it had looked.
	write sync.Mutex

	offset    atomic.Int64 // the latest, plus one; 0 if none was set since the opening
	recovered atomic.Bool
	noted     atomic.Int64 // unix nanoseconds of the last note of the offset

	stop    chan struct{}
	sweeper sync.WaitGroup
	once    sync.Once
	err     error
	damage  sync.Once
}

// Open starts the sweep. goka calls it once.
func (s *store) Open() error {
	if err := s.touch(); err != nil {
		return err
	}
	s.noted.Store(s.now().UnixNano())
	s.sweeper.Go(func() {
		tick := time.NewTicker(sweepInterval)
		defer tick.Stop()
		for {
			select {
			case <-s.stop:
				return
			case <-tick.C:
				s.tend()
			}
		}
	})
	return nil
}

// tend is what has to be done from time to time.
func (s *store) tend() {
	if err := s.touch(); err != nil {
		s.log.Warn("cannot note that the local store is in use", "error", err)
	}
	if _, err := s.Sweep(sweepRows); err != nil {
		s.log.Warn("cannot remove expired rows", "error", err)
	}
}

// touch notes that the store is in use, and whose rows it holds.
func (s *store) touch() error { return s.note("") }

func (s *store) note(damage string) error {
	s.marking.Lock()
	defer s.marking.Unlock()
	if damage == "" {
		damage = s.marker.read().Damaged
	}
	return s.marker.write(markerContent{TopicID: s.topicID, Touched: s.now(), Damaged: damage})
}

// Close waits for the sweep and notes the offset. It may be called more than once.
func (s *store) Close() error {
	s.once.Do(func() {
		close(s.stop)
		s.sweeper.Wait()
		if err := s.touch(); err != nil {
			s.log.Warn("cannot note that the local store was in use", "error", err)
		}
		s.closed(s)
		s.err = errors.Join(s.noteOffset(), s.check(s.db.Close()))
	})
	return s.err
}

func (s *store) Get(key string) ([]byte, error) {
	v, err := s.get(rowKey(key))
	if err != nil || v == nil || s.expired(v) {
		return nil, s.check(err)
	}
	return v, nil
}

func (s *store) get(key []byte) ([]byte, error) {
	v, err := s.db.Get(key, nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return nil, nil
	}
	return v, err
}

func (s *store) Has(key string) (bool, error) {
	v, err := s.Get(key)
	return v != nil, err
}

func (s *store) Set(key string, value []byte) error {
	s.write.Lock()
	defer s.write.Unlock()
	if s.expired(value) {
		// An old record of a recovery: not kept, but it hides what stood before it all the same.
		return s.check(s.db.Delete(rowKey(key), nil))
	}
	return s.check(s.db.Put(rowKey(key), value, nil))
}

func (s *store) Delete(key string) error {
	s.write.Lock()
	defer s.write.Unlock()
	return s.check(s.db.Delete(rowKey(key), nil))
}

// GetOffset returns the offset of the last record that is in the store.
func (s *store) GetOffset(def int64) (int64, error) {
	if o := s.offset.Load(); o > 0 {
		return o - 1, nil
	}
	b, err := s.get([]byte(offsetRow))
	if err != nil || b == nil {
		return def, s.check(err)
	}
	o, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("offset of the local store: %w", err)
	}
	return o, nil
}

// SetOffset is called after the record's row was written.
func (s *store) SetOffset(offset int64) error {
	s.offset.Store(offset + 1)
	if now := s.now().UnixNano(); s.recovered.Load() || now-s.noted.Load() >= int64(recoveryOffsetInterval) {
		s.noted.Store(now)
		return s.noteOffset()
	}
	return nil
}

func (s *store) MarkRecovered() error {
	s.recovered.Store(true)
	return s.noteOffset()
}

func (s *store) noteOffset() error {
	o := s.offset.Load()
	if o == 0 {
		return nil
	}
	return s.check(s.db.Put([]byte(offsetRow), strconv.AppendInt(nil, o-1, 10), nil))
}

func (s *store) Iterator() (storage.Iterator, error) {
	return s.iterate(util.BytesPrefix([]byte(rowPrefix))), nil
}

// IteratorWithRange walks through [start, limit), or through all keys that begin with start where there is no limit.
func (s *store) IteratorWithRange(start, limit []byte) (storage.Iterator, error) {
	if len(limit) == 0 {
		return s.iterate(util.BytesPrefix(rowKey(string(start)))), nil
	}
	return s.iterate(&util.Range{Start: rowKey(string(start)), Limit: rowKey(string(limit))}), nil
}

func (s *store) iterate(r *util.Range) *storeIterator {
	return &storeIterator{it: s.db.NewIterator(r, &opt.ReadOptions{DontFillCache: true}), s: s}
}

func (s *store) expired(value []byte) bool {
	if s.expiry == nil || value == nil {
		return false
	}
	at, ok := s.expiry.WrittenAt(value)
	return ok && s.now().Sub(at) >= s.expiry.After
}

// Sweep removes up to limit expired rows from the files. Kafka gets no tombstones: every reader expires the same rows.
func (s *store) Sweep(limit int) (removed int, err error) {
	if s.expiry == nil {
		return 0, nil
	}
	it := s.db.NewIterator(util.BytesPrefix([]byte(rowPrefix)), &opt.ReadOptions{DontFillCache: true})
	defer it.Release()
	for removed < limit && it.Next() {
		select {
		case <-s.stop:
			return removed, nil
		default:
		}
		if !s.expired(it.Value()) {
			continue
		}
		gone, err := s.removeExpired(it.Key())
		if err != nil {
			return removed, s.check(err)
		}
		if gone {
			removed++
		}
	}
	return removed, s.check(it.Error())
}

// removeExpired removes a row, if it is still expired: it may have been written again since the iterator looked.
func (s *store) removeExpired(key []byte) (bool, error) {
	s.write.Lock()
	defer s.write.Unlock()
	v, err := s.get(key)
	if err != nil || v == nil || !s.expired(v) {
		return false, err
	}
	return true, s.db.Delete(key, nil)
}

// check notes damaged files, so that the next opening starts anew: LevelDB finds them when it reads, not when it opens.
func (s *store) check(err error) error {
	if err == nil || !damaged(err) {
		return err
	}
	s.damage.Do(func() {
		s.log.Error("local store is damaged; it will be rebuilt from Kafka at the next opening", "error", err)
		if werr := s.note(err.Error()); werr != nil {
			s.log.Error("cannot note that the local store is damaged", "error", werr)
		}
	})
	return fmt.Errorf("%w: %w", ErrStoreDamaged, err)
}

// ErrStoreDamaged is what a local store answers once it has found that its files are damaged. It is rebuilt when it is opened
// the next time; until then it stays as it is.
var ErrStoreDamaged = errors.New("local store is damaged")

func rowKey(key string) []byte { return append([]byte(rowPrefix), key...) }

// storeIterator hides expired rows.
type storeIterator struct {
	it iterator.Iterator
	s  *store
}

func (i *storeIterator) Next() bool {
	for i.it.Next() {
		if !i.s.expired(i.it.Value()) {
			return true
		}
	}
	return false
}

func (i *storeIterator) Key() []byte            { return i.it.Key()[len(rowPrefix):] }
func (i *storeIterator) Value() ([]byte, error) { return i.it.Value(), nil }
func (i *storeIterator) Err() error             { return i.s.check(i.it.Error()) }
func (i *storeIterator) Release()               { i.it.Release() }

// Seek goes to the first row at or after key and reports whether there is one; Next gives the row after it, as with
// goka's own storage.
func (i *storeIterator) Seek(key []byte) bool {
	ok := i.it.Seek(rowKey(string(key)))
	for ok && i.s.expired(i.it.Value()) {
		ok = i.it.Next()
	}
	return ok
}
