package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// index is what a view keeps in memory beside its rows. Methods may be called concurrently for different partitions.
// The names are those under which the key's waiters wait.
type index[R any] interface {
	// put replaces what is known of the key.
	put(partition int32, key string, row *R) (names []string)
	// remove forgets the key, if gone still says so once no put can come between.
	remove(key string, gone func() bool) (names []string)
	// reset forgets everything of a partition.
	reset(partition int32)
}

// sweepable is an index of rows that expire.
type sweepable interface {
	// some returns up to n keys, other ones at every call, until all have been seen.
	some(n int) []string
}

// view follows one table: the part that Documents, Messages and Letters share.
type view[R any] struct {
	o     Options
	log   *slog.Logger
	table stage.Topic[R]
	merge func(a, b *R) *R
	index index[R]
	hub   hub

	mu      sync.RWMutex
	parts   []*part[R]              // by partition; nil where none is open
	trouble error                   // why the last run ended, or a reader was held up
	end     context.CancelCauseFunc // ends the life of the goka view that runs now

	fresh       atomic.Int64 // unix nanoseconds; 0: never
	undecodable atomic.Int64
	rebuilds    atomic.Int64
	running     atomic.Bool
}

func newView[R any](o Options, table stage.Topic[R], merge func(a, b *R) *R, ix index[R]) *view[R] {
	o = o.withDefaults()
	return &view[R]{o: o, log: o.Log.With("view", table.Name), table: table, merge: merge, index: ix}
}

// Run follows the table until ctx ends and returns nil then. It may be called once at a time; nothing is ready before.
func (v *view[R]) Run(ctx context.Context) error {
	if v.running.Swap(true) {
		return fmt.Errorf("the view of %s runs already", v.table.Name)
	}
	defer v.running.Store(false)
	pause := rebuildPauseMin
	for {
		started := v.o.Now()
		err := v.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if v.o.Now().Sub(started) > rebuildPauseMax {
			pause = rebuildPauseMin // it has worked for a while
		}
		v.rebuilds.Add(1)
		v.setTrouble(err)
		if errors.Is(err, errLogReplaced) { // what was read from it is not what stands there now
			if err := os.RemoveAll(v.dir()); err != nil {
				v.log.Error("the view's store cannot be removed", "error", err)
			}
		}
		v.log.Warn("view has ended and is built anew", "error", err, "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-v.o.After(pause):
		}
		pause = min(2*pause, rebuildPauseMax)
	}
}

// follow is one life of the goka view. Everything that it opens it closes again: goka leaves its clients open.
func (v *view[R]) follow(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := connect(ctx, v.o.Kafka, v.table.Name)
	if err != nil {
		return err
	}
	var freshness sync.WaitGroup
	defer func() {
		cancel(nil)
		err = errors.Join(err, c.close())
		freshness.Wait()
	}()
	stores := kafka.NewStores(v.storeOptions(c.topicID))
	v.begin(int(c.partitions), cancel)
	g, err := goka.NewView(v.o.Kafka.Brokers, goka.Table(v.table.Name), rawCodec{}, append(c.options(),
		goka.WithViewHasher(kafka.Hasher()),
		goka.WithViewCallback(v.update),
		goka.WithViewStorageBuilder(v.builder(stores.Builder())),
		goka.WithViewLogger(gokaLogger{v.log}))...)
	if err != nil {
		return fmt.Errorf("view of %s: %w", v.table.Name, err)
	}
	freshness.Go(func() { cancel(v.keepFresh(ctx, c)) })
	err = g.Run(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // the log is not what it was
	}
	if err == nil {
		err = fmt.Errorf("view of %s ended", v.table.Name)
	}
	return err
}

// dir is the folder of the view's store.
func (v *view[R]) dir() string { return filepath.Join(v.o.Dir, v.table.Name) }

// storeFailed ends this life of the view, if err is not nil: a store that could not be written once cannot be until it is
// opened anew, and goka would only come back to the same record.
func (v *view[R]) storeFailed(err error) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("local store of %s: %w", v.table.Name, err)
	v.mu.RLock()
	defer v.mu.RUnlock()
	v.end(err)
	return err
}

func (v *view[R]) storeOptions(topicID string) kafka.StoreOptions {
	o := kafka.StoreOptions{
		Dir: v.dir(), MaxOffline: v.o.MaxOffline, Log: v.o.Log, Now: v.o.Now,
		TopicIDs: map[string]string{v.table.Name: topicID},
	}
	if v.o.Expiry != nil {
		o.Expiry = map[string]kafka.Expiry{v.table.Name: *v.o.Expiry}
	}
	return o
}

// update is called for every record of the table, in order per partition.
func (v *view[R]) update(ctx goka.UpdateContext, s storage.Storage, key string, value []byte) error {
	p := v.part(ctx.Partition())
	if p == nil {
		return fmt.Errorf("partition %d of %s is not open", ctx.Partition(), v.table.Name)
	}
	if value == nil {
		if err := s.Delete(key); err != nil {
			return v.storeFailed(err)
		}
		v.wake(v.index.remove(key, func() bool { return true }))
		return nil
	}
	row, err := v.table.Codec.Decode(value)
	switch {
	case errors.Is(err, stage.ErrNewerFormat):
		err = fmt.Errorf("record at offset %d of partition %d: %w", ctx.Offset(), ctx.Partition(), err)
		p.hold(err)
		return err // goka comes back to this record
	case err != nil:
		v.skip(ctx.Partition(), key, err)
		return nil
	}
	p.hold(nil)
	return v.put(p, s, key, &row, value)
}

// put merges a row with the one that stands there. The record's own bytes are kept where they say it all: they carry the
// time at which they were written.
func (v *view[R]) put(p *part[R], s storage.Storage, key string, row *R, value []byte) error {
	was, err := s.Get(key)
	if err != nil {
		return v.storeFailed(err)
	}
	if was != nil {
		if old, err := v.table.Codec.Decode(was); err == nil {
			merged := v.merge(&old, row)
			switch {
			case reflect.DeepEqual(merged, &old):
				return nil
			case !reflect.DeepEqual(merged, row):
				if value, err = v.table.Codec.Encode(*merged); err != nil {
					return fmt.Errorf("row %q of %s: %w", key, v.table.Name, err)
				}
			}
			row = merged
		}
	}
	if err := s.Set(key, value); err != nil {
		return v.storeFailed(err)
	}
	v.wake(v.index.put(p.number, key, row))
	return nil
}

func (v *view[R]) wake(names []string) {
	for _, name := range names {
		v.hub.wake(name)
	}
}

func (v *view[R]) skip(partition int32, key string, err error) {
	v.undecodable.Add(1)
	v.log.Warn("a row cannot be decoded and is skipped", "partition", partition, "key", key, "error", err)
}

// get reads a row; nil if there is none.
func (v *view[R]) get(key string) (*R, error) {
	if err := v.Ready(); err != nil {
		return nil, err
	}
	v.mu.RLock()
	defer v.mu.RUnlock() // a store is closed under the lock
	if len(v.parts) == 0 {
		return nil, v.notReady(nil)
	}
	p := v.parts[kafka.PartitionOf([]byte(key), int32(len(v.parts)))]
	if p == nil {
		return nil, v.notReady(nil)
	}
	b, err := p.Storage.Get(key)
	if err != nil {
		return nil, v.notReady(err)
	}
	if b == nil {
		return nil, nil
	}
	row, err := v.table.Codec.Decode(b)
	if errors.Is(err, stage.ErrNewerFormat) {
		return nil, &NotReadyError{Table: v.table.Name, Reason: ReasonNewerFormat, Err: err}
	}
	if err != nil {
		v.undecodable.Add(1)
		return nil, nil
	}
	return &row, nil
}

// wait returns what read gives as soon as until is true for it; when ctx ends first, what it gives then, and ctx's error.
func wait[T any](ctx context.Context, h *hub, name string, read func() (T, error), until func(T) bool) (T, error) {
	changed, stop := h.watch(name)
	defer stop()
	for {
		got, err := read()
		if err != nil || until(got) {
			return got, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return got, ctx.Err()
		}
	}
}

// Ready reports whether the view is complete: nil, or a *NotReadyError. Once complete it stays ready while Kafka is away,
// and FreshAsOf stands still.
func (v *view[R]) Ready() error {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.parts) == 0 {
		return v.notReady(v.trouble)
	}
	for _, p := range v.parts {
		switch {
		case p == nil:
			return v.notReady(v.trouble)
		case p.held() != nil:
			return &NotReadyError{Table: v.table.Name, Reason: ReasonNewerFormat, Err: p.held()}
		case !p.recovered.Load():
			return v.notReady(v.trouble)
		}
	}
	return nil
}

func (v *view[R]) notReady(err error) error {
	return &NotReadyError{Table: v.table.Name, Reason: ReasonRecovering, Err: err}
}

// FreshAsOf is the time as of which the view is complete: every record that was acknowledged before it has been applied.
// The zero time means that this is not known yet.
func (v *view[R]) FreshAsOf() time.Time {
	if at := v.fresh.Load(); at != 0 {
		return time.Unix(0, at)
	}
	return time.Time{}
}

// Fresh returns nil once every record that was acknowledged before the call has been applied. When ctx ends first it returns
// why the view is not ready, or else ctx's error.
func (v *view[R]) Fresh(ctx context.Context) error {
	called := v.o.Now()
	for {
		if at := v.FreshAsOf(); !at.IsZero() && !at.Before(called) {
			return v.Ready()
		}
		select {
		case <-ctx.Done():
			if err := v.Ready(); err != nil {
				return err
			}
			return ctx.Err()
		case <-v.o.After(freshPoll):
		}
	}
}

// Lag is how long ago FreshAsOf is. About a second is usual.
func (v *view[R]) Lag(context.Context) (time.Duration, error) {
	if err := v.Ready(); err != nil {
		return 0, err
	}
	at := v.FreshAsOf()
	if at.IsZero() {
		return 0, v.notReady(nil)
	}
	return max(0, v.o.Now().Sub(at)), nil
}

// Changed is closed when the next record has been applied, whatever its key.
func (v *view[R]) Changed() <-chan struct{} { return v.hub.next() }

// Stats counts what went wrong.
func (v *view[R]) Stats() Stats {
	return Stats{Undecodable: v.undecodable.Load(), Rebuilds: v.rebuilds.Load()}
}

func (v *view[R]) setTrouble(err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.trouble = err
}
