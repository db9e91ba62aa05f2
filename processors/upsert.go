package processors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/sinks"
	"github.com/waymarkhq/waymark/stage"
)

// HandleBatch writes the vectors of one batch to the store and confirms what it has acknowledged: one receipt per
// version. An ambiguous write is repaired until it is none, and so is one that a process before this one may have begun; before
// every write what is below the fence is dropped.
func (x *Indexer) HandleBatch(ctx context.Context, b stage.Batch[rag.Vector, ledger.DocumentRow]) stage.BatchResult[ledger.DocumentRow] {
	w := &batchWrite{x: x, b: b, errors: map[int]error{}, repair: map[int]bool{}}
	for i := range b.Messages {
		w.todo = append(w.todo, i)
	}
	w.lookAgain(ctx)
	for len(w.todo) > 0 && w.round(ctx) {
	}
	return stage.BatchResult[ledger.DocumentRow]{Outputs: w.receipts(), Errors: w.errors}
}

// lookAgain looks for what a process before this one may have begun to write. A store that lost the client of a batch can hold
// an object without its vector, and calls the same object unchanged: what is torn is repaired. What is whole stays, since it may
// be confirmed already, by a record that the row does not know yet, and be seen by readers. It looks until the store answers: given
// up, the message would come again as one that nobody has begun.
func (w *batchWrite) lookAgain(ctx context.Context) {
	store, tears := w.x.Sink.(sinks.Forgetful)
	if !tears {
		return
	}
	objects, _ := w.prepare()
	var begun []sinks.Object
	var indexes []int
	for j, i := range w.todo {
		if w.b.Messages[i].Redelivered {
			begun, indexes = append(begun, objects[j]), append(indexes, i)
		}
	}
	if len(begun) == 0 {
		return
	}
	for w.b.Valid() {
		torn, err := store.Torn(ctx, begun)
		if err == nil {
			for _, j := range torn {
				w.repair[indexes[j]] = true
			}
			w.rounds = 0
			return
		}
		if !w.settles(ctx, fmt.Errorf("looking for %d objects that may be torn: %w", len(begun), err)) {
			return
		}
	}
	w.giveUp("partition", errLost)
}

// settles waits until what was asked of the store cannot be running any more, and tells why it waits; false where the time
// is up.
func (w *batchWrite) settles(ctx context.Context, why error) bool {
	w.held(why)
	select {
	case <-w.x.After(w.x.Settle):
		return true
	case <-ctx.Done():
		w.giveUp(DependencyStore, ctx.Err())
		return false
	}
}

// giveUp leaves everything to whoever has the partition next.
func (w *batchWrite) giveUp(dependency string, why error) {
	for _, i := range w.todo {
		w.errors[i] = stage.Outage(dependency, 0, why)
	}
	w.todo = nil
}

// batchWrite is the state of one batch on its way into the store.
type batchWrite struct {
	x       *Indexer
	b       stage.Batch[rag.Vector, ledger.DocumentRow]
	todo    []int // indexes of messages that have no outcome yet
	repair  map[int]bool
	written []int
	errors  map[int]error
	rounds  int // that left writes ambiguous
}

// round writes what is left once; it returns false when there is nothing left to try here.
func (w *batchWrite) round(ctx context.Context) bool {
	objects, repair := w.prepare()
	if len(objects) == 0 {
		return false
	}
	if !w.b.Valid() {
		w.giveUp("partition", errLost)
		return false
	}
	start := w.x.Now()
	fault.Hit(fault.BeforeUpsert)
	results := w.x.upsert(ownedContext{ctx, w.b.Valid}, objects, repair)
	fault.Hit(fault.AfterUpsert)
	w.x.Metrics.stored(results, w.x.Now().Sub(start))
	var ambiguous []int
	var why error
	for j, i := range w.todo {
		switch r := results[j]; {
		case confirmed(r.Outcome):
			w.written = append(w.written, i)
		case r.Outcome == sinks.Ambiguous:
			ambiguous = append(ambiguous, i)
			w.repair[i], why = true, r.Err
		default:
			w.errors[i] = storeError(r)
		}
	}
	w.todo = ambiguous
	if len(ambiguous) == 0 {
		return false
	}
	return w.settles(ctx, fmt.Errorf("%d writes are ambiguous after %d rounds of repair: %w", len(w.todo), w.rounds+1, why))
}

// ownedContext has ended, for who asks, once the partition is lost. A process that was stopped is told of that by nobody before
// it goes on; a repair that it was at deletes what the next owner has written, and readers see.
type ownedContext struct {
	context.Context
	valid func() bool
}

// Err implements context.Context.
func (c ownedContext) Err() error {
	if err := c.Context.Err(); err != nil {
		return err
	}
	if !c.valid() {
		return errLost
	}
	return nil
}

var errLost = errors.New("the partition was lost")

// upsert hands objects to the store. A test build lets the store go wrong at a write that the test has chosen.
func (x *Indexer) upsert(ctx context.Context, objects []sinks.Object, repair map[int]bool) []sinks.Result {
	switch {
	case fault.Happens(fault.StoreTakesAPart):
		last := len(objects) - 1
		return append(x.Sink.Upsert(ctx, objects[:last], repair), sinks.Result{Outcome: sinks.Transient, Err: errFault})
	case fault.Happens(fault.StoreIsUnheard):
		return slices.Repeat([]sinks.Result{{Outcome: sinks.Ambiguous, Err: errFault}}, len(objects))
	}
	return x.Sink.Upsert(ctx, objects, repair)
}

var errFault = errors.New("a fault of the test build")

// ambiguousRounds is how often a store may leave the fate of the same writes open before its readers are told that it does not
// do its work. The writes are repaired for as long as it takes: given up they would be forgotten, and with them the repair.
const ambiguousRounds = 3

// held says that writes stay ambiguous, or that the store does not say what it has.
func (w *batchWrite) held(why error) {
	if w.rounds++; w.rounds >= ambiguousRounds && w.b.Held != nil {
		w.b.Held(DependencyStore, why)
	}
}

// confirmed: the store has acknowledged the object.
func confirmed(o sinks.Outcome) bool {
	switch mutant.Active {
	case mutant.ItemErrorsIgnored:
		return o == sinks.Done || o == sinks.Rejected || o == sinks.Transient
	case mutant.AmbiguousIsDone:
		return o == sinks.Done || o == sinks.Ambiguous
	}
	return o == sinks.Done
}

// prepare drops what need not or must not be written and makes objects of the rest; todo shrinks accordingly.
func (w *batchWrite) prepare() (objects []sinks.Object, repair map[int]bool) {
	repair = map[int]bool{}
	rows := map[string]*ledger.DocumentRow{}
	var left []int
	for _, i := range w.todo {
		v := w.b.Messages[i].Value
		row, known := rows[v.DocumentID]
		if !known {
			row = w.b.Row(v.DocumentID)
			rows[v.DocumentID] = row
		}
		if !ledger.FenceAllows(row, v.MessageID, v.Revision) || ledger.Confirmed(row, v.Revision, v.Index) {
			w.x.Metrics.skipped()
			continue
		}
		if w.repair[i] {
			repair[len(objects)] = true
		}
		objects = append(objects, objectOf(w.x.Tenant, v))
		left = append(left, i)
	}
	w.todo = left
	return objects, repair
}

// receipts confirm the written chunks: one record per version, with ranges of indexes.
func (w *batchWrite) receipts() []stage.Output {
	type version struct {
		document string
		revision rag.Revision
	}
	var order []version
	subjects, indexes := map[version]rag.Subject{}, map[version][]int{}
	for _, i := range w.written {
		v := w.b.Messages[i].Value
		k := version{v.DocumentID, v.Revision}
		if _, known := subjects[k]; !known {
			order = append(order, k)
			subjects[k] = v.Subject
		}
		indexes[k] = append(indexes[k], v.Index)
	}
	outs := make([]stage.Output, 0, len(order))
	for _, k := range order {
		outs = append(outs, w.x.Topics.Progress.Record(k.document, rag.Progress{Kind: rag.ProgressReceipt, Subject: subjects[k],
			At: w.x.Now(), Confirmed: ranges(indexes[k])}))
	}
	return outs
}

func ranges(indexes []int) []rag.IndexRange {
	sort.Ints(indexes)
	var out []rag.IndexRange
	for _, i := range indexes {
		if n := len(out); n > 0 && i <= out[n-1].To {
			out[n-1].To = max(out[n-1].To, i+1)
			continue
		}
		out = append(out, rag.IndexRange{From: i, To: i + 1})
	}
	return out
}

// storeError puts a store's outcome into the stage's classes; this is the only place that does.
func storeError(r sinks.Result) error {
	err := r.Err
	if err == nil {
		err = fmt.Errorf("the store answered %s without a reason", r.Outcome)
	}
	switch r.Outcome {
	case sinks.Rejected: // the object itself can never be stored
		return &stage.Error{Class: stage.ClassMessage, Reason: rag.ReasonStoreRefused, Err: err}
	case sinks.Outage: // every object would fail
		return stage.Outage(DependencyStore, sinks.RetryAfter(err), err)
	default: // it may go well next time
		return stage.Transient("store_transient", err)
	}
}
