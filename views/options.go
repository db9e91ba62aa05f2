package views

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/waymarkhq/waymark/kafka"
)

// Options of every view.
type Options struct {
	Kafka kafka.Config
	// Dir is the folder of all views of this process; each has its own below it.
	Dir string
	// Expiry of the rows, for tables that Kafka forgets as well; nil: none.
	Expiry *kafka.Expiry
	// MaxOffline is how long the process may have been away before the local copy is read anew from Kafka, because it
	// could hold keys whose deletion is forgotten: below the table's delete.retention.ms. 0: for ever.
	MaxOffline time.Duration
	Log        *slog.Logger                         // slog.Default() if nil
	Now        func() time.Time                     // time.Now if nil
	After      func(time.Duration) <-chan time.Time // time.After if nil
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.After == nil {
		o.After = time.After
	}
	return o
}

const (
	// freshnessInterval is the pause between two questions for the newest offsets: what FreshAsOf lags behind at least.
	freshnessInterval = time.Second

	// freshPoll is how often somebody who waits for it looks at FreshAsOf.
	freshPoll = freshnessInterval / 20

	rebuildPauseMin = 200 * time.Millisecond
	rebuildPauseMax = 10 * time.Second

	// sweepPerTick is how many index entries are compared with the store in each freshnessInterval.
	sweepPerTick = 1000
)

// Reasons of NotReadyError.
const (
	ReasonRecovering  = "views_recovering"
	ReasonNewerFormat = "views_newer_format"
)

// NotReadyError says why a view cannot answer. It costs time, nothing else.
type NotReadyError struct {
	Table  string
	Reason string // one of the Reason constants
	Err    error  // the last trouble; nil if it only takes its time
}

func (e *NotReadyError) Error() string {
	text := "the view of " + e.Table + " is not complete yet"
	if e.Reason == ReasonNewerFormat {
		text = "a newer release has written to " + e.Table
	}
	if e.Err != nil {
		return fmt.Sprintf("%s: %v", text, e.Err)
	}
	return text
}

// Unwrap gives the last trouble.
func (e *NotReadyError) Unwrap() error { return e.Err }

// Unavailable is the reason and when to ask again.
func (e *NotReadyError) Unavailable() (reason string, retryAfter time.Duration) {
	return e.Reason, time.Second
}

// Stats of a view, since it was made.
type Stats struct {
	Undecodable int64 // records that were skipped
	Rebuilds    int64 // times that it had to start anew
}
