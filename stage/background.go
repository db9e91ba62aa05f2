package stage

import "context"

// Background is work on a partition beside its messages, such as looking after what was written to the outside. It runs for
// as long as this pod owns the partition, begins when the table is recovered, and may return before the end. An error is
// logged, and the work begins anew later.
type Background[R any] func(ctx context.Context, p Owned[R]) error

// Owned is a partition that this pod owns, as work in the background sees it. All functions may be called until the
// Background has returned.
type Owned[R any] struct {
	Partition int32
	// Row reads the current row of a key of this partition; nil if it has none. It must not be changed.
	Row func(key string) *R
	// Valid reports whether this pod still owns the partition. Ask it before every effect on the outside.
	Valid func() bool
	// Delivered is the offset up to which records of an input were delivered, or committed before; false while this pod has
	// not begun to read it.
	Delivered func(topic string) (next int64, known bool)
	// Alone runs an act on the outside while no batch and no timer of this partition acts. What rows say meanwhile about
	// the outside holds until it returns. Its context outlasts the end of the session for the time that is left to drain.
	Alone func(act func(ctx context.Context))
}
