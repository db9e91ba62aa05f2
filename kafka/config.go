package kafka

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/internal/mutant"
)

// Sizes of records. A topic's max.message.bytes counts a whole batch with its overhead.
const (
	mebibyte = 1 << 20
	// MaxDocumentBytes is max.message.bytes of the documents topic.
	MaxDocumentBytes = 12 * mebibyte
	// MaxRecordBytes is max.message.bytes of every other topic: a document with the headers that a dead letter adds.
	MaxRecordBytes = 13 * mebibyte
)

// Timeouts that depend on each other: heartbeat < session < rebalance < read.
const (
	// SessionTimeout is how long a member of a group may be silent before its partitions go to others.
	SessionTimeout = 6 * time.Second
	// HeartbeatInterval is also how soon a member learns that the group rebalances.
	HeartbeatInterval = time.Second
	// RebalanceTimeout is how long the group waits for its members to join again. It is less than half of the read
	// timeout: the embedded broker may lose count of who has joined, starts its wait again with every join, and two
	// members that give up waiting in turn must leave it that time. It is more than a partition's time to drain.
	RebalanceTimeout = 12 * time.Second
	readTimeout      = 25 * time.Second
	dialTimeout      = 10 * time.Second
	writeTimeout     = 10 * time.Second
	// flushFrequency is the latency that batching adds to each hop.
	flushFrequency = 5 * time.Millisecond
)

// Retries of a producer: together about half a minute, the time that a cluster needs to elect leaders with a wide margin.
const (
	produceRetries    = 20
	produceBackoffMin = 100 * time.Millisecond
	produceBackoffMax = 2 * time.Second
)

// Config says how to reach a cluster.
type Config struct {
	// Brokers are host:port pairs to start from.
	Brokers []string
	// ClientID names this client in the broker's logs and quotas; "waymark" if empty.
	ClientID string
	TLS      *TLS  // nil: plain text
	SASL     *SASL // nil: no authentication
}

// Validate reports every field that is wrong.
func (c Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: at least one host:port is needed"))
	}
	for i, b := range c.Brokers {
		if _, _, err := net.SplitHostPort(b); err != nil {
			errs = append(errs, fmt.Errorf("brokers[%d]: %w", i, err))
		}
	}
	if c.SASL != nil {
		errs = append(errs, c.SASL.validate())
	}
	if c.TLS != nil {
		errs = append(errs, c.TLS.validate())
	}
	return errors.Join(errs...)
}

// Sarama returns a new configuration with the settings of the delivery contract, changed by mutate and validated. Each
// client needs one of its own: clients, and goka's builders, change what they are given.
func (c Config) Sarama(mutate ...func(*sarama.Config)) (*sarama.Config, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("kafka configuration: %w", err)
	}
	s := sarama.NewConfig()
	s.Version = sarama.V2_8_0_0
	s.ClientID = c.ClientID
	if s.ClientID == "" {
		s.ClientID = "waymark"
	}
	s.MetricRegistry = noMetrics{}
	setNet(s)
	setProducer(s)
	setConsumer(s)
	if err := c.secure(s); err != nil {
		return nil, fmt.Errorf("kafka configuration: %w", err)
	}
	for _, m := range mutate {
		m(s)
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("kafka configuration: %w", err)
	}
	return s, nil
}

func setNet(s *sarama.Config) {
	s.Net.DialTimeout = dialTimeout
	s.Net.ReadTimeout = readTimeout
	s.Net.WriteTimeout = writeTimeout
	// An idempotent producer allows one; with more, a retry can also overtake what was sent after it.
	s.Net.MaxOpenRequests = 1
	// Topics come from the plan. A topic that a typing error has made would have the wrong partitions and settings.
	s.Metadata.AllowAutoTopicCreation = false
	s.Metadata.RefreshFrequency = time.Minute
	s.Metadata.Retry.Max = 5
	s.Admin.Timeout = 30 * time.Second
}

func setProducer(s *sarama.Config) {
	s.Producer.RequiredAcks = sarama.WaitForAll
	s.Producer.Idempotent = true
	if mutant.Active == mutant.AcksOne {
		s.Producer.RequiredAcks, s.Producer.Idempotent = sarama.WaitForLocal, false
	}
	s.Producer.Partitioner = NewPartitioner
	s.Producer.Return.Successes = true
	s.Producer.Return.Errors = true
	s.Producer.Compression = sarama.CompressionSnappy
	s.Producer.MaxMessageBytes = MaxRecordBytes
	s.Producer.Flush.Frequency = flushFrequency
	s.Producer.Retry.Max = produceRetries
	s.Producer.Retry.BackoffFunc = func(retries, _ int) time.Duration {
		return min(produceBackoffMax, produceBackoffMin<<min(retries, 10))
	}
}

func setConsumer(s *sarama.Config) {
	s.Consumer.Return.Errors = true
	s.Consumer.IsolationLevel = sarama.ReadCommitted
	// The newest offset would lose what was sent before a group's first commit.
	s.Consumer.Offsets.Initial = sarama.OffsetOldest
	if mutant.Active == mutant.NewestOffset {
		s.Consumer.Offsets.Initial = sarama.OffsetNewest
	}
	s.Consumer.Fetch.Default = mebibyte
	// A larger record is fetched again with a larger size. With a maximum here, what is above it would be skipped.
	s.Consumer.Fetch.Max = 0
	s.Consumer.Retry.Backoff = 500 * time.Millisecond
	s.Consumer.Group.Session.Timeout = SessionTimeout
	s.Consumer.Group.Heartbeat.Interval = HeartbeatInterval
	s.Consumer.Group.Rebalance.Timeout = RebalanceTimeout
	// Up to this many records wait in front of each partition's callback: a few, because one may have megabytes.
	s.ChannelBufferSize = 32
}
