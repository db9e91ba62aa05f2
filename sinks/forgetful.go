package sinks

import "context"

// Forgetful is a sink whose servers can lose vectors that they have acknowledged when they end without warning, and which can
// hold an object without its vector when the client ends in the middle of a batch. After every interruption the indexer looks by
// vector for what was written last, and writes again what is gone; and it looks for what a process before it may have begun.
type Forgetful interface {
	Sink
	// Interrupted asks how the servers are: an error is why vectors may have been lost since the last call, such as a
	// server that cannot be reached or has just started. nil: nothing happened. A server that is only slow is not
	// interrupted. It is called about once a second, and takes no longer than a few.
	Interrupted(ctx context.Context) error
	// Torn returns the indexes of those objects of which the store has something that a search does not find: whoever wrote
	// them died in the middle. What the store has nothing of is not torn.
	Torn(ctx context.Context, objects []Object) ([]int, error)
}
