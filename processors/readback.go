package processors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
)

const (
	// readBackWindow is how long before an interruption of the store its acknowledgements are not trusted.
	readBackWindow = 10 * time.Minute
	// readBackAtLeast is how many of the last progress records of a partition are looked at however old they are: a store
	// that was idle before it died loses what it got last.
	readBackAtLeast = 500
	// readBackBlock is how many records of vectors are held at once.
	readBackBlock = 500
)

// RecordLog reads what stands in a partition of a topic.
type RecordLog interface {
	// Offsets are those of the oldest record and of the one to come.
	Offsets(ctx context.Context, topic string, partition int32) (oldest, next int64, err error)
	// OffsetAt is the offset of the oldest record that is not before t, or of the one to come.
	OffsetAt(ctx context.Context, topic string, partition int32, t time.Time) (int64, error)
	// Range calls do for the records from one offset up to, and without, another.
	Range(ctx context.Context, topic string, partition int32, from, to int64, do func(stage.Record) error) error
}

// ReadBack looks after what a store that forgets has acknowledged (contract rule 11): after every interruption it looks by
// vector for the chunks whose receipts are from the minutes before, and writes again what is not found. What there was to
// find stands in the log: receipts on progress say which chunks, vectors holds them. One ReadBack serves all partitions of
// a process.
type ReadBack struct {
	Topics  Topics
	Store   sinks.Forgetful
	Tenant  string
	Log     RecordLog
	Now     func() time.Time
	After   func(time.Duration) <-chan time.Time
	Metrics *Metrics
	Logger  *slog.Logger // nil: nothing is told

	watch storeWatch
	// turn is held by who asks the store: one question at a time, and as long a pause after it, leave the store to those
	// who have new chunks for it.
	turn sync.Mutex
}

// Keep is the work in the background of a partition of the indexer.
func (r *ReadBack) Keep(ctx context.Context, p stage.Owned[ledger.DocumentRow]) error {
	for {
		since, number, due := r.watch.look(ctx, r.Store, r.Now, p.Partition)
		if due {
			found, lost, err := r.partition(ctx, p, since.Add(-readBackWindow))
			if err == nil {
				r.watch.done(p.Partition, number)
			}
			if lost > 0 { // some of them may be written although others failed
				r.watch.disturbed(since)
			}
			if err != nil {
				return fmt.Errorf("reading back from the store: %w", err)
			}
			r.tell(ctx, p.Partition, since, found, lost)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-r.After(lookEvery):
		}
	}
}

// tell says what has become of the vectors of a partition: a store that loses some is worth a look by its owner.
func (r *ReadBack) tell(ctx context.Context, partition int32, since time.Time, found, lost int) {
	if r.Logger == nil || found+lost == 0 {
		return
	}
	level := slog.LevelInfo
	if lost > 0 {
		level = slog.LevelWarn
	}
	r.Logger.LogAttrs(ctx, level, "the store was read back after an interruption", slog.Int("partition", int(partition)),
		slog.Time("interrupted", since), slog.Int("found", found), slog.Int("written_again", lost))
}

// partition looks for the chunks of a partition that were acknowledged since a time, the latest first, and tells how many
// were found and how many were lost, and are written again.
func (r *ReadBack) partition(ctx context.Context, p stage.Owned[ledger.DocumentRow], since time.Time) (found, lost int, err error) {
	w, err := r.receipts(ctx, p, since)
	if err != nil || w.left == 0 {
		return 0, 0, err
	}
	topic := r.Topics.Vectors.Name
	oldest, next, err := r.Log.Offsets(ctx, topic, p.Partition)
	if err != nil {
		return 0, 0, err
	}
	delivered, known := p.Delivered(topic)
	if !known {
		return 0, 0, stage.Transient("not_begun", fmt.Errorf("partition %d of %s is not read yet", p.Partition, topic))
	}
	if delivered > 0 {
		next = min(next, delivered) // what comes later is not written yet
	}
	for to := next; to > oldest && w.left > 0; {
		from := max(oldest, to-readBackBlock)
		objects, err := r.block(ctx, p, from, to, w)
		if err != nil {
			return found, lost, err
		}
		for some := range slices.Chunk(objects, readBackBatch) {
			missing, err := r.verify(ctx, p, some)
			lost += missing
			if err != nil {
				return found, lost, err
			}
			found += len(some) - missing
		}
		to = from
	}
	return found, lost, nil
}

// readBackBatch is how many chunks are looked for at once.
const readBackBatch = 100

// wanted are the chunks that are looked for.
type wanted struct {
	chunks map[documentRevision]*chunkSet
	left   int // that were not come across yet
}

type documentRevision struct {
	document string
	revision rag.Revision
}

type chunkSet struct{ wanted, met ledger.Bitmap }

func (w *wanted) add(p rag.Progress) {
	k := documentRevision{p.DocumentID, p.Revision}
	s := w.chunks[k]
	if s == nil {
		s = &chunkSet{}
		w.chunks[k] = s
	}
	before := s.wanted.Len()
	for _, r := range p.Confirmed {
		s.wanted = s.wanted.With(r.From, r.To)
	}
	w.left += s.wanted.Len() - before
}

// meet reports whether the chunk is wanted and was not met yet.
func (w *wanted) meet(c rag.Chunk) bool {
	s := w.chunks[documentRevision{c.DocumentID, c.Revision}]
	if s == nil || !s.wanted.Has(c.Index) || s.met.Has(c.Index) {
		return false
	}
	s.met = s.met.With(c.Index, c.Index+1)
	w.left--
	return true
}

// receipts reads which chunks the store has acknowledged since a time.
func (r *ReadBack) receipts(ctx context.Context, p stage.Owned[ledger.DocumentRow], since time.Time) (*wanted, error) {
	w := &wanted{chunks: map[documentRevision]*chunkSet{}}
	topic := r.Topics.Progress
	oldest, next, err := r.Log.Offsets(ctx, topic.Name, p.Partition)
	if err != nil {
		return nil, err
	}
	from, err := r.Log.OffsetAt(ctx, topic.Name, p.Partition, since)
	if err != nil {
		return nil, err
	}
	from = max(oldest, min(from, next-readBackAtLeast))
	return w, r.Log.Range(ctx, topic.Name, p.Partition, from, next, func(rec stage.Record) error {
		if rec.Value == nil {
			return nil
		}
		v, err := topic.Codec.Decode(rec.Value)
		if errors.Is(err, stage.ErrNewerFormat) {
			return err
		}
		if err != nil || v.Kind != rag.ProgressReceipt {
			return nil // what is not a receipt of ours tells of no chunk
		}
		if row := p.Row(v.DocumentID); row != nil && (row.Served.Revision == v.Revision || v.Revision.Version >= row.Fence) {
			w.add(v)
		}
		return nil
	})
}

// block reads the vectors from one offset up to another and returns the objects that the store has to hold of them.
func (r *ReadBack) block(ctx context.Context, p stage.Owned[ledger.DocumentRow], from, to int64, w *wanted) ([]sinks.Object, error) {
	var vectors []rag.Vector
	topic := r.Topics.Vectors
	err := r.Log.Range(ctx, topic.Name, p.Partition, from, to, func(rec stage.Record) error {
		if rec.Value == nil {
			return nil
		}
		v, err := topic.Codec.Decode(rec.Value)
		if errors.Is(err, stage.ErrNewerFormat) {
			return err
		}
		if err == nil { // what is not a vector of ours was never written
			vectors = append(vectors, v)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var objects []sinks.Object
	for i := len(vectors) - 1; i >= 0; i-- { // of two records of one chunk the later one was written last
		if v := vectors[i]; w.meet(v.Chunk) && ledger.Stored(p.Row(v.DocumentID), v.Revision, v.Index) {
			objects = append(objects, objectOf(r.Tenant, v))
		}
	}
	return objects, nil
}

// objectOf is a vector as the store holds it.
func objectOf(tenant string, v rag.Vector) sinks.Object {
	return sinks.Object{ID: rag.ChunkID(tenant, v.DocumentID, v.Revision, v.Index).String(), Chunk: v.Chunk, Vector: v.Values}
}

// verify looks for objects by their vectors, writes again those that are not found, and tells how many these were.
func (r *ReadBack) verify(ctx context.Context, p stage.Owned[ledger.DocumentRow], objects []sinks.Object) (int, error) {
	missing, pause, err := r.ask(ctx, objects)
	if err != nil {
		return 0, err
	}
	r.Metrics.readBack("found", len(objects)-len(missing))
	lost := make([]sinks.Object, len(missing))
	for i, j := range missing {
		lost[i] = objects[j]
	}
	if len(lost) > 0 {
		p.Alone(func(ctx context.Context) { err = r.write(ctx, p, lost) })
		if err != nil {
			return len(lost), err
		}
	}
	select {
	case <-ctx.Done():
		return len(lost), ctx.Err()
	case <-r.After(pause):
		return len(lost), nil
	}
}

func (r *ReadBack) ask(ctx context.Context, objects []sinks.Object) (missing []int, took time.Duration, err error) {
	r.turn.Lock()
	defer r.turn.Unlock()
	began := r.Now()
	missing, err = r.Store.Missing(ctx, objects)
	return missing, max(0, r.Now().Sub(began)), err
}

// write writes what is not found, unless it has become superfluous meanwhile. The store deletes an object that it repairs
// before it inserts it.
func (r *ReadBack) write(ctx context.Context, p stage.Owned[ledger.DocumentRow], lost []sinks.Object) error {
	repair := map[int]bool{}
	var due []sinks.Object
	for _, o := range lost {
		if ledger.Stored(p.Row(o.Chunk.DocumentID), o.Chunk.Revision, o.Chunk.Index) {
			repair[len(due)] = true
			due = append(due, o)
		}
	}
	if len(due) == 0 {
		return nil
	}
	if !p.Valid() {
		return stage.Outage("partition", 0, errLost)
	}
	written := 0
	var failed error
	for _, res := range r.Store.Upsert(ownedContext{ctx, p.Valid}, due, repair) {
		if res.Outcome == sinks.Done {
			written++
			continue
		}
		failed = storeError(res)
	}
	r.Metrics.readBack("repaired", written)
	return failed
}
