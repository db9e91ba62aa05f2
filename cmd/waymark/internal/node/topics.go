package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
)

// topicsPatience is how long a process waits for a cluster that starts beside it, or whose topics are being made.
const topicsPatience = 30 * time.Second

// awaitTopics waits for the cluster and its topics; topics that changed under us are refused at once.
func (n *Node) awaitTopics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, topicsPatience)
	defer cancel()
	told := false
	for {
		err := n.checkTopics(ctx)
		if err == nil || settled(err) {
			return err
		}
		if !told {
			n.log.Warn("waiting for Kafka and its topics", "error", err, "patience", topicsPatience.String())
			told = true
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// settled: no waiting helps, since nobody mends it in passing.
func settled(err error) bool {
	var changed *kafka.EpochError
	var differs *kafka.UnfixableError
	return errors.As(err, &changed) ||
		errors.As(err, &differs) && slices.ContainsFunc(differs.Differences, func(d kafka.Difference) bool { return !d.Fixable })
}

// checkTopics refuses to run on topics that are missing or were made anew, before anything reads or writes them.
func (n *Node) checkTopics(ctx context.Context) error {
	if n.parts.reader == nil {
		reader, err := kafka.NewReader(n.kafka)
		if err != nil {
			return err
		}
		n.parts.reader = reader
		n.onClose("the reader", func(context.Context) error { return reader.Close() })
	}
	if !n.o.Embedded {
		have, err := n.parts.reader.Partitions(ctx, n.topics.Documents)
		if err != nil {
			return fmt.Errorf("looking for the topic %s ('waymark topics apply' makes what is missing): %w", n.topics.Documents, err)
		}
		n.cfg.Kafka.Partitions = int(have) // the cluster is the truth; a difference to the plan is for `topics plan`
	}
	if err := kafka.CheckCluster(ctx, n.kafka, n.topics, n.cfg.Kafka.Epoch); err != nil || n.o.Embedded {
		return err
	}
	return n.checkPlan(ctx)
}

// checkPlan refuses topics of a cluster on which the promise does not hold: that are missing, have other numbers of
// partitions, or fewer replicas, or acknowledge with fewer of them, than the configuration says. What only costs room or
// time is told.
func (n *Node) checkPlan(ctx context.Context) error {
	id, err := kafka.ClusterID(ctx, n.kafka)
	if err != nil {
		return err
	}
	plan, err := Plan(n.cfg, id == embedded.ClusterID)
	if err != nil {
		return err
	}
	differences, err := kafka.Diff(ctx, n.kafka, plan)
	if err != nil {
		return fmt.Errorf("comparing the topics with the plan: %w", err)
	}
	var refused []kafka.Difference
	for _, d := range differences {
		if d.Kind == kafka.DifferenceConfig && d.Key != kafka.MinInSyncReplicas {
			n.log.Warn("a topic's setting differs from the plan; 'waymark topics apply' changes it", "difference", d.String())
			continue
		}
		refused = append(refused, d)
	}
	if len(refused) > 0 {
		return fmt.Errorf("%w ('waymark topics plan' shows all differences, 'waymark topics apply' mends what can be mended)", &kafka.UnfixableError{Differences: refused})
	}
	if n.cfg.Kafka.Replication == 1 && id != embedded.ClusterID {
		n.log.Warn("every record is on one broker only (kafka.replication is 1): what that broker loses is lost; three brokers and a replication of 3 keep it")
	}
	return nil
}
