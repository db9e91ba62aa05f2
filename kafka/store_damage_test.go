package kafka_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/kafka"
)

// damage flips bytes in every table and journal of the store.
func damage(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.l*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in %s: %v", dir, err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := 10; i < len(b); i += 50 {
			b[i] ^= 0x55
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDamagedStoreIsMovedAside(t *testing.T) {
	dir := t.TempDir()
	var log strings.Builder
	s := kafka.NewStores(kafka.StoreOptions{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
	st := openStore(t, s, "t", 0)
	for i := range 100 {
		set(t, st, fmt.Sprint(i), "some value that is long enough")
	}
	closeStore(t, st)
	damage(t, filepath.Join(dir, "t.0"))

	st = openStore(t, s, "t", 0)
	defer closeStore(t, st)
	if got := offset(t, st); got != -3 {
		t.Fatalf("offset %d of a store that has to be rebuilt", got)
	}
	if got := get(t, st, "1"); got != "<nil>" {
		t.Fatalf("row %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "t.0.damaged")); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "level=ERROR") {
		t.Fatalf("log: %s", log.String())
	}
}

// Damage that shows only when a row is read is an error then, and the next opening starts anew.
func TestDamageFoundWhileReadingIsHealedAtTheNextOpening(t *testing.T) {
	dir := t.TempDir()
	s := kafka.NewStores(kafka.StoreOptions{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	st := openStore(t, s, "t", 0)
	value := strings.Repeat("0123456789", 100)
	for i := range 2000 { // more than the write buffer: tables are written
		set(t, st, fmt.Sprint(i), value+fmt.Sprint(i))
	}
	closeStore(t, st)
	tables, err := filepath.Glob(filepath.Join(dir, "t.0", "*.ldb"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables: %v", err)
	}
	for _, f := range tables {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i := 100; i < len(b)/2; i += 1000 { // rows only: the index is at the end
			b[i] ^= 0xff
		}
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	st = openStore(t, s, "t", 0)
	var failed bool
	for i := range 2000 {
		if _, err := st.Get(fmt.Sprint(i)); err != nil {
			failed = true
		}
	}
	_ = st.Close()
	if !failed {
		t.Fatal("no row was damaged")
	}
	st = openStore(t, s, "t", 0)
	defer closeStore(t, st)
	if got := offset(t, st); got != -3 {
		t.Fatalf("offset %d: the damaged store is used again", got)
	}
	set(t, st, "k", "v")
	if got := get(t, st, "k"); got != "v" {
		t.Fatal(got)
	}
}

func TestStoreOfAnotherTopicIsEmptied(t *testing.T) {
	dir := t.TempDir()
	open := func(id string) storage.Storage {
		return openStore(t, kafka.NewStores(kafka.StoreOptions{
			Dir: dir, TopicIDs: map[string]string{"t": id}, Log: slog.New(slog.DiscardHandler),
		}), "t", 0)
	}
	st := open("first")
	set(t, st, "k", "v")
	closeStore(t, st)
	st = open("first")
	if got := get(t, st, "k"); got != "v" {
		t.Fatalf("row of the same topic: %q", got)
	}
	closeStore(t, st)
	st = open("second")
	defer closeStore(t, st)
	if got := get(t, st, "k"); got != "<nil>" {
		t.Fatalf("row of a topic that is gone: %q", got)
	}
}

func TestStoreThatWasAwayTooLongIsEmptied(t *testing.T) {
	dir, c := t.TempDir(), newClock()
	open := func() storage.Storage {
		return openStore(t, kafka.NewStores(kafka.StoreOptions{
			Dir: dir, Now: c.now, MaxOffline: 24 * time.Hour, Log: slog.New(slog.DiscardHandler),
		}), "t", 0)
	}
	st := open()
	set(t, st, "k", "v")
	c.advance(40 * time.Hour) // open all the time
	closeStore(t, st)
	c.advance(23 * time.Hour)
	st = open()
	if got := get(t, st, "k"); got != "v" {
		t.Fatalf("row after 23 hours: %q", got)
	}
	closeStore(t, st)
	c.advance(25 * time.Hour)
	st = open()
	defer closeStore(t, st)
	if got := get(t, st, "k"); got != "<nil>" {
		t.Fatalf("row after 25 hours: %q", got)
	}
}

func TestStoreInUseIsNotDamaged(t *testing.T) {
	dir := t.TempDir()
	s := kafka.NewStores(kafka.StoreOptions{Dir: dir})
	st := openStore(t, s, "t", 0)
	defer closeStore(t, st)
	if _, err := kafka.NewStores(kafka.StoreOptions{Dir: dir}).Builder()("t", 0); err == nil {
		t.Fatal("a store was opened twice")
	}
	if _, err := os.Stat(filepath.Join(dir, "t.0.damaged")); err == nil {
		t.Fatal("a store in use was moved aside")
	}
}

// The note beside a store is for its own good: one that is damaged itself must not keep the store from opening.
func TestDamagedMarkerIsNoReasonToFail(t *testing.T) {
	for _, content := range []string{"", "{", "null", "[]", `{"touched":"yesterday"}`, "\x00\xff", `{"topic_id":7}`} {
		dir := t.TempDir()
		open := func() storage.Storage {
			return openStore(t, kafka.NewStores(kafka.StoreOptions{
				Dir: dir, TopicIDs: map[string]string{"t": "id"}, MaxOffline: time.Hour, Log: slog.New(slog.DiscardHandler),
			}), "t", 0)
		}
		st := open()
		set(t, st, "k", "v")
		closeStore(t, st)
		if err := os.WriteFile(filepath.Join(dir, "t.0.json"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		st = open()
		if got := get(t, st, "k"); got != "v" {
			t.Errorf("marker %q: row %q", content, got)
		}
		closeStore(t, st)
	}
}
