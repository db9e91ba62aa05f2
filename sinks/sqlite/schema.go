package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"github.com/waymarkhq/waymark/sinks"
)

// schemaVersion is the layout that this release reads and writes.
const schemaVersion = 2

// A chunk's key joins its parts: chunk (what it is), vector (a table of its own, so that a scan reads nothing else),
// text_index (the folded terms, which it keeps, so that a later release whose folding differs removes what was written)
// and metadata (for filters). meta.value of "chunks" is the number
// of chunks, kept by the transactions, because SQLite counts by reading.
const schema = `
CREATE TABLE meta (
	name  TEXT PRIMARY KEY,
	value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE chunk (
	key        INTEGER PRIMARY KEY,
	id         BLOB    NOT NULL UNIQUE,
	document   TEXT    NOT NULL,
	version    INTEGER NOT NULL,
	generation INTEGER NOT NULL,
	number     INTEGER NOT NULL,
	count      INTEGER NOT NULL,
	start      INTEGER NOT NULL,
	"end"      INTEGER NOT NULL,
	page       INTEGER NOT NULL,
	title      TEXT    NOT NULL,
	source     TEXT    NOT NULL,
	heading    TEXT    NOT NULL,
	metadata   BLOB    NOT NULL,
	text       TEXT    NOT NULL,
	parent_start INTEGER NOT NULL DEFAULT 0,
	parent_end   INTEGER NOT NULL DEFAULT 0,
	parent_text  TEXT    NOT NULL DEFAULT ''
) STRICT;

CREATE INDEX chunk_document ON chunk (document, version, generation, number);

CREATE TABLE vector (
	chunk INTEGER PRIMARY KEY,
	value BLOB NOT NULL
) STRICT;

CREATE TABLE metadata (
	pair  TEXT    NOT NULL,
	chunk INTEGER NOT NULL,
	PRIMARY KEY (pair, chunk)
) STRICT, WITHOUT ROWID;

CREATE VIRTUAL TABLE text_index USING fts5 (
	text, title,
	tokenize = "ascii tokenchars '.,:;_'"
);
`

// prepareSchema makes the tables in a new file, and checks those of an old one.
func (s *Store) prepareSchema(ctx context.Context, db *sql.DB) error {
	var mode string
	if err := db.QueryRowContext(ctx, "PRAGMA journal_mode").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the journal mode is %s: the file system does not allow a write-ahead log", mode)
	}
	tx, err := db.BeginTx(ctx, nil) // immediate: of several processes that start at once, one makes the tables
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	var tables int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	if tables == 0 {
		if err := s.createSchema(ctx, tx); err != nil {
			return err
		}
		return tx.Commit()
	}
	if err := s.upgrade(ctx, tx); err != nil {
		return err
	}
	if err := s.checkMeta(ctx, tx); err != nil {
		return err
	}
	return tx.Commit()
}

// upgrades bring a file of a layout to the next one, by statements that a process of the release before can live with.
var upgrades = map[string][]string{
	"1": {
		"ALTER TABLE chunk ADD COLUMN parent_start INTEGER NOT NULL DEFAULT 0",
		"ALTER TABLE chunk ADD COLUMN parent_end INTEGER NOT NULL DEFAULT 0",
		"ALTER TABLE chunk ADD COLUMN parent_text TEXT NOT NULL DEFAULT ''",
		"UPDATE meta SET value = 2 WHERE name = 'schema'",
	},
}

// upgrade changes an old file; one of another model or tenant is left as it is, as the transaction is not committed.
func (s *Store) upgrade(ctx context.Context, tx *sql.Tx) error {
	meta, err := readMeta(ctx, tx)
	if err != nil {
		return err
	}
	for _, statement := range upgrades[meta["schema"]] {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("bring layout %s up to date: %w", meta["schema"], err)
		}
	}
	return nil
}

func (s *Store) createSchema(ctx context.Context, tx *sql.Tx) error {
	if _, err := tx.ExecContext(ctx, schema); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	for name, value := range map[string]any{
		"schema": schemaVersion, "model": s.options.Model, "dimensions": s.options.Dimensions,
		"tenant": s.options.Tenant, "chunks": 0,
	} {
		if _, err := tx.ExecContext(ctx, "INSERT INTO meta (name, value) VALUES (?, ?)", name, value); err != nil {
			return fmt.Errorf("write meta: %w", err)
		}
	}
	return nil
}

func (s *Store) checkMeta(ctx context.Context, tx *sql.Tx) error {
	meta, err := readMeta(ctx, tx)
	if err != nil {
		return err
	}
	version, err := strconv.Atoi(meta["schema"])
	if err != nil {
		return errors.New("it is a database of another program")
	}
	if version != schemaVersion {
		return fmt.Errorf("its layout is version %d, and this release knows version %d", version, schemaVersion)
	}
	dimensions, err := strconv.Atoi(meta["dimensions"])
	if err != nil {
		return fmt.Errorf("read dimensions: %w", err)
	}
	stored := sinks.Space{Model: meta["model"], Dimensions: dimensions}
	wanted := sinks.Space{Model: s.options.Model, Dimensions: s.options.Dimensions}
	if stored != wanted {
		return &sinks.SpaceError{Store: s.path, Stored: stored, Wanted: wanted}
	}
	if meta["tenant"] != s.options.Tenant {
		return fmt.Errorf("it belongs to tenant %q, not %q", meta["tenant"], s.options.Tenant)
	}
	return nil
}

func readMeta(ctx context.Context, tx *sql.Tx) (map[string]string, error) {
	var has int
	err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'meta'").Scan(&has)
	if err != nil || has == 0 {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, "SELECT name, CAST(value AS TEXT) FROM meta")
	if err != nil {
		return nil, errors.New("it is a database of another program")
	}
	defer rows.Close()
	meta := make(map[string]string)
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		meta[name] = value
	}
	return meta, rows.Err()
}
