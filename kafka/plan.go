package kafka

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"time"
)

// Groups are the consumer groups of the pipeline.
type Groups struct {
	Chunker, Embedder, Indexer, Tracker, DeadLetters string
}

// Topics are the names of all topics and groups under one prefix. Make them with NewTopics.
type Topics struct {
	Prefix      string
	Documents   string // key: document id; what any producer may write to
	Replays     string // partitioned as documents
	Chunks      string // key: hash of model, settings and text
	Vectors     string // key: document id
	Progress    string // key: document id
	Events      string // key: document id and message id
	DeadLetters string // key: letter id
	Commands    string // key: letter id
	Cluster     string // one partition
	Groups      Groups
	// Tables are named as goka does: the group's name and "-table".
	Tables Groups
}

// NewTopics names the topics and groups under a prefix.
func NewTopics(prefix string) Topics {
	g := Groups{
		Chunker:     prefix + "-chunker",
		Embedder:    prefix + "-embedder",
		Indexer:     prefix + "-indexer",
		Tracker:     prefix + "-tracker",
		DeadLetters: prefix + "-deadletters",
	}
	return Topics{
		Prefix:      prefix,
		Documents:   prefix + ".documents",
		Replays:     prefix + ".replays",
		Chunks:      prefix + ".chunks",
		Vectors:     prefix + ".vectors",
		Progress:    prefix + ".progress",
		Events:      prefix + ".events",
		DeadLetters: prefix + ".dead-letters",
		Commands:    prefix + ".commands",
		Cluster:     prefix + ".cluster",
		Groups:      g,
		Tables: Groups{
			Chunker:     TableOf(g.Chunker),
			Embedder:    TableOf(g.Embedder),
			Indexer:     TableOf(g.Indexer),
			Tracker:     TableOf(g.Tracker),
			DeadLetters: TableOf(g.DeadLetters),
		},
	}
}

// TableOf is the table topic of a group, as goka names it.
func TableOf(group string) string { return group + "-table" }

// Retention of the topics, by the rules of the delivery contract. Values in tables carry the same clock.
const (
	// StreamRetention is how long records wait for a group that does not read.
	StreamRetention = 30 * 24 * time.Hour
	// TrackerRetention is how long the timeline of a message is kept.
	TrackerRetention = 7 * 24 * time.Hour
	// EmbedderRetention is how long a paid embedding is remembered.
	EmbedderRetention = 30 * 24 * time.Hour
	// TableTombstoneRetention is how long a deleted key stays visible in the log of a table: a local store that was away
	// for longer could miss the deletion and is rebuilt.
	TableTombstoneRetention = 7 * 24 * time.Hour

	documentsLag = 30 * 24 * time.Hour
	tableLag     = 24 * time.Hour
	tableSegment = 24 * time.Hour
)

// Limits of PlanOptions.
const (
	MaxPartitions  = 1024
	maxPrefixBytes = 200
)

var legalPrefix = regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)

// MinInSyncReplicas is the setting that says how many replicas acknowledge a record.
const MinInSyncReplicas = "min.insync.replicas"

// TopicSpec is what one topic has to be.
type TopicSpec struct {
	Name        string
	Partitions  int32
	Replication int16
	// Config are the settings that matter; others keep the broker's defaults.
	Config map[string]string
}

// PlanOptions are what an operator chooses.
type PlanOptions struct {
	Prefix      string
	Partitions  int32 // of every topic but cluster: goka needs them equal
	Replication int16
	// Embedded plans for the embedded broker, which knows no compaction lag and compacts by its own clock: there nothing
	// is compacted, and what has to stay is never deleted.
	Embedded bool
}

// Validate reports every field that is wrong.
func (o PlanOptions) Validate() error {
	var errs []error
	if !legalPrefix.MatchString(o.Prefix) || len(o.Prefix) > maxPrefixBytes || o.Prefix == "." || o.Prefix == ".." {
		errs = append(errs, fmt.Errorf("topic_prefix: %q is not 1 to %d letters, digits, dots, underscores and hyphens", o.Prefix, maxPrefixBytes))
	}
	if o.Partitions < 1 || o.Partitions > MaxPartitions {
		errs = append(errs, fmt.Errorf("partitions: %d is not between 1 and %d", o.Partitions, MaxPartitions))
	}
	if o.Replication < 1 {
		errs = append(errs, fmt.Errorf("replication: %d is below 1", o.Replication))
	}
	return errors.Join(errs...)
}

// Plan lists every topic that the pipeline needs.
func Plan(o PlanOptions) ([]TopicSpec, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("topic plan: %w", err)
	}
	t := NewTopics(o.Prefix)
	stream := o.settings("delete", StreamRetention)
	table := o.forever(tableLag)
	table["delete.retention.ms"] = millis(TableTombstoneRetention)
	documents := o.forever(documentsLag)
	documents["max.message.bytes"] = strconv.Itoa(MaxDocumentBytes)
	plan := []TopicSpec{
		o.spec(t.Documents, documents),
		o.spec(t.Replays, stream),
		o.spec(t.Chunks, stream),
		o.spec(t.Vectors, stream),
		o.spec(t.Progress, stream),
		o.spec(t.Events, stream),
		o.spec(t.DeadLetters, o.settings("delete", -1)),
		o.spec(t.Commands, stream),
		o.spec(t.Tables.Chunker, table),
		o.spec(t.Tables.Embedder, o.expiring(EmbedderRetention)),
		o.spec(t.Tables.Indexer, table),
		o.spec(t.Tables.Tracker, o.expiring(TrackerRetention)),
		o.spec(t.Tables.DeadLetters, table),
		o.spec(t.Cluster, o.forever(0)),
	}
	plan[len(plan)-1].Partitions = 1
	return plan, nil
}

func (o PlanOptions) spec(name string, config map[string]string) TopicSpec {
	return TopicSpec{Name: name, Partitions: o.Partitions, Replication: o.Replication, Config: maps.Clone(config)}
}

// settings of a topic whose records leave after retention; a negative one keeps them.
func (o PlanOptions) settings(policy string, retention time.Duration) map[string]string {
	c := map[string]string{
		"cleanup.policy":    policy,
		"retention.ms":      "-1",
		"max.message.bytes": strconv.Itoa(MaxRecordBytes),
	}
	if retention >= 0 {
		c["retention.ms"] = millis(retention)
	}
	if o.Replication >= 3 {
		// An acknowledged record survives the loss of one broker, and no broker that missed it may lead.
		c[MinInSyncReplicas] = "2"
		c["unclean.leader.election.enable"] = "false"
	}
	return c
}

// forever keeps the latest record of every key, and all of them for the lag.
func (o PlanOptions) forever(lag time.Duration) map[string]string {
	if o.Embedded {
		return o.settings("delete", -1)
	}
	c := o.settings("compact", -1)
	if lag > 0 {
		c["min.compaction.lag.ms"] = millis(lag)
	}
	return c
}

// expiring keeps the latest record of every key until it is old.
func (o PlanOptions) expiring(retention time.Duration) map[string]string {
	if o.Embedded {
		return o.settings("delete", -1)
	}
	c := o.settings("compact,delete", retention)
	c["min.compaction.lag.ms"] = millis(tableLag)
	c["delete.retention.ms"] = millis(TableTombstoneRetention)
	// Only closed segments are compacted or deleted.
	c["segment.ms"] = millis(tableSegment)
	return c
}

func millis(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// Limits are the largest batches that the topics of a plan take, in bytes, for ProducerOptions.
func Limits(plan []TopicSpec) map[string]int {
	limits := make(map[string]int, len(plan))
	for _, t := range plan {
		if n, err := strconv.Atoi(t.Config["max.message.bytes"]); err == nil {
			limits[t.Name] = n
		}
	}
	return limits
}
