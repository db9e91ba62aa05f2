package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/sinks"
)

func openStore(t *testing.T, path string, o Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestOpenRefusesAnotherSpace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	openStore(t, path, Options{Model: "a", Dimensions: 3})
	for _, o := range []Options{{Model: "b", Dimensions: 3}, {Model: "a", Dimensions: 4}} {
		_, err := Open(context.Background(), path, o)
		var mismatch *sinks.SpaceError
		if !errors.As(err, &mismatch) {
			t.Fatalf("Open with %+v: %v, want a SpaceError", o, err)
		}
		want := sinks.SpaceError{Store: path, Stored: sinks.Space{Model: "a", Dimensions: 3}, Wanted: sinks.Space{Model: o.Model, Dimensions: o.Dimensions}}
		if *mismatch != want {
			t.Errorf("got %+v, want %+v", *mismatch, want)
		}
		for _, s := range []string{`"a"`, o.Model, path} {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%q does not name %s", err, s)
			}
		}
	}
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	dir := t.TempDir()
	good := Options{Model: "a", Dimensions: 3}
	path := filepath.Join(dir, "tenant.db")
	openStore(t, path, Options{Model: "a", Dimensions: 3, Tenant: "one"})

	newer := filepath.Join(dir, "newer.db")
	openStore(t, newer, good)
	execRaw(t, newer, "UPDATE meta SET value = 3 WHERE name = 'schema'")
	foreign := filepath.Join(dir, "foreign.db")
	execRaw(t, foreign, "CREATE TABLE meta (x); CREATE TABLE other (y)")

	for _, c := range []struct {
		path string
		o    Options
		want string
	}{
		{path, Options{Model: "a", Dimensions: 3, Tenant: "two"}, `tenant "one"`},
		{newer, good, "layout is version 3"},
		{foreign, good, "another program"},
		{filepath.Join(dir, "no", "folder.db"), good, "no/folder.db"},
		{filepath.Join(dir, "x.db"), Options{Dimensions: 3}, "model is empty"},
		{filepath.Join(dir, "x.db"), Options{Model: "a"}, "0 dimensions"},
	} {
		s, err := Open(context.Background(), c.path, c.o)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Open(%s, %+v) = %v, want an error with %q", c.path, c.o, err, c.want)
		}
	}
}

// No character of a path means anything but itself.
func TestOpenTakesAnyPath(t *testing.T) {
	for _, name := range []string{"a b?mode=memory.db", "100%.db", "#x.db", ":memory:", "é+&=.db"} {
		path := filepath.Join(t.TempDir(), name)
		openStore(t, path, Options{Model: "a", Dimensions: 3})
		if matches, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(matches) == 0 || matches[0] != path {
			t.Errorf("files for %q: %q", name, matches)
		}
	}
}

// Of several that open a new file at once, one makes the tables and all go on.
func TestOpenAtOnce(t *testing.T) {
	for range 5 {
		path := filepath.Join(t.TempDir(), "store.db")
		var group sync.WaitGroup
		start := make(chan struct{})
		for range 8 {
			group.Go(func() {
				<-start
				s, err := Open(context.Background(), path, testOptions)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		group.Wait()
	}
}

// execRaw changes a file behind the store's back.
func execRaw(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// A file of the first layout, which knew no parents, is brought up to date; one that is refused is left as it is.
func TestAnOldFileIsBroughtUpToDate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "old.db")
	good := Options{Model: "a", Dimensions: 3}
	id := rag.ChunkID("", "doc", rag.Revision{Version: 1}, 0).String()
	object := sinks.Object{ID: id, Vector: []float32{1, 0, 0}, Chunk: rag.Chunk{
		Subject: rag.Subject{DocumentID: "doc", Revision: rag.Revision{Version: 1}}, Count: 1, Text: "some words", End: 10}}
	s := openStore(t, path, good)
	if r := s.Upsert(t.Context(), []sinks.Object{object}, nil); r[0].Err != nil {
		t.Fatal(r[0].Err)
	}
	execRaw(t, path, `ALTER TABLE chunk DROP COLUMN parent_start; ALTER TABLE chunk DROP COLUMN parent_end;
		ALTER TABLE chunk DROP COLUMN parent_text; UPDATE meta SET value = 1 WHERE name = 'schema'`)
	if _, err := Open(t.Context(), path, Options{Model: "b", Dimensions: 3}); err == nil {
		t.Fatal("another model was accepted")
	}
	for range 2 {
		s = openStore(t, path, good)
		hits, err := s.Search(t.Context(), sinks.Query{Mode: sinks.ModeText, Text: "words", K: 1})
		if err != nil || len(hits) != 1 || hits[0].Chunk.Parent != object.Chunk.Parent {
			t.Fatalf("found %+v, %v", hits, err)
		}
		object.Chunk.Parent = rag.Parent{End: 20, Text: "some words and more"}
		if r := s.Upsert(t.Context(), []sinks.Object{object}, nil); r[0].Err != nil {
			t.Fatal(r[0].Err)
		}
	}
}
