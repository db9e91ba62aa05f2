package views_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/views"
)

func withCodec(cfg kafka.Config, dir string, c *codec[ledger.DocumentRow]) *views.Documents {
	c.Codec = wires.DocumentRow
	table := stage.Topic[ledger.DocumentRow]{Name: documentTable.Name, Codec: c}
	return views.NewDocuments(options(cfg, dir), table, ledger.MergeDocumentRow)
}

func TestUndecodableRowsAreSkippedAndCounted(t *testing.T) {
	cfg, dir := start3(t), t.TempDir()
	c := &codec[ledger.DocumentRow]{}
	d := withCodec(cfg, dir, c)
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(5)),
		kafka.Record{Topic: documentTable.Name, Key: []byte("a"), Value: []byte("broken")},
		kafka.Record{Topic: documentTable.Name, Key: []byte("b"), Value: []byte("broken")},
		kafka.Record{Topic: documentTable.Name, Key: nil, Value: []byte{}},
		record(t, documentTable, "c", indexed(6)))
	run(t, d)
	drain(t, cfg, d)
	if got := d.Stats().Undecodable; got != 3 {
		t.Fatalf("%d undecodable records, want 3", got)
	}
	for id, want := range map[string]int{"a": 5, "c": 6} {
		if row, err := d.Get(t.Context(), id); err != nil || row == nil || int(row.Applied) != want {
			t.Fatalf("row %s: %+v, %v", id, row, err)
		}
	}
}

func TestNewerFormatHoldsTheView(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg, dir := start3(t), t.TempDir()
	c := &codec[ledger.DocumentRow]{}
	d := withCodec(cfg, dir, c)
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(1)))
	c.newer.Store(true)
	stop := start(t, d)
	held := func() bool {
		var e *views.NotReadyError
		return errors.As(d.Ready(), &e) && e.Reason == views.ReasonNewerFormat && errors.Is(e, stage.ErrNewerFormat)
	}
	kafkatest.Wait(t, "the newer format", held)
	if d.Stats().Undecodable != 0 {
		t.Error("a newer format counts as undecodable")
	}
	// A release that reads it loses nothing: the record comes again.
	c.newer.Store(false)
	kafkatest.Wait(t, "the view", func() bool { return d.Ready() == nil })
	if row, err := d.Get(t.Context(), "a"); err != nil || row == nil {
		t.Fatalf("row %+v, %v", row, err)
	}
	stop()

	// The other way round: what stands in the folder was written by a newer release.
	c.newer.Store(true)
	d = withCodec(cfg, dir, c)
	start(t, d)
	kafkatest.Wait(t, "the newer format", held)
	if _, err := d.Get(t.Context(), "a"); err == nil {
		t.Error("a view that is not ready answers")
	}
}

func TestViewOutlivesTheBroker(t *testing.T) {
	kafkatest.NoLeaks(t)
	brokerDir := t.TempDir()
	b := kafkatest.StartIn(t, brokerDir, kafkatest.Plan(t, "w", partitions)...)
	cfg := b.Config()
	d := newDocuments(cfg, t.TempDir())
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(1)))
	run(t, d)
	for round := range 2 {
		kafkatest.Stop(t, b)
		// What is known is still there, and its age shows.
		stopped := time.Now()
		kafkatest.Wait(t, "the age", func() bool {
			lag, err := d.Lag(t.Context())
			return err == nil && lag > 1500*time.Millisecond && !d.FreshAsOf().After(stopped)
		})
		if row, err := d.Get(t.Context(), "a"); err != nil || row == nil {
			t.Fatalf("round %d: row %+v, %v", round, row, err)
		}
		b = kafkatest.StartIn(t, brokerDir)
		id := string(rune('b' + round))
		kafkatest.Produce(t, cfg, record(t, documentTable, id, indexed(2)))
		if _, err := d.Wait(kafkatest.Context(t), id, func(r *ledger.DocumentRow) bool { return r != nil }); err != nil {
			t.Fatal(err)
		}
		kafkatest.Wait(t, "freshness", func() bool { return d.FreshAsOf().After(stopped) })
	}
}

func TestViewStartsBeforeTheBrokerAndTheTopic(t *testing.T) {
	kafkatest.NoLeaks(t)
	brokerDir := t.TempDir()
	b := kafkatest.StartIn(t, brokerDir)
	cfg := b.Config()
	kafkatest.Stop(t, b)
	d := newDocuments(cfg, t.TempDir())
	start(t, d)
	kafkatest.Wait(t, "a first failure", func() bool { return d.Stats().Rebuilds > 0 && d.Ready() != nil })
	kafkatest.StartIn(t, brokerDir, kafkatest.Plan(t, "w", partitions)...)
	kafkatest.Wait(t, "the view", func() bool { return d.Ready() == nil })
}

// A table that was made anew has nothing to do with the one that was read: its rows must not stay.
func TestViewOfATopicMadeAnew(t *testing.T) {
	b := kafkatest.StartBroker(t, kafkatest.Plan(t, "w", partitions)...)
	cfg := b.Config()
	d := newDocuments(cfg, t.TempDir())
	kafkatest.Produce(t, cfg, record(t, documentTable, "old", indexed(1)), record(t, documentTable, "old", indexed(2)))
	run(t, d)
	if err := errors.Join(b.Cluster().DeleteTopic(documentTable.Name), b.Cluster().CreateTopic(documentTable.Name, partitions, nil)); err != nil {
		t.Fatal(err)
	}
	kafkatest.Produce(t, cfg, record(t, documentTable, "new", indexed(1)))
	kafkatest.Wait(t, "the new table", func() bool {
		old, err := d.Get(t.Context(), "old")
		if err != nil || old != nil {
			return false
		}
		fresh, err := d.Get(t.Context(), "new")
		return err == nil && fresh != nil && d.Counts()["indexed"] == 1
	})
}

// A log that ends before what was read from it has lost records, and the same topic id: what the store holds must not keep
// the view from it.
func TestViewOfALogThatLostRecords(t *testing.T) {
	cfg, dir := start3(t), t.TempDir()
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(1)))
	d := newDocuments(cfg, dir)
	stop := run(t, d)
	drain(t, cfg, d)
	stop()
	stores := kafka.NewStores(kafka.StoreOptions{Dir: filepath.Join(dir, documentTable.Name)})
	for p := range int32(partitions) {
		st, err := stores.Builder()(documentTable.Name, p)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(st.Open(), st.Set("gone", []byte("broken")), st.SetOffset(1000), st.MarkRecovered(), st.Close()); err != nil {
			t.Fatal(err)
		}
	}
	d = newDocuments(cfg, dir)
	run(t, d)
	if row, err := d.Get(t.Context(), "a"); err != nil || row == nil {
		t.Fatalf("row %+v, %v", row, err)
	}
}

// A store that cannot be written, as on a disk that is full, stays so until it is opened anew: the view must not stand still
// once there is room again.
func TestViewOutlivesItsStore(t *testing.T) {
	cfg := start3(t)
	d := newDocuments(cfg, t.TempDir())
	run(t, d)
	if err := views.CloseStores(d); err != nil {
		t.Fatal(err)
	}
	kafkatest.Produce(t, cfg, record(t, documentTable, "a", indexed(1)))
	kafkatest.Wait(t, "the row", func() bool {
		row, err := d.Get(t.Context(), "a")
		return err == nil && row != nil
	})
}

// goka's default hash has no partition for this key, and a view panics on it.
func TestViewFindsEveryKey(t *testing.T) {
	cfg := start3(t)
	keys := []string{"I8KPoca", "__offset", "", "ключ", "a\x00b"}
	for i, k := range keys {
		kafkatest.Produce(t, cfg, record(t, documentTable, k, indexed(i+1)))
	}
	dir := t.TempDir()
	for range 2 { // the second time from the store
		d := newDocuments(cfg, dir)
		stop := run(t, d)
		for i, k := range keys {
			if row, err := d.Get(t.Context(), k); err != nil || row == nil || int(row.Applied) != i+1 {
				t.Errorf("key %q: %+v, %v", k, row, err)
			}
		}
		stop()
	}
}

func TestViewsThatEndLeaveNothingBehind(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg, dir := start3(t), t.TempDir()
	for range 5 {
		d := newDocuments(cfg, dir)
		stop := run(t, d)
		stop()
		if err := d.Ready(); err == nil {
			t.Fatal("a view that has ended is ready")
		}
	}
	d := newDocuments(cfg, dir)
	start(t, d)()
}

func TestViewRunsOnce(t *testing.T) {
	cfg := start3(t)
	d := newDocuments(cfg, t.TempDir())
	run(t, d)
	if err := d.Run(t.Context()); err == nil {
		t.Fatal("a view ran twice at once")
	}
}

// Readers and the writer at the same time, for the race detector.
func TestViewIsReadWhileItIsWritten(t *testing.T) {
	cfg := start3(t)
	o := options(cfg, t.TempDir())
	o.Log = slog.New(slog.DiscardHandler)
	d := views.NewDocuments(o, documentTable, ledger.MergeDocumentRow)
	run(t, d)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-d.Changed():
				}
				_, _ = d.Get(t.Context(), "k3")
				_, _ = d.Served("k3")
				_ = d.Counts()
				if _, err := d.List(t.Context(), views.DocumentQuery{Limit: 5}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range 30 {
		kafkatest.Produce(t, cfg, record(t, documentTable, "k3", indexed(i+1)), record(t, documentTable, "k4", indexed(i+1)))
	}
	drain(t, cfg, d)
	close(done)
	readers.Wait()
}
