package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/IBM/sarama"
)

// DifferenceKind says what differs.
type DifferenceKind string

// Kinds of differences.
const (
	DifferenceMissing     DifferenceKind = "missing"
	DifferencePartitions  DifferenceKind = "partitions"
	DifferenceReplication DifferenceKind = "replication"
	DifferenceConfig      DifferenceKind = "config"
)

// Difference between a plan and a cluster.
type Difference struct {
	Topic string         `json:"topic"`
	Kind  DifferenceKind `json:"kind"`
	Key   string         `json:"key,omitempty"` // the setting, for DifferenceConfig
	Have  string         `json:"have"`
	Want  string         `json:"want"`
	// Fixable: Apply changes it. It creates topics and alters settings; it never adds partitions, which would move keys
	// away from their rows, never moves replicas and never deletes.
	Fixable bool `json:"fixable"`
}

func (d Difference) String() string {
	switch d.Kind {
	case DifferenceMissing:
		return fmt.Sprintf("%s: is missing, planned with %s", d.Topic, d.Want)
	case DifferenceConfig:
		return fmt.Sprintf("%s: %s is %q, planned %q", d.Topic, d.Key, d.Have, d.Want)
	}
	return fmt.Sprintf("%s: has %s %s, planned %s (not changed by apply)", d.Topic, d.Have, d.Kind, d.Want)
}

// UnfixableError lists the differences that Apply does not touch, or that stand in the way of running.
type UnfixableError struct{ Differences []Difference }

func (e *UnfixableError) Error() string {
	lines := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		lines[i] = d.String()
	}
	return "topics differ from the plan: " + strings.Join(lines, "; ")
}

// visibleTimeout is how long Apply waits for the leaders of what it has created.
const visibleTimeout = 30 * time.Second

// Diff compares the plan with the cluster. It changes nothing.
func Diff(ctx context.Context, cfg Config, plan []TopicSpec) ([]Difference, error) {
	var out []Difference
	err := withAdmin(ctx, cfg, func(a sarama.ClusterAdmin) (err error) {
		out, err = diff(ctx, a, plan)
		return err
	})
	return out, err
}

// Apply creates what is missing and alters the settings that differ, and returns what it has changed. Several processes
// may call it at once. What it cannot change comes back as an *UnfixableError, after the rest is done.
func Apply(ctx context.Context, cfg Config, plan []TopicSpec) (applied []Difference, err error) {
	err = withAdmin(ctx, cfg, func(a sarama.ClusterAdmin) error {
		differences, err := diff(ctx, a, plan)
		if err != nil {
			return err
		}
		left := &UnfixableError{}
		for _, spec := range plan {
			mine := slices.DeleteFunc(slices.Clone(differences), func(d Difference) bool { return d.Topic != spec.Name })
			left.Differences = append(left.Differences, slices.DeleteFunc(slices.Clone(mine), func(d Difference) bool { return d.Fixable })...)
			mine = slices.DeleteFunc(mine, func(d Difference) bool { return !d.Fixable })
			if len(mine) == 0 {
				continue
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fix(a, spec, mine); err != nil {
				return err
			}
			applied = append(applied, mine...)
		}
		if err := waitVisible(ctx, a, plan); err != nil {
			return err
		}
		if len(left.Differences) > 0 {
			return left
		}
		return nil
	})
	return applied, err
}

// withAdmin connects, and disconnects again.
func withAdmin(ctx context.Context, cfg Config, do func(sarama.ClusterAdmin) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	conf, err := cfg.Sarama()
	if err != nil {
		return err
	}
	admin, err := sarama.NewClusterAdmin(cfg.Brokers, conf)
	if err != nil {
		return fmt.Errorf("connect to kafka at %s: %w", strings.Join(cfg.Brokers, ","), err)
	}
	defer func() {
		if cerr := admin.Close(); cerr != nil && err == nil {
			err = fmt.Errorf("close kafka admin client: %w", cerr)
		}
	}()
	return do(admin)
}

func diff(ctx context.Context, a sarama.ClusterAdmin, plan []TopicSpec) ([]Difference, error) {
	have, err := describe(a, names(plan))
	if err != nil {
		return nil, err
	}
	var out []Difference
	var known []TopicSpec
	for _, spec := range plan {
		meta := have[spec.Name]
		if meta == nil {
			want := fmt.Sprintf("%d partitions, replication %d", spec.Partitions, spec.Replication)
			out = append(out, Difference{Topic: spec.Name, Kind: DifferenceMissing, Want: want, Fixable: true})
			continue
		}
		out = append(out, diffShape(spec, meta)...)
		known = append(known, attainable(spec, meta))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	configs, err := diffConfigs(a, known)
	return append(out, configs...), err
}

// attainable is the plan without what the topic's replicas cannot keep: with more replicas to be in sync than there are,
// nothing could be written any more.
func attainable(spec TopicSpec, meta *sarama.TopicMetadata) TopicSpec {
	if n, err := strconv.Atoi(spec.Config[MinInSyncReplicas]); err != nil || n <= replicas(meta) {
		return spec
	}
	spec.Config = maps.Clone(spec.Config)
	delete(spec.Config, MinInSyncReplicas)
	return spec
}

// replicas is the least number that a partition has.
func replicas(meta *sarama.TopicMetadata) int {
	least := 0
	for i, p := range meta.Partitions {
		if i == 0 || len(p.Replicas) < least {
			least = len(p.Replicas)
		}
	}
	return least
}

func diffShape(spec TopicSpec, meta *sarama.TopicMetadata) []Difference {
	var out []Difference
	if n := int32(len(meta.Partitions)); n != spec.Partitions {
		out = append(out, Difference{
			Topic: spec.Name, Kind: DifferencePartitions,
			Have: strconv.Itoa(int(n)), Want: strconv.Itoa(int(spec.Partitions)),
		})
	}
	if n := replicas(meta); n < int(spec.Replication) {
		out = append(out, Difference{
			Topic: spec.Name, Kind: DifferenceReplication,
			Have: strconv.Itoa(n), Want: strconv.Itoa(int(spec.Replication)),
		})
	}
	return out
}

func diffConfigs(a sarama.ClusterAdmin, specs []TopicSpec) ([]Difference, error) {
	resources := make([]*sarama.ConfigResource, len(specs))
	for i, s := range specs {
		resources[i] = &sarama.ConfigResource{Type: sarama.TopicResource, Name: s.Name, ConfigNames: slices.Sorted(maps.Keys(s.Config))}
	}
	results, err := a.DescribeConfigs(resources, sarama.DescribeConfigsOptions{})
	if err != nil {
		return nil, fmt.Errorf("read topic settings: %w", err)
	}
	byName := make(map[string]map[string]string, len(results))
	for _, r := range results {
		if errors.Is(r.ErrorCode, sarama.ErrTopicAuthorizationFailed) {
			return nil, &AccessError{[]Access{{Operation: OperationDescribeConfigs, Topic: r.Name}}}
		}
		if !errors.Is(r.ErrorCode, sarama.ErrNoError) {
			return nil, fmt.Errorf("read settings of topic %s: %w", r.Name, r.ErrorCode)
		}
		byName[r.Name] = make(map[string]string, len(r.Configs))
		for _, c := range r.Configs {
			byName[r.Name][c.Name] = c.Value
		}
	}
	var out []Difference
	for _, s := range specs {
		for _, key := range slices.Sorted(maps.Keys(s.Config)) {
			if have := byName[s.Name][key]; have != s.Config[key] {
				out = append(out, Difference{
					Topic: s.Name, Kind: DifferenceConfig, Key: key, Have: have, Want: s.Config[key], Fixable: true,
				})
			}
		}
	}
	return out, nil
}

func fix(a sarama.ClusterAdmin, spec TopicSpec, differences []Difference) error {
	if differences[0].Kind == DifferenceMissing {
		return create(a, spec)
	}
	entries := make(map[string]sarama.IncrementalAlterConfigsEntry, len(differences))
	for _, d := range differences {
		entries[d.Key] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &d.Want}
	}
	if err := a.IncrementalAlterConfig(sarama.TopicResource, spec.Name, entries, false); err != nil {
		return fmt.Errorf("alter settings of topic %s: %w", spec.Name, err)
	}
	return nil
}

func create(a sarama.ClusterAdmin, spec TopicSpec) error {
	detail := &sarama.TopicDetail{
		NumPartitions:     spec.Partitions,
		ReplicationFactor: spec.Replication,
		ConfigEntries:     make(map[string]*string, len(spec.Config)),
	}
	for k, v := range spec.Config {
		detail.ConfigEntries[k] = &v
	}
	err := a.CreateTopic(spec.Name, detail, false)
	// Another process that starts at the same time has the same plan.
	if err != nil && !errors.Is(err, sarama.ErrTopicAlreadyExists) {
		return fmt.Errorf("create topic %s: %w", spec.Name, err)
	}
	return nil
}

// waitVisible waits until every partition of the plan has a leader: a new topic is not there for all brokers at once.
func waitVisible(ctx context.Context, a sarama.ClusterAdmin, plan []TopicSpec) error {
	ctx, cancel := context.WithTimeout(ctx, visibleTimeout)
	defer cancel()
	for {
		have, err := describe(a, names(plan))
		if err == nil {
			if err = leaderless(have, plan); err == nil {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for topics: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func leaderless(have map[string]*sarama.TopicMetadata, plan []TopicSpec) error {
	for _, spec := range plan {
		meta := have[spec.Name]
		if meta == nil {
			return fmt.Errorf("topic %s is not visible yet", spec.Name)
		}
		for _, p := range meta.Partitions {
			if !errors.Is(p.Err, sarama.ErrNoError) {
				return fmt.Errorf("topic %s partition %d: %w", spec.Name, p.ID, p.Err)
			}
		}
	}
	return nil
}

// describe returns what exists of the named topics.
func describe(a sarama.ClusterAdmin, topics []string) (map[string]*sarama.TopicMetadata, error) {
	if len(topics) == 0 {
		return nil, nil // an empty list would ask for all topics of the cluster
	}
	metas, err := a.DescribeTopics(topics)
	if err != nil {
		return nil, fmt.Errorf("describe topics: %w", err)
	}
	out := make(map[string]*sarama.TopicMetadata, len(metas))
	forbidden := &AccessError{}
	for _, m := range metas {
		switch {
		case errors.Is(m.Err, sarama.ErrTopicAuthorizationFailed):
			forbidden.Missing = append(forbidden.Missing, Access{Operation: OperationDescribe, Topic: m.Name})
		case errors.Is(m.Err, sarama.ErrUnknownTopicOrPartition):
		case errors.Is(m.Err, sarama.ErrNoError), errors.Is(m.Err, sarama.ErrLeaderNotAvailable):
			out[m.Name] = m
		default:
			return nil, fmt.Errorf("describe topic %s: %w", m.Name, m.Err)
		}
	}
	if len(forbidden.Missing) > 0 {
		return nil, forbidden
	}
	return out, nil
}

func names(plan []TopicSpec) []string {
	out := make([]string, len(plan))
	for i, s := range plan {
		out[i] = s.Name
	}
	return out
}
