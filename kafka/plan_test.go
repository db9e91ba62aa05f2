package kafka_test

import (
	"strings"
	"testing"

	"github.com/lovoo/goka"

	"github.com/waymarkhq/waymark/kafka"
)

func specs(t *testing.T, o kafka.PlanOptions) map[string]kafka.TopicSpec {
	t.Helper()
	plan, err := kafka.Plan(o)
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]kafka.TopicSpec)
	for _, s := range plan {
		out[s.Name] = s
	}
	if len(out) != len(plan) {
		t.Fatalf("%d topics under %d names", len(plan), len(out))
	}
	return out
}

const (
	days7  = "604800000"
	days30 = "2592000000"
	day    = "86400000"
	mib12  = "12582912"
	mib13  = "13631488"
)

func TestPlanForACluster(t *testing.T) {
	got := specs(t, kafka.PlanOptions{Prefix: "w", Partitions: 12, Replication: 3})
	table := map[string]string{"cleanup.policy": "compact", "retention.ms": "-1", "min.compaction.lag.ms": day, "max.message.bytes": mib13}
	stream := map[string]string{"cleanup.policy": "delete", "retention.ms": days30, "max.message.bytes": mib13}
	for name, want := range map[string]map[string]string{
		"w.documents":         {"cleanup.policy": "compact", "retention.ms": "-1", "min.compaction.lag.ms": days30, "max.message.bytes": mib12},
		"w.replays":           stream,
		"w.chunks":            stream,
		"w.vectors":           stream,
		"w.progress":          stream,
		"w.events":            stream,
		"w.commands":          stream,
		"w.dead-letters":      {"cleanup.policy": "delete", "retention.ms": "-1", "max.message.bytes": mib13},
		"w-chunker-table":     table,
		"w-indexer-table":     table,
		"w-deadletters-table": table,
		"w-tracker-table":     {"cleanup.policy": "compact,delete", "retention.ms": days7, "segment.ms": day, "max.message.bytes": mib13},
		"w-embedder-table":    {"cleanup.policy": "compact,delete", "retention.ms": days30, "segment.ms": day, "max.message.bytes": mib13},
		"w.cluster":           {"cleanup.policy": "compact", "retention.ms": "-1"},
	} {
		spec, ok := got[name]
		if !ok {
			t.Errorf("no topic %s", name)
			continue
		}
		for k, v := range want {
			if spec.Config[k] != v {
				t.Errorf("%s: %s is %q, want %q", name, k, spec.Config[k], v)
			}
		}
		partitions := int32(12)
		if name == "w.cluster" {
			partitions = 1
		}
		if spec.Partitions != partitions || spec.Replication != 3 || spec.Config["min.insync.replicas"] != "2" {
			t.Errorf("%s: %+v", name, spec)
		}
	}
	if len(got) != 14 {
		t.Errorf("%d topics, want 14", len(got))
	}
}

// The embedded broker compacts and deletes by its own clock: what must stay may not be compacted there at all.
func TestPlanForTheEmbeddedBroker(t *testing.T) {
	for name, spec := range specs(t, kafka.PlanOptions{Prefix: "w", Partitions: 4, Replication: 1, Embedded: true}) {
		if strings.Contains(spec.Config["cleanup.policy"], "compact") {
			t.Errorf("%s would be compacted", name)
		}
		stays := name == "w.documents" || name == "w.dead-letters" || name == "w.cluster" || strings.HasSuffix(name, "-table")
		if got := spec.Config["retention.ms"] == "-1"; got != stays {
			t.Errorf("%s: retention.ms %s", name, spec.Config["retention.ms"])
		}
		if _, ok := spec.Config["min.insync.replicas"]; ok {
			t.Errorf("%s: min.insync.replicas on one broker", name)
		}
	}
}

func TestTablesBearGokasNames(t *testing.T) {
	topics := kafka.NewTopics("w")
	for group, table := range map[string]string{
		topics.Groups.Chunker: topics.Tables.Chunker, topics.Groups.Embedder: topics.Tables.Embedder, topics.Groups.Indexer: topics.Tables.Indexer,
		topics.Groups.Tracker: topics.Tables.Tracker, topics.Groups.DeadLetters: topics.Tables.DeadLetters,
	} {
		if want := string(goka.GroupTable(goka.Group(group))); table != want {
			t.Errorf("table of %s is %s, goka says %s", group, table, want)
		}
	}
}

func TestPlanRefusesNonsense(t *testing.T) {
	for field, o := range map[string]kafka.PlanOptions{
		"topic_prefix": {Prefix: "a b", Partitions: 1, Replication: 1},
		"partitions":   {Prefix: "w", Partitions: 0, Replication: 1},
		"replication":  {Prefix: "w", Partitions: 1, Replication: 0},
	} {
		if _, err := kafka.Plan(o); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := kafka.Plan(kafka.PlanOptions{Prefix: "", Partitions: 5000}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("three errors at once: %v", err)
	}
}

func TestLimits(t *testing.T) {
	plan, err := kafka.Plan(kafka.PlanOptions{Prefix: "w", Partitions: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	limits := kafka.Limits(plan)
	if limits["w.documents"] != kafka.MaxDocumentBytes || limits["w.dead-letters"] != kafka.MaxRecordBytes || len(limits) != len(plan) {
		t.Fatalf("limits %v", limits)
	}
}
