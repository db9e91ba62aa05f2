package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/waymarkhq/waymark/sinks/sinktest"
)

// codeError is an error with a result code, as the driver's.
type codeError struct {
	code    int
	message string
}

func (e *codeError) Error() string { return e.message }

func (e *codeError) Code() int { return e.code }

// faultDriver stands between database/sql and the SQLite driver and makes the next transaction meet a fault.
type faultDriver struct {
	dsn      func(string) string // changes the data source name, if not nil
	onInsert func()              // runs before every insert of a chunk, if not nil

	mu    sync.Mutex
	fault *pending
}

// pending is a fault that waits for its transaction, and then for its release.
type pending struct {
	sinktest.Fault
	met     chan struct{} // closed when the transaction has met it
	delayed *faultConn    // LostLater: the connection whose COMMIT is still to come
	tx      driver.Tx
	inserts int
}

func (d *faultDriver) connect(dsn string) (driver.Connector, error) {
	if d.dsn != nil {
		dsn = d.dsn(dsn)
	}
	c, err := sqlite.NewConnector(dsn)
	return &faultConnector{Connector: c, driver: d}, err
}

// arm makes the next transaction that writes meet f.
func (d *faultDriver) arm(t testing.TB, f sinktest.Fault) (release func()) {
	p := &pending{Fault: f, met: make(chan struct{})}
	d.mu.Lock()
	d.fault = p
	d.mu.Unlock()
	return func() {
		if f.Kind != sinktest.LostLater {
			return
		}
		<-p.met
		if err := p.tx.Commit(); err != nil {
			t.Errorf("the delayed commit: %v", err)
		}
		if err := p.delayed.Conn.Close(); err != nil {
			t.Errorf("close after the delayed commit: %v", err)
		}
	}
}

func (d *faultDriver) take() *pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.fault
	d.fault = nil
	return p
}

type faultConnector struct {
	driver.Connector
	driver *faultDriver
}

func (c *faultConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &faultConn{Conn: conn, driver: c.driver}, nil
}

// faultConn forwards what the driver's connection can do.
type faultConn struct {
	driver.Conn
	driver   *faultDriver
	fault    *pending // of the transaction that runs
	detached bool     // a delayed commit owns the connection
}

func (c *faultConn) Unwrap() driver.Conn { return c.Conn }

func (c *faultConn) Close() error {
	if c.detached {
		return nil
	}
	return c.Conn.Close()
}

func (c *faultConn) Ping(ctx context.Context) error { return c.Conn.(driver.Pinger).Ping(ctx) }

func (c *faultConn) ResetSession(ctx context.Context) error {
	return c.Conn.(driver.SessionResetter).ResetSession(ctx)
}

func (c *faultConn) IsValid() bool { return c.Conn.(driver.Validator).IsValid() }

func (c *faultConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
}

func (c *faultConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c *faultConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil || !strings.HasPrefix(query, "INSERT INTO chunk ") {
		return s, err
	}
	return &faultStmt{Stmt: s, conn: c}, nil
}

func (c *faultConn) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	if o.ReadOnly {
		return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	}
	c.fault = c.driver.take()
	if c.fault != nil && c.fault.Kind == sinktest.LostLater {
		ctx = context.WithoutCancel(ctx) // the delayed commit outlives the call
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o)
	return &faultTx{Tx: tx, conn: c}, err
}

// faultStmt fails for one object.
type faultStmt struct {
	driver.Stmt
	conn *faultConn
}

func (s *faultStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if f := s.conn.driver.onInsert; f != nil {
		f()
	}
	if p := s.conn.fault; p != nil && p.Kind == sinktest.FailItem {
		if p.inserts == p.Item {
			s.conn.fault = nil
			return nil, &codeError{sqlite3.SQLITE_ERROR, "this object failed"}
		}
		p.inserts++
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *faultStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

// faultTx fails in its commit.
type faultTx struct {
	driver.Tx
	conn *faultConn
}

func (t *faultTx) Commit() error {
	p := t.conn.fault
	t.conn.fault = nil
	if p == nil {
		return t.Tx.Commit()
	}
	lost := &codeError{sqlite3.SQLITE_IOERR_FSYNC, "disk I/O error in the sync of a commit"}
	switch p.Kind {
	case sinktest.LostBefore:
		if err := t.Tx.Rollback(); err != nil {
			return err
		}
		return lost
	case sinktest.LostAfter:
		if err := t.Tx.Commit(); err != nil {
			return err
		}
		return lost
	case sinktest.LostLater:
		t.conn.detached = true
		p.delayed, p.tx = t.conn, t.Tx
		close(p.met)
		return lost
	case sinktest.FailAll:
		if err := t.Tx.Rollback(); err != nil {
			return err
		}
		return &codeError{sqlite3.SQLITE_FULL, "database or disk is full"}
	}
	return t.Tx.Commit()
}
