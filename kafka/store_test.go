package kafka_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lovoo/goka/storage"
	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
)

func openStore(t testing.TB, s *kafka.Stores, topic string, partition int32) storage.Storage {
	t.Helper()
	st, err := s.Builder()(topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Open(); err != nil {
		t.Fatal(err)
	}
	return st
}

func closeStore(t testing.TB, st storage.Storage) {
	t.Helper()
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
}

func set(t testing.TB, st storage.Storage, key, value string) {
	t.Helper()
	if err := st.Set(key, []byte(value)); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, st storage.Storage, key string) string {
	t.Helper()
	v, err := st.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return "<nil>"
	}
	return string(v)
}

func keys(t testing.TB, it storage.Iterator, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer it.Release()
	var out []string
	for it.Next() {
		out = append(out, string(it.Key()))
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func offset(t testing.TB, st storage.Storage) int64 {
	t.Helper()
	o, err := st.GetOffset(-3)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// A row whose key is the one of goka's offset must neither be lost nor overwrite the offset.
func TestStoreKeepsRowsAndOffsetApart(t *testing.T) {
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir()})
	st := openStore(t, s, "t", 0)
	if got := offset(t, st); got != -3 {
		t.Fatalf("offset of a new store: %d", got)
	}
	for _, k := range []string{"__offset", "__offset_", "o", "r", ""} {
		set(t, st, k, "value of "+k)
	}
	if err := st.MarkRecovered(); err != nil {
		t.Fatal(err)
	}
	if err := st.SetOffset(17); err != nil {
		t.Fatal(err)
	}
	closeStore(t, st)

	st = openStore(t, s, "t", 0)
	defer closeStore(t, st)
	if got := offset(t, st); got != 17 {
		t.Fatalf("offset %d, want 17", got)
	}
	for _, k := range []string{"__offset", "__offset_", "o", "r", ""} {
		if got := get(t, st, k); got != "value of "+k {
			t.Errorf("row %q: %q", k, got)
		}
	}
	it, err := st.Iterator()
	if got := keys(t, it, err); !slices.Equal(got, []string{"", "__offset", "__offset_", "o", "r"}) {
		t.Errorf("keys %q", got)
	}
}

func TestStoreKeepsOffsetZeroAndTheOffsetOfACutRecovery(t *testing.T) {
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir()})
	st := openStore(t, s, "t", 0)
	set(t, st, "k", "v")
	if err := st.SetOffset(0); err != nil { // recovering: nobody has called MarkRecovered
		t.Fatal(err)
	}
	closeStore(t, st)
	st = openStore(t, s, "t", 0)
	defer closeStore(t, st)
	if got := offset(t, st); got != 0 {
		t.Fatalf("offset %d, want 0", got)
	}
}

// The store behaves as a sorted map of its keys.
func TestStoreIsAMap(t *testing.T) {
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir()})
	var n atomic.Int32
	rapid.Check(t, func(t *rapid.T) {
		st, err := s.Builder()("t", n.Add(1))
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		model := make(map[string]string)
		key := rapid.SampledFrom([]string{"", "a", "ab", "b", "__offset", "__offset_", "__offset__", "_", "o", "r", "\xff"})
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			k := key.Draw(t, "key")
			if rapid.Bool().Draw(t, "delete") {
				delete(model, k)
				err = st.Delete(k)
			} else {
				model[k] = rapid.String().Draw(t, "value")
				err = st.Set(k, []byte(model[k]))
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for k := range model {
			if v, err := st.Get(k); err != nil || string(v) != model[k] {
				t.Fatalf("%q is %q, %v, want %q", k, v, err, model[k])
			}
		}
		start, limit := key.Draw(t, "start"), key.Draw(t, "limit")
		var want []string
		for _, k := range slices.Sorted(maps.Keys(model)) {
			if limit == "" && strings.HasPrefix(k, start) || limit != "" && k >= start && k < limit {
				want = append(want, k)
			}
		}
		it, err := st.IteratorWithRange([]byte(start), []byte(limit))
		if err != nil {
			t.Fatal(err)
		}
		defer it.Release()
		var got []string
		for it.Next() {
			got = append(got, string(it.Key()))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("keys from %q to %q: %q, want %q", start, limit, got, want)
		}
	})
}

func TestStoresKnowWhatIsOpen(t *testing.T) {
	kafkatest.NoLeaks(t)
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir()})
	if _, ok := s.Get("t", 3); ok {
		t.Fatal("a store that was never built")
	}
	st := openStore(t, s, "t", 3)
	set(t, st, "k", "v")
	got, ok := s.Get("t", 3)
	if !ok || get(t, got, "k") != "v" {
		t.Fatal("the open store is not found")
	}
	if _, ok := s.Get("t", 2); ok {
		t.Fatal("another partition's store")
	}
	closeStore(t, st)
	closeStore(t, st)
	if _, ok := s.Get("t", 3); ok {
		t.Fatal("a closed store")
	}
}

// clock is a time that a test moves.
type clock struct{ at atomic.Int64 }

func newClock() *clock                   { c := &clock{}; c.at.Store(1_700_000_000_000); return c }
func (c *clock) now() time.Time          { return time.UnixMilli(c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(d.Milliseconds()) }

func stamped(c *clock, v string) string {
	return string(binary.BigEndian.AppendUint64(nil, uint64(c.now().UnixMilli()))) + v
}

func expiry(after time.Duration) kafka.Expiry {
	return kafka.Expiry{After: after, WrittenAt: func(v []byte) (time.Time, bool) {
		if len(v) < 8 {
			return time.Time{}, false
		}
		return time.UnixMilli(int64(binary.BigEndian.Uint64(v))), true
	}}
}

type sweeper interface{ Sweep(limit int) (int, error) }

func TestStoreExpiresRows(t *testing.T) {
	c := newClock()
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir(), Now: c.now, Expiry: map[string]kafka.Expiry{"t": expiry(time.Hour)}})
	st := openStore(t, s, "t", 0)
	defer closeStore(t, st)
	for i := range 10 {
		set(t, st, fmt.Sprint("old", i), stamped(c, "x"))
	}
	set(t, st, "never", "short")
	c.advance(30 * time.Minute)
	set(t, st, "young", stamped(c, "x"))
	stale := stamped(c, "x")
	c.advance(30 * time.Minute)

	if got := get(t, st, "old1"); got != "<nil>" {
		t.Fatalf("expired row: %q", got)
	}
	it, err := st.Iterator()
	if got := keys(t, it, err); !slices.Equal(got, []string{"never", "young"}) {
		t.Fatalf("keys %q", got)
	}
	if ok, err := st.Has("old1"); ok || err != nil {
		t.Fatalf("expired row is there: %v, %v", ok, err)
	}
	if n, err := st.(sweeper).Sweep(4); n != 4 || err != nil {
		t.Fatalf("swept %d, %v, want the bound of 4", n, err)
	}
	if n, err := st.(sweeper).Sweep(100); n != 6 || err != nil {
		t.Fatalf("swept %d, %v, want the other 6", n, err)
	}
	// An old record of a recovery hides what stood before it.
	set(t, st, "again", stamped(c, "x"))
	c.advance(40 * time.Minute)
	set(t, st, "again", stale)
	if got := get(t, st, "again"); got != "<nil>" {
		t.Fatalf("an expired record left %q in place", got)
	}
}

// The sweep must not take a row that was written while it ran.
func TestSweepKeepsWhatIsWrittenMeanwhile(t *testing.T) {
	c := newClock()
	s := kafka.NewStores(kafka.StoreOptions{Dir: t.TempDir(), Now: c.now, Expiry: map[string]kafka.Expiry{"t": expiry(time.Millisecond)}})
	st := openStore(t, s, "t", 0)
	defer closeStore(t, st)
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !done.Load() {
			if _, err := st.(sweeper).Sweep(1000); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for i := range 3000 {
		k := fmt.Sprint(i % 20)
		set(t, st, k, stamped(c, "x"))
		if get(t, st, k) == "<nil>" {
			t.Fatal("a row was lost")
		}
		c.advance(time.Millisecond)
	}
	done.Store(true)
	wg.Wait()
}
