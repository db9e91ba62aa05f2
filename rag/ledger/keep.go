package ledger

import "time"

// Keep says how long the ends of submissions are remembered: for so long, and at least so many per document. A negative
// For means: whatever their age, only so many.
type Keep struct {
	For   time.Duration
	Count int
}

// DefaultKeep is the memory that the delivery contract promises.
var DefaultKeep = Keep{For: 7 * 24 * time.Hour, Count: 256}

// old reports whether something of that time may be forgotten. A time far in the future is as old as one far in the
// past: timestamps come from producers, and a wrong one must not keep its entry for ever.
func (k Keep) old(at, now time.Time) bool { return now.Sub(at).Abs() > k.For }
