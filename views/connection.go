package views

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"

	"github.com/waymarkhq/waymark/kafka"
)

// connection is the client of one life of a view. goka closes neither the consumer nor the topic manager that it makes
// itself: each new view would leave some twenty goroutines behind.
type connection struct {
	client     sarama.Client
	consumer   sarama.Consumer
	topic      string
	topicID    string
	partitions int32
}

func connect(ctx context.Context, cfg kafka.Config, topic string) (*connection, error) {
	conf, err := cfg.Sarama()
	if err != nil {
		return nil, err
	}
	ids, err := kafka.TopicIDs(ctx, cfg, topic)
	if err != nil {
		return nil, err
	}
	c := &connection{topic: topic, topicID: ids[topic]}
	if c.client, err = sarama.NewClient(cfg.Brokers, conf); err != nil {
		return nil, fmt.Errorf("connect to kafka: %w", err)
	}
	if c.consumer, err = sarama.NewConsumerFromClient(c.client); err != nil {
		return nil, errors.Join(err, c.client.Close())
	}
	partitions, err := c.client.Partitions(topic)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("partitions of %s: %w", topic, err), c.close())
	}
	c.partitions = int32(len(partitions))
	return c, nil
}

func (c *connection) close() error { return errors.Join(c.consumer.Close(), c.client.Close()) }

// options give the connection to goka, and make it try again soon.
func (c *connection) options() []goka.ViewOption {
	return []goka.ViewOption{
		goka.WithViewConsumerSaramaBuilder(func([]string, string) (sarama.Consumer, error) { return c.consumer, nil }),
		goka.WithViewTopicManagerBuilder(func([]string) (goka.TopicManager, error) { return topicManager{c.client}, nil }),
		goka.WithViewAutoReconnect(),
		goka.WithViewBackoffBuilder(func() (goka.Backoff, error) {
			return goka.NewSimpleBackoff(rebuildPauseMin, rebuildPauseMax), nil
		}),
	}
}

// topicManager answers what a view asks. Topics are made elsewhere, and its client is not its own.
type topicManager struct{ client sarama.Client }

var errNoTopics = errors.New("views make no topics")

func (m topicManager) EnsureTableExists(string, int) error  { return errNoTopics }
func (m topicManager) EnsureStreamExists(string, int) error { return errNoTopics }
func (m topicManager) EnsureTopicExists(string, int, int, map[string]string) error {
	return errNoTopics
}
func (m topicManager) Close() error                             { return nil }
func (m topicManager) Partitions(topic string) ([]int32, error) { return m.client.Partitions(topic) }
func (m topicManager) GetOffset(topic string, partition int32, at int64) (int64, error) {
	return m.client.GetOffset(topic, partition, at)
}

// errLogReplaced ends a life: the log ends before what has been applied, so it is another log.
var errLogReplaced = errors.New("the table's log is shorter than what was read from it")

// keepFresh asks for the newest offsets again and again, and moves FreshAsOf when all before them is applied. It returns
// when ctx ends, or with the reason why the view has to be built anew.
func (v *view[R]) keepFresh(ctx context.Context, c *connection) error {
	for {
		asked := v.o.Now()
		if newest, err := v.newest(c); err == nil {
			if err := v.await(ctx, c, newest); err != nil {
				return err
			}
			v.fresh.Store(asked.UnixNano())
			v.setTrouble(nil)
		} else if ctx.Err() == nil {
			v.setTrouble(err)
		}
		v.sweepIndex()
		select {
		case <-ctx.Done():
			return nil
		case <-v.o.After(freshnessInterval):
		}
	}
}

func (v *view[R]) newest(c *connection) ([]int64, error) {
	out := make([]int64, c.partitions)
	for p := range out {
		var err error
		if out[p], err = c.client.GetOffset(c.topic, int32(p), sarama.OffsetNewest); err != nil {
			return nil, fmt.Errorf("newest offset of %s: %w", c.topic, err)
		}
	}
	return out, nil
}

// await returns nil once every partition has come as far as newest.
func (v *view[R]) await(ctx context.Context, c *connection, newest []int64) error {
	for {
		next := v.hub.next() // before looking, so that nothing is missed
		behind, err := v.behind(c, newest)
		if err != nil || !behind {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-next:
		case <-v.o.After(freshnessInterval): // retention may have taken what is missing
		}
	}
}

func (v *view[R]) behind(c *connection, newest []int64) (bool, error) {
	for number, end := range newest {
		p := v.part(int32(number))
		if p == nil || !p.recovered.Load() {
			return true, nil
		}
		at := p.next.Load()
		if at > end {
			// A record may have come after the question; only a fresh answer tells.
			now, err := c.client.GetOffset(c.topic, int32(number), sarama.OffsetNewest)
			if err == nil && at > now {
				return false, fmt.Errorf("partition %d of %s: %w", number, c.topic, errLogReplaced)
			}
			continue
		}
		if at < end {
			// What is left may have been deleted by retention before it could be read.
			oldest, err := c.client.GetOffset(c.topic, int32(number), sarama.OffsetOldest)
			if err != nil || oldest < end {
				return true, nil
			}
		}
	}
	return false, nil
}

// sweepIndex takes some entries out of the index whose rows have expired.
func (v *view[R]) sweepIndex() {
	ix, ok := v.index.(sweepable)
	if !ok || v.o.Expiry == nil {
		return
	}
	for _, key := range ix.some(sweepPerTick) {
		v.index.remove(key, func() bool { return v.hasNot(key) })
	}
}

// hasNot reports that the store of the key is open and does not hold it.
func (v *view[R]) hasNot(key string) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if len(v.parts) == 0 {
		return false
	}
	p := v.parts[kafka.PartitionOf([]byte(key), int32(len(v.parts)))]
	if p == nil {
		return false
	}
	has, err := p.Has(key)
	return err == nil && !has
}

// rawCodec passes bytes through: rows are decoded by the view itself, which knows what to do with those that cannot be.
type rawCodec struct{}

func (rawCodec) Encode(v any) ([]byte, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("a value of type %T, want bytes", v)
	}
	return b, nil
}

func (rawCodec) Decode(b []byte) (any, error) { return b, nil }

// gokaLogger passes on what goka says, which is for debugging: what matters comes back as errors.
type gokaLogger struct{ log *slog.Logger }

func (l gokaLogger) Print(v ...any)                 { l.log.Debug(fmt.Sprint(v...)) }
func (l gokaLogger) Println(v ...any)               { l.log.Debug(fmt.Sprint(v...)) }
func (l gokaLogger) Printf(format string, v ...any) { l.log.Debug(fmt.Sprintf(format, v...)) }
