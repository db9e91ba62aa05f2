// Package sqlite is the embedded vector store: one file that several processes of one host may share.
//
// Vectors stand in a plain table and are compared by sqlite-vec's vec_distance_cosine, exactly; the text is in an FTS5
// index of folded terms. Everything of a chunk is written in one transaction, and a transaction is synced to disk
// before it is acknowledged (WAL with synchronous=FULL): what is Done survives a power cut. With synchronous=NORMAL, which
// many use, a power cut would take back the transactions since the last checkpoint, although they were acknowledged; a
// sync for each batch of 100 chunks is the price, about 5 ms.
//
// sqlite-vec's own vec0 table is not used: it scans 100,000 vectors in half the time, but it keeps holes where chunks
// were removed and scans them for ever, needs 0.7 ms to read one vector back, and gives at most 4,096 neighbours.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	_ "modernc.org/sqlite/vec" // vec_distance_cosine

	"github.com/waymarkhq/waymark/sinks"
)

const (
	// busyTimeout is how long a call waits for another process's transaction. Transactions of this package take
	// well below a second.
	busyTimeout = 10 * time.Second
	openRetry   = 20 * time.Millisecond
	readers     = 4
)

// Options of a store. Model and Dimensions are stored with the file.
type Options struct {
	Model      string // name of the embedding model, required
	Dimensions int    // of the vectors, 1 to sinks.MaxDimensions
	Tenant     string // scope of the chunk ids; "" is the default one
}

// Store is an open database file. It implements sinks.Sink, sinks.Searcher and sinks.Scanner.
type Store struct {
	path    string
	options Options
	writer  *writer
	readers *sql.DB
}

var (
	_ sinks.Sink     = (*Store)(nil)
	_ sinks.Searcher = (*Store)(nil)
	_ sinks.Scanner  = (*Store)(nil)
)

// connect makes the connector for a data source name; tests put faults between it and the driver.
type connect func(dsn string) (driver.Connector, error)

// Open opens the database file at path, and makes it if there is none; its folder must exist. A file that was made for
// another model or other dimensions is refused with a *sinks.SpaceError, one of a later release, of another tenant or
// of another program with an error that says so.
func Open(ctx context.Context, path string, options Options) (*Store, error) {
	return open(ctx, path, options, sqlite.NewConnector)
}

func open(ctx context.Context, path string, options Options, connect connect) (*Store, error) {
	space := sinks.Space{Model: options.Model, Dimensions: options.Dimensions}
	if err := space.Validate(); err != nil {
		return nil, fmt.Errorf("open store %s: %w", path, err)
	}
	// Switching a new file to the write-ahead log, and removing the log when the last process closes it, take locks for which
	// SQLite does not wait.
	for deadline := time.Now().Add(busyTimeout); ; {
		s := &Store{path: path, options: options}
		err := s.openFiles(ctx, connect)
		if err == nil {
			return s, nil
		}
		err = errors.Join(fmt.Errorf("open store %s: %w", path, err), s.Close())
		if !isBusy(err) || time.Now().After(deadline) {
			return nil, err
		}
		if err := pause(ctx); err != nil {
			return nil, fmt.Errorf("open store %s: %w", path, err)
		}
	}
}

// pause waits before another attempt to open.
func pause(ctx context.Context) error {
	timer := time.NewTimer(openRetry)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Store) openFiles(ctx context.Context, connect connect) error {
	path, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	db, err := openDB(path, connect, "immediate",
		"page_size(8192)", // holds seven vectors of 256 dimensions; one of 4,096 bytes holds three
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"wal_autocheckpoint(4000)",
		"journal_size_limit(67108864)",
		"cache_size(-16384)",
		"temp_store(MEMORY)",
	)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	s.writer = &writer{db: db}
	if err := s.prepareSchema(ctx, db); err != nil {
		return err
	}
	if err := s.writer.prepare(ctx); err != nil {
		return err
	}
	s.readers, err = openDB(path, connect, "deferred", "query_only(1)", "cache_size(-8192)", "temp_store(MEMORY)")
	if err != nil {
		return err
	}
	s.readers.SetMaxOpenConns(readers)
	s.readers.SetMaxIdleConns(readers)
	return s.readers.PingContext(ctx)
}

// openDB opens a pool on the file; the path is escaped, so that no character of it means anything but itself.
func openDB(path string, connect connect, lock string, pragmas ...string) (*sql.DB, error) {
	q := url.Values{"_txlock": {lock}, "_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds())}}
	q["_pragma"] = append(q["_pragma"], pragmas...)
	dsn := url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}
	c, err := connect(dsn.String())
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}

// Close waits for the calls that run and closes the file. Calls after it fail.
func (s *Store) Close() error {
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	return errors.Join(errs...)
}
