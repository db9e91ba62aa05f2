package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
)

// writer owns the one connection that writes. database/sql makes callers wait for it in turn.
type writer struct {
	db *sql.DB

	selectChunk                    *sql.Stmt
	deleteChunk, insertChunk       *sql.Stmt
	deleteVector, insertVector     *sql.Stmt
	deleteText, insertText         *sql.Stmt
	deleteMetadata, insertMetadata *sql.Stmt
	addCount                       *sql.Stmt
}

func (w *writer) prepare(ctx context.Context) error {
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&w.selectChunk, `SELECT key, metadata FROM chunk WHERE id = ?`},
		{&w.deleteChunk, `DELETE FROM chunk WHERE key = ?`},
		{&w.insertChunk, `INSERT INTO chunk (id, document, version, generation, number, count, start, "end", page,
			title, source, heading, metadata, text, parent_start, parent_end, parent_text)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`},
		{&w.deleteVector, `DELETE FROM vector WHERE chunk = ?`},
		{&w.insertVector, `INSERT INTO vector (chunk, value) VALUES (?, ?)`},
		{&w.deleteText, `DELETE FROM text_index WHERE rowid = ?`},
		{&w.insertText, `INSERT INTO text_index (rowid, text, title) VALUES (?, ?, ?)`},
		{&w.deleteMetadata, `DELETE FROM metadata WHERE pair = ? AND chunk = ?`},
		{&w.insertMetadata, `INSERT OR IGNORE INTO metadata (pair, chunk) VALUES (?, ?)`},
		{&w.addCount, `UPDATE meta SET value = value + ? WHERE name = 'chunks'`},
	} {
		var err error
		if *s.stmt, err = w.db.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) close() error {
	var errs []error
	for _, s := range []*sql.Stmt{
		w.selectChunk, w.deleteChunk, w.insertChunk, w.deleteVector, w.insertVector, w.deleteText, w.insertText,
		w.deleteMetadata, w.insertMetadata, w.addCount,
	} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, w.db.Close())...)
}

// transact runs do in a transaction. ctx bounds the wait for the lock; from then on the transaction runs to its end,
// because one that is cut off in its commit leaves its outcome open. A *commitError comes from COMMIT itself; with
// every other error nothing was written.
func (w *writer) transact(ctx context.Context, do func(ctx context.Context, tx *transaction) error) error {
	conn, err := w.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // hands the connection back to the pool
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	detach := context.AfterFunc(ctx, cancel)
	tx, err := conn.BeginTx(running, nil)
	if !detach() && err == nil {
		return errors.Join(ctx.Err(), tx.Rollback())
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	t := &transaction{writer: w, tx: tx}
	err = do(running, t)
	if err == nil {
		err = t.updateCount(running)
	}
	if err != nil {
		if rollbackErr := tx.Rollback(); rollbackErr != nil {
			discard(conn)
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		discard(conn)
		return &commitError{err}
	}
	return nil
}

// discard takes a connection in an unknown state out of the pool; closing it ends whatever it still had open.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
