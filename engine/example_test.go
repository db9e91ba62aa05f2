package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
	"github.com/waymarkhq/waymark/stage"
)

// Visit is a record of the topic visits; its key is the page.
type Visit struct {
	ID      string `json:"id"`
	Visitor string `json:"visitor"`
}

// Milestone is a record of the topic milestones; its key is the page.
type Milestone struct {
	Visits int `json:"visits"`
}

// Page is the state of a page, and PageRow its row: beside the state it has the visits that were seen, each with the
// milestone that followed from it.
type (
	Page    struct{ Visits int }
	PageRow = checkpoint.Row[Page, *Milestone]
)

// Counter counts visits, and tells when a page has reached another Every of them.
type Counter struct {
	Every int
	Rules checkpoint.Rules[Page, *Milestone]
}

// Handle decides what one visit means. It performs nothing: it says what is to be sent and written.
func (c Counter) Handle(_ context.Context, m stage.Message[Visit], row *PageRow) (stage.Result[PageRow], error) {
	if m.DecodeError != nil || m.Tombstone {
		return stage.Result[PageRow]{}, stage.Reject("no_visit", "not a visit: %v", m.DecodeError)
	}
	message := checkpoint.Message{ID: m.Value.ID, Topic: m.Record.Topic, Offset: m.Record.Offset, At: m.Record.Timestamp, Committed: m.Committed}
	res, err := c.Rules.Apply(row, message, func(p Page) (Page, *Milestone, error) {
		p.Visits++
		if p.Visits%c.Every != 0 {
			return p, nil, nil
		}
		return p, &Milestone{Visits: p.Visits}, nil
	})
	if err != nil || !res.Decision.Emits() { // sent again by its producer, or committed long ago
		return stage.Result[PageRow]{}, err
	}
	result := stage.Result[PageRow]{Row: res.Row}
	if res.Outcome != nil {
		result.Outputs = []stage.Output{milestones.Record(m.Key, *res.Outcome)}
	}
	return result, nil
}

var (
	visits     = stage.Topic[Visit]{Name: "visits", Codec: plainJSON[Visit]{}}
	milestones = stage.Topic[Milestone]{Name: "milestones", Codec: plainJSON[Milestone]{}}
	letters    = stage.Topic[[]byte]{Name: "dead-letters"} // the engine writes them, byte for byte
)

// plainJSON is for topics that others write to or read.
type plainJSON[T any] struct{}

func (plainJSON[T]) Encode(v T) ([]byte, error)       { return json.Marshal(v) }
func (plainJSON[T]) Decode(b []byte) (v T, err error) { err = json.Unmarshal(b, &v); return v, err }

// pageRows is for the table: JSON in an envelope that tells formats and damaged bytes apart.
var pageRows = codecs.New(1, time.Now,
	func(r PageRow) ([]byte, error) { return json.Marshal(r) },
	func(b []byte) (r PageRow, err error) { err = json.Unmarshal(b, &r); return r, err })

func counterGroup(c Counter) (*engine.Group, error) {
	return engine.NewGroup("page-counter",
		engine.Input(visits, c.Handle),
		engine.Output(milestones),
		engine.Output(letters),
		engine.Table(engine.Irreplaceable(pageRows), c.Rules.Merge),
		engine.OnFailure(engine.ToDeadLetters[PageRow](letters.Name, kafka.MaxRecordBytes)),
	)
}

// count runs the group until ctx ends.
func count(ctx context.Context, cluster kafka.Config, dataDir string) error {
	group, err := counterGroup(Counter{Every: 3})
	if err != nil {
		return err
	}
	topics, err := engine.TopicPlan(engine.TopicOptions{Partitions: 4, Replication: 1, Embedded: true, Forever: []string{letters.Name}}, group)
	if err != nil {
		return err
	}
	return engine.Run(ctx, engine.Config{Kafka: cluster, DataDir: dataDir, Topics: topics, CreateTopics: true}, group)
}

// A stage of one's own, from its types to its first output. docs/framework.md explains it.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "visits-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	broker, err := embedded.Start(ctx, embedded.Options{Dir: filepath.Join(dir, "broker")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer broker.Close(context.WithoutCancel(ctx))

	ended := make(chan error, 1)
	go func() { ended <- count(ctx, broker.Config(), filepath.Join(dir, "engine")) }()
	fmt.Println(visit(ctx, broker.Config(), "monday", "tuesday", "tuesday", "wednesday"))
	cancel()
	fmt.Println("ended:", <-ended)
	// Output:
	// {"visits":3} <nil>
	// ended: <nil>
}

// visit sends visits with these ids, and returns the first milestone.
func visit(ctx context.Context, cluster kafka.Config, ids ...string) (value string, err error) {
	reader, err := kafka.NewReader(cluster)
	if err != nil {
		return "", err
	}
	defer reader.Close()
	producer, err := kafka.NewProducer(cluster, kafka.ProducerOptions{})
	if err != nil {
		return "", err
	}
	defer producer.Close()
	for _, id := range ids {
		out := visits.Record("/index.html", Visit{ID: id, Visitor: "ann"})
		if _, _, err := producer.SendSync(ctx, kafka.Record{Topic: out.Topic, Key: out.Key, Value: out.Value}); err != nil {
			return "", err
		}
	}
	home := kafka.PartitionOf([]byte("/index.html"), 4)
	for value == "" && err == nil {
		err = reader.Each(ctx, milestones.Name, home, func(r kafka.Record) error { value = string(r.Value); return nil })
	}
	return value, err
}
