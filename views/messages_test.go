package views_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/views"
)

func timeline(document, message string, status rag.Status) ledger.TrackerRow {
	return *ledger.ApplyEvent(nil, rag.Event{
		Subject: rag.Subject{DocumentID: document, MessageID: message, Revision: rag.Revision{Version: 1}}, Stage: "s", Status: status, At: at(1),
	})
}

func said(t *testing.T, document, message string, status rag.Status) kafka.Record {
	t.Helper()
	return record(t, messageTable, rag.EventKey(document, message), timeline(document, message, status))
}

func TestMessages(t *testing.T) {
	kafkatest.NoLeaks(t)
	cfg, dir := start3(t), t.TempDir()
	kafkatest.Produce(t, cfg, said(t, "d1", "m", rag.StatusAccepted), said(t, "d2", "m", rag.StatusDead), said(t, "d1", "mm", rag.StatusAccepted))
	m := views.NewMessages(options(cfg, dir), messageTable, ledger.MergeTrackerRow)
	run(t, m)
	ctx := kafkatest.Context(t)

	if row, err := m.Get(ctx, "d1", "m"); err != nil || row == nil || row.Status != rag.StatusAccepted {
		t.Fatalf("row %+v, %v", row, err)
	}
	if row, err := m.Get(ctx, "d2", "mm"); row != nil || err != nil {
		t.Fatalf("row %+v, %v", row, err)
	}
	for message, want := range map[string]int{"m": 2, "mm": 1, "mmm": 0, "": 0} {
		if rows, err := m.Find(ctx, message); err != nil || len(rows) != want {
			t.Fatalf("%q was used by %d documents, %v, want %d", message, len(rows), err, want)
		}
	}
	rows, err := m.Find(ctx, "m")
	if err != nil || rows[0].DocumentID != "d1" || rows[1].DocumentID != "d2" {
		t.Fatalf("rows %v, %v", rows, err)
	}
	// Timelines of two writers are united, whichever came last.
	kafkatest.Produce(t, cfg, said(t, "d1", "m", rag.StatusIndexed), said(t, "d1", "m", rag.StatusChunked))
	rows, err = m.Wait(ctx, "d1", "m", func(r []*ledger.TrackerRow) bool { return len(r) == 1 && len(r[0].Events) == 3 })
	if err != nil || rows[0].Status != rag.StatusIndexed {
		t.Fatalf("rows %v, %v", rows, err)
	}
}

// Who asks for a message a moment too early is woken when it comes, and need not name the document.
func TestMessagesWait(t *testing.T) {
	cfg := start3(t)
	m := views.NewMessages(options(cfg, t.TempDir()), messageTable, ledger.MergeTrackerRow)
	run(t, m)
	for _, document := range []string{"", "d"} {
		message := "later" + document
		got := make(chan error, 1)
		asked := make(chan struct{}, 10)
		go func() {
			rows, err := m.Wait(kafkatest.Context(t), document, message, func(r []*ledger.TrackerRow) bool {
				asked <- struct{}{}
				return len(r) > 0
			})
			if err == nil && rows[0].MessageID != message {
				err = fmt.Errorf("rows %v", rows)
			}
			got <- err
		}()
		kafkatest.Receive(t, "the first look", asked)
		kafkatest.Produce(t, cfg, said(t, "x", "other", rag.StatusAccepted), said(t, "d", message, rag.StatusAccepted))
		if err := kafkatest.Receive(t, "the message", got); err != nil {
			t.Fatal(err)
		}
		if n := len(asked); n > 2 {
			t.Errorf("looked %d times for one change", n+1)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if rows, err := m.Wait(ctx, "", "never", func(r []*ledger.TrackerRow) bool { return len(r) > 0 }); !errors.Is(err, context.DeadlineExceeded) || len(rows) != 0 {
		t.Fatalf("rows %v, %v", rows, err)
	}
}

func TestMessagesFindIsBounded(t *testing.T) {
	cfg := start3(t)
	var records []kafka.Record
	for i := range views.MaxFound + 20 {
		records = append(records, said(t, fmt.Sprintf("d%03d", i), "popular", rag.StatusAccepted))
	}
	kafkatest.Produce(t, cfg, records...)
	m := views.NewMessages(options(cfg, t.TempDir()), messageTable, ledger.MergeTrackerRow)
	run(t, m)
	if rows, err := m.Find(t.Context(), "popular"); err != nil || len(rows) != views.MaxFound {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
}

// Rows expire by the time in the value: hidden at once, out of the indexes soon after, and not back after a restart.
func TestMessagesExpire(t *testing.T) {
	cfg, dir := start3(t), t.TempDir()
	var clock atomic.Int64
	clock.Store(at(0).UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Load()) }
	// The view's pauses end when the test says so.
	ticks := make(chan time.Time)
	table := stage.Topic[ledger.TrackerRow]{Name: messageTable.Name, Codec: wire.NewCodecs(now).TrackerRow}
	o := options(cfg, dir)
	o.Now, o.After = now, func(time.Duration) <-chan time.Time { return ticks }
	o.Expiry = &kafka.Expiry{After: time.Hour, WrittenAt: codecs.WrittenAt}
	say := func(document string) kafka.Record {
		return record(t, table, rag.EventKey(document, "m"), timeline(document, "m", rag.StatusAccepted))
	}
	kafkatest.Produce(t, cfg, say("old"))
	clock.Add(int64(40 * time.Minute))
	kafkatest.Produce(t, cfg, say("young"))
	m := views.NewMessages(o, table, ledger.MergeTrackerRow)
	stop := run(t, m)
	if rows, err := m.Find(t.Context(), "m"); err != nil || len(rows) != 2 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	clock.Add(int64(30 * time.Minute))
	if rows, err := m.Find(t.Context(), "m"); err != nil || len(rows) != 1 || rows[0].DocumentID != "young" {
		t.Fatalf("rows %v, %v", rows, err)
	}
	if n := views.IndexedMessages(m); n != 2 {
		t.Fatalf("%d entries before the sweep", n)
	}
	kafkatest.Wait(t, "the sweep", func() bool {
		select {
		case ticks <- now():
		default:
		}
		return views.IndexedMessages(m) == 1
	})
	stop()
	m = views.NewMessages(o, table, ledger.MergeTrackerRow)
	run(t, m)
	if n := views.IndexedMessages(m); n != 1 {
		t.Fatalf("%d entries after a restart", n)
	}
}

// Foreign records with keys that are none of ours do no harm.
func TestMessagesWithForeignKeys(t *testing.T) {
	cfg := start3(t)
	row := timeline("d", "m", rag.StatusAccepted)
	for _, key := range []string{"", "x", "99:short", string(binary.BigEndian.AppendUint64(nil, 7))} {
		kafkatest.Produce(t, cfg, record(t, messageTable, key, row), kafka.Record{Topic: messageTable.Name, Key: []byte(key)})
	}
	m := views.NewMessages(options(cfg, t.TempDir()), messageTable, ledger.MergeTrackerRow)
	run(t, m)
	if rows, err := m.Find(t.Context(), "m"); err != nil || len(rows) != 0 {
		t.Fatalf("rows %v, %v", rows, err)
	}
}
