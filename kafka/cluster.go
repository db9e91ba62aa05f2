package kafka

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// clusterKey is the key of the only record of the cluster topic.
const clusterKey = "cluster"

// ClusterRecord is what the cluster topic holds: the epoch, and the topics whose offsets are stored in rows and
// versions. It is JSON, for people too.
type ClusterRecord struct {
	Epoch  int                      `json:"epoch"`
	Topics map[string]TopicIdentity `json:"topics"`
	At     time.Time                `json:"at"`
}

// TopicIdentity tells a topic from another one that bears its name later.
type TopicIdentity struct {
	ID         string `json:"id"` // "" where the broker gives none
	Partitions int    `json:"partitions"`
}

// EpochError says that stored offsets do not belong to this cluster any more, or that the epoch goes back. Nothing may
// read or write until the operator has raised kafka.epoch, or has moved to topics with the partitions that are wanted.
type EpochError struct {
	Configured int
	Stored     int
	// Changed are the topics that are not what they were, each with what has changed.
	Changed []string
	// Repartitioned: a topic is the one that it was, with other partitions. A higher epoch does not mend that: rows stand in
	// the partition of their key.
	Repartitioned bool
}

func (e *EpochError) Error() string {
	if e.Configured < e.Stored {
		return fmt.Sprintf("kafka.epoch is %d, but this cluster has been used with %d: set kafka.epoch to %d", e.Configured, e.Stored, e.Stored)
	}
	if e.Repartitioned {
		return fmt.Sprintf("topics have other partitions than those whose rows and offsets are stored: %s. Nothing would find its rows again, with a higher kafka.epoch neither: "+
			"move to topics of another kafka.topic_prefix that have the new number of partitions", strings.Join(e.Changed, "; "))
	}
	return fmt.Sprintf("topics are not the ones whose offsets are stored: %s. If this is meant, set kafka.epoch to %d, which makes every later version higher than all before",
		strings.Join(e.Changed, "; "), e.Stored+1)
}

// ErrNoClusterTopic is returned when a topic that the check needs does not exist: apply the plan first.
var ErrNoClusterTopic = errors.New("topic does not exist")

// guarded are the topics that the record holds. The offsets of all but replays are kept in rows and versions: a new topic
// under an old name starts again at offset 0, and everything in it would look old. Of replays only the partitions count,
// which have to be those of documents.
func (t Topics) guarded() []string {
	return []string{t.Documents, t.Replays, t.Progress, t.Commands, t.DeadLetters}
}

// CheckCluster compares the cluster with what its cluster topic says. The first call on a cluster writes the record, as
// does one with a higher epoch; both are safe for several processes at once, because all write the same. An *EpochError
// means: refuse to work. A running process should call it again from time to time.
func CheckCluster(ctx context.Context, cfg Config, topics Topics, epoch int) error {
	return checkCluster(ctx, cfg, topics, epoch, true)
}

// CompareCluster does the same and writes nothing.
func CompareCluster(ctx context.Context, cfg Config, topics Topics, epoch int) error {
	return checkCluster(ctx, cfg, topics, epoch, false)
}

func checkCluster(ctx context.Context, cfg Config, topics Topics, epoch int, write bool) error {
	var now map[string]TopicIdentity
	err := withAdmin(ctx, cfg, func(a sarama.ClusterAdmin) error {
		have, err := identities(a, append(topics.guarded(), topics.Cluster))
		now = have
		return err
	})
	if err != nil {
		return fmt.Errorf("check cluster: %w", err)
	}
	delete(now, topics.Cluster)
	now[topics.Replays] = TopicIdentity{Partitions: now[topics.Replays].Partitions}
	stored, err := readCluster(ctx, cfg, topics.Cluster)
	if err != nil {
		return fmt.Errorf("check cluster: %w", err)
	}
	if stored != nil && stored.Epoch >= epoch {
		return compareCluster(*stored, epoch, now)
	}
	if !write {
		return nil
	}
	return writeCluster(ctx, cfg, topics.Cluster, ClusterRecord{Epoch: epoch, Topics: now, At: time.Now().UTC()})
}

func compareCluster(stored ClusterRecord, epoch int, now map[string]TopicIdentity) error {
	e := &EpochError{Configured: epoch, Stored: stored.Epoch}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		was, ok := stored.Topics[name]
		is := now[name]
		switch {
		case !ok: // a release that guards one topic more
		case was.Partitions != is.Partitions:
			e.Repartitioned = e.Repartitioned || was.ID == is.ID
			e.Changed = append(e.Changed, fmt.Sprintf("%s had %d partitions and has %d", name, was.Partitions, is.Partitions))
		case was.ID != is.ID && was.ID != "" && is.ID != "":
			e.Changed = append(e.Changed, fmt.Sprintf("%s was made anew (id %s, was %s)", name, is.ID, was.ID))
		}
	}
	if len(e.Changed) > 0 || epoch < stored.Epoch {
		return e
	}
	return nil
}

// ClusterID is the id that the cluster gives itself; "" where it has none.
func ClusterID(ctx context.Context, cfg Config) (id string, err error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	conf, err := cfg.Sarama()
	if err != nil {
		return "", err
	}
	client, err := sarama.NewClient(cfg.Brokers, conf)
	if err != nil {
		return "", fmt.Errorf("connect to kafka at %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	b, err := client.Controller()
	if err != nil {
		return "", fmt.Errorf("id of the cluster: %w", err)
	}
	answer, err := b.GetMetadata(sarama.NewMetadataRequest(conf.Version, []string{}))
	if err != nil {
		return "", fmt.Errorf("id of the cluster: %w", err)
	}
	if answer.ClusterID == nil {
		return "", nil
	}
	return *answer.ClusterID, nil
}

// TopicIDs are the ids that the cluster has given to topics. Topics that do not exist, and all topics of brokers that
// give no ids, are missing from the answer.
func TopicIDs(ctx context.Context, cfg Config, topics ...string) (map[string]string, error) {
	out := make(map[string]string, len(topics))
	err := withAdmin(ctx, cfg, func(a sarama.ClusterAdmin) error {
		have, err := describe(a, topics)
		for name, m := range have {
			if m.Uuid != (sarama.Uuid{}) {
				out[name] = m.Uuid.String()
			}
		}
		return err
	})
	return out, err
}

// TopicIdentities tells the topics that exist from others that bear their names later. Those that do not exist are missing
// from the answer.
func TopicIdentities(ctx context.Context, cfg Config, topics ...string) (map[string]TopicIdentity, error) {
	out := make(map[string]TopicIdentity, len(topics))
	err := withAdmin(ctx, cfg, func(a sarama.ClusterAdmin) error {
		have, err := describe(a, topics)
		for name, m := range have {
			out[name] = identity(m)
		}
		return err
	})
	return out, err
}

func identity(m *sarama.TopicMetadata) TopicIdentity {
	id := TopicIdentity{Partitions: len(m.Partitions)}
	if m.Uuid != (sarama.Uuid{}) {
		id.ID = m.Uuid.String()
	}
	return id
}

func identities(a sarama.ClusterAdmin, topics []string) (map[string]TopicIdentity, error) {
	have, err := describe(a, topics)
	if err != nil {
		return nil, err
	}
	out := make(map[string]TopicIdentity, len(topics))
	for _, name := range topics {
		m := have[name]
		if m == nil {
			return nil, fmt.Errorf("%s: %w", name, ErrNoClusterTopic)
		}
		out[name] = identity(m)
	}
	return out, nil
}

// readCluster returns the record with the highest epoch, nil if there is none. All records are read: two processes with
// different epochs may have written in any order.
func readCluster(ctx context.Context, cfg Config, topic string) (*ClusterRecord, error) {
	r, err := NewReader(cfg)
	if err != nil {
		return nil, err
	}
	var found *ClusterRecord
	err = r.Each(ctx, topic, 0, func(rec Record) error {
		if string(rec.Key) != clusterKey || rec.Value == nil {
			return nil
		}
		var c ClusterRecord
		if err := json.Unmarshal(rec.Value, &c); err != nil {
			return fmt.Errorf("record at offset %d of %s: %w", rec.Offset, topic, err)
		}
		if found == nil || c.Epoch >= found.Epoch {
			found = &c
		}
		return nil
	})
	return found, errors.Join(err, r.Close())
}

func writeCluster(ctx context.Context, cfg Config, topic string, c ClusterRecord) error {
	value, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("check cluster: %w", err)
	}
	p, err := NewProducer(cfg, ProducerOptions{})
	if err != nil {
		return fmt.Errorf("check cluster: %w", err)
	}
	_, _, err = p.SendSync(ctx, Record{Topic: topic, Key: []byte(clusterKey), Value: value})
	if err = errors.Join(err, p.Close()); err != nil {
		return fmt.Errorf("check cluster: write %s: %w", topic, err)
	}
	return nil
}
