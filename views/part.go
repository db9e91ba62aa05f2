package views

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/stage"
)

// part is one partition of a view: its store, seen by goka through this type, and how far it has come.
type part[R any] struct {
	storage.Storage
	v         *view[R]
	number    int32
	next      atomic.Int64 // offset of the next record to apply
	recovered atomic.Bool
	newer     atomic.Pointer[error] // why it is held; nil if it is not
	stale     bool                  // its own store has rows in a newer format: held for its whole life
}

// builder makes goka open parts.
func (v *view[R]) builder(inner storage.Builder) storage.Builder {
	return func(topic string, partition int32) (storage.Storage, error) {
		st, err := inner(topic, partition)
		if err != nil {
			return nil, err
		}
		return &part[R]{Storage: st, v: v, number: partition}, nil
	}
}

// begin prepares a new life, which end ends.
func (v *view[R]) begin(partitions int, end context.CancelCauseFunc) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.parts, v.end = make([]*part[R], partitions), end
}

func (v *view[R]) part(number int32) *part[R] {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if int(number) >= len(v.parts) {
		return nil
	}
	return v.parts[number]
}

// Open fills the indexes from what the store holds.
func (p *part[R]) Open() error {
	if err := p.Storage.Open(); err != nil {
		return err
	}
	offset, err := p.GetOffset(-1)
	if err != nil {
		return err
	}
	p.next.Store(offset + 1)
	if err := p.fill(); err != nil {
		return fmt.Errorf("index partition %d of %s: %w", p.number, p.v.table.Name, err)
	}
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if int(p.number) >= len(p.v.parts) {
		return fmt.Errorf("%s has a partition %d that was not there before", p.v.table.Name, p.number)
	}
	p.v.parts[p.number] = p
	return nil
}

func (p *part[R]) fill() (err error) {
	it, err := p.Iterator()
	if err != nil {
		return err
	}
	defer it.Release()
	for it.Next() {
		key := string(it.Key())
		value, err := it.Value()
		if err != nil {
			return err
		}
		row, err := p.v.table.Codec.Decode(value)
		switch {
		case errors.Is(err, stage.ErrNewerFormat):
			p.hold(err)
			p.stale = true
		case err != nil:
			p.v.skip(p.number, key, err)
		default:
			p.v.index.put(p.number, key, &row)
		}
	}
	return it.Err()
}

// Close takes the part out of the view first: nobody may read from a store that is closed.
func (p *part[R]) Close() error {
	err := p.takeOut()
	p.v.index.reset(p.number) // not under the view's lock, which the index may wait for
	return err
}

func (p *part[R]) takeOut() error {
	p.v.mu.Lock()
	defer p.v.mu.Unlock()
	if int(p.number) < len(p.v.parts) && p.v.parts[p.number] == p {
		p.v.parts[p.number] = nil
	}
	return p.Storage.Close()
}

// SetOffset is called after each record.
func (p *part[R]) SetOffset(offset int64) error {
	err := p.v.storeFailed(p.Storage.SetOffset(offset))
	p.next.Store(offset + 1)
	p.v.hub.wakeAll()
	return err
}

// MarkRecovered is called when the part has read what was there when it began.
func (p *part[R]) MarkRecovered() error {
	err := p.v.storeFailed(p.Storage.MarkRecovered())
	p.recovered.Store(err == nil)
	p.v.hub.wakeAll()
	return err
}

// hold makes the view not ready, until it is called with nil.
func (p *part[R]) hold(err error) {
	switch {
	case err != nil:
		p.newer.Store(&err)
	case !p.stale:
		p.newer.Store(nil)
	}
}

func (p *part[R]) held() error {
	if err := p.newer.Load(); err != nil {
		return *err
	}
	return nil
}
