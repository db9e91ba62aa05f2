package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/waymarkhq/waymark/sinks"
)

// commitError is an error of COMMIT itself.
type commitError struct{ err error }

func (e *commitError) Error() string { return fmt.Sprintf("commit: %v", e.err) }

func (e *commitError) Unwrap() error { return e.err }

// classify says what an error means for the objects of its transaction.
func classify(err error) sinks.Result {
	return sinks.Result{Outcome: outcome(err), Err: err}
}

func outcome(err error) sinks.Outcome {
	var commit *commitError
	isCommit := errors.As(err, &commit)
	var coded interface{ Code() int }
	if !errors.As(err, &coded) {
		switch {
		case isCommit:
			return sinks.Ambiguous // the driver does not say what happened
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return sinks.Transient // given up while it waited for its turn; nothing was written
		}
		return sinks.Transient
	}
	switch coded.Code() & 0xff { // the primary code; the rest is detail
	case sqlite3.SQLITE_IOERR:
		// A commit whose sync failed may stand in the write-ahead log all the same, and come to life when the log is
		// recovered. Before the commit an error of the disk only means that the disk is in trouble.
		if isCommit {
			return sinks.Ambiguous
		}
		return sinks.Outage
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM,
		sqlite3.SQLITE_AUTH, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_NOMEM:
		return sinks.Outage // the host has to change before anything can be written; a commit wrote nothing
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return sinks.Outage // another process has held the lock for longer than busyTimeout
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return sinks.Outage // the file is damaged: every object would fail, and none is to blame
	case sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH:
		return sinks.Rejected // the object itself does not fit
	}
	return sinks.Transient // unknown: neither kill an object nor hold everything
}

// isBusy tells whether an error is a lock that somebody else holds.
func isBusy(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == sqlite3.SQLITE_BUSY
}
