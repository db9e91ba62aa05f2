package views_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/views"
)

const partitions = 3

var (
	topics = kafka.NewTopics("w")
	wires  = wire.NewCodecs(time.Now)

	documentTable = stage.Topic[ledger.DocumentRow]{Name: topics.Tables.Indexer, Codec: wires.DocumentRow}
	messageTable  = stage.Topic[ledger.TrackerRow]{Name: topics.Tables.Tracker, Codec: wires.TrackerRow}
	letterTable   = stage.Topic[ledger.LetterRow]{Name: topics.Tables.DeadLetters, Codec: wires.LetterRow}
)

// runner is a view of any kind.
type runner interface {
	Run(context.Context) error
	Ready() error
	Lag(context.Context) (time.Duration, error)
}

// run runs a view until the test ends or stop is called, and waits until it is ready and has been fresh once.
func run(t *testing.T, v runner) (stop func()) {
	t.Helper()
	stop = start(t, v)
	kafkatest.Wait(t, "the view", func() bool {
		_, err := v.Lag(t.Context())
		return err == nil
	})
	return stop
}

func start(t *testing.T, v runner) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	var stopped bool
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := kafkatest.Receive(t, "the end of the view", done); err != nil {
			t.Errorf("view: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func options(cfg kafka.Config, dir string) views.Options {
	return views.Options{Kafka: cfg, Dir: dir, Log: slog.New(slog.DiscardHandler)}
}

func newDocuments(cfg kafka.Config, dir string) *views.Documents {
	return views.NewDocuments(options(cfg, dir), documentTable, ledger.MergeDocumentRow)
}

func record[R any](t testing.TB, table stage.Topic[R], key string, row R) kafka.Record {
	t.Helper()
	value, err := table.Codec.Encode(row)
	if err != nil {
		t.Fatal(err)
	}
	return kafka.Record{Topic: table.Name, Key: []byte(key), Value: value}
}

func at(second int) time.Time { return time.Unix(1_700_000_000+int64(second), 0).UTC() }

// indexed is the row of a document whose version n is indexed and served.
func indexed(n int) ledger.DocumentRow {
	rev := rag.Revision{Version: rag.Version(n)}
	return ledger.DocumentRow{
		Applied: rag.Version(n), Fence: rev.Version,
		Served: ledger.Served{Revision: rev, Count: 1, At: at(n)},
		Finals: map[string]ledger.Final{"m": {Revision: rev, Status: rag.StatusIndexed, Count: 1, At: at(n)}},
	}
}

// dead is the row of a document whose version n died, and which serves nothing.
func dead(n int) ledger.DocumentRow {
	return ledger.DocumentRow{
		Applied: rag.Version(n),
		Finals:  map[string]ledger.Final{"m": {Revision: rag.Revision{Version: rag.Version(n)}, Status: rag.StatusDead, At: at(n)}},
	}
}

// drain returns when everything that was produced before has been applied: it writes one row more to each partition.
func drain(t *testing.T, cfg kafka.Config, d *views.Documents) {
	t.Helper()
	n := marks.Add(1)
	for p := range int32(partitions) {
		key := keyIn(p, fmt.Sprintf("mark-%d-", n))
		kafkatest.Produce(t, cfg, record(t, documentTable, key, ledger.DocumentRow{Applied: 1}))
		if _, err := d.Wait(kafkatest.Context(t), key, func(r *ledger.DocumentRow) bool { return r != nil }); err != nil {
			t.Fatal(err)
		}
	}
}

var marks atomic.Int64

// keyIn is a key whose home is the partition.
func keyIn(partition int32, prefix string) string {
	for i := 0; ; i++ {
		if k := fmt.Sprint(prefix, i); kafka.PartitionOf([]byte(k), partitions) == partition {
			return k
		}
	}
}

// codec does not understand some bytes.
type codec[R any] struct {
	stage.Codec[R]
	newer atomic.Bool // everything is in a newer format
}

func (c *codec[R]) Decode(b []byte) (R, error) {
	var zero R
	if c.newer.Load() || string(b) == "newer" {
		return zero, stage.ErrNewerFormat
	}
	if string(b) == "broken" {
		return zero, errors.New("broken")
	}
	return c.Codec.Decode(b)
}

func start3(t *testing.T) kafka.Config {
	return kafkatest.Start(t, kafkatest.Plan(t, "w", partitions)...)
}
