package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/embedded"
)

// topicsPatience is how long a process waits for a cluster that starts beside it, or whose topics are being made.
const topicsPatience = 30 * time.Second

// awaitTopics waits for the cluster and its topics. What waiting cannot mend is refused at once: topics that changed under
// us, that keep less than they have to, or that this user may not use.
func (n *Node) awaitTopics(ctx context.Context) error {
	return await(ctx, n.log, wait{"Kafka and its topics", topicsPatience, 200 * time.Millisecond}, func(ctx context.Context) (retry bool, err error) {
		err = n.checkTopics(ctx)
		return !settled(err), err
	})
}

// settled: no waiting helps, since nobody mends it in passing.
func settled(err error) bool {
	var changed *kafka.EpochError
	var topics *kafka.TopicsError
	var access *kafka.AccessError
	return errors.As(err, &changed) || errors.As(err, &access) || errors.As(err, &topics) && !topics.Missing()
}

// checkTopics refuses to run on topics that are missing, were made anew or are not what the plan says, before anything reads
// or writes them.
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
		// Topics that changed come first, because there is more to do about them than the plan knows. Their identity is
		// written down once they are as planned.
		var changed *kafka.EpochError
		if err := kafka.CompareCluster(ctx, n.kafka, n.topics, n.cfg.Kafka.Epoch); errors.As(err, &changed) {
			return err
		}
		if err := n.checkPlan(ctx); err != nil {
			return err
		}
	}
	return kafka.CheckCluster(ctx, n.kafka, n.topics, n.cfg.Kafka.Epoch)
}

// checkPlan refuses topics of a cluster on which the promise does not hold. How many partitions there are is for the cluster
// to say, unless somebody has configured it; but all topics must have equally many. What only costs room or time is told.
func (n *Node) checkPlan(ctx context.Context) error {
	id, err := kafka.ClusterID(ctx, n.kafka)
	if err != nil {
		return err
	}
	inEmbedded := id == embedded.ClusterID
	if inEmbedded {
		n.cfg.Kafka.Replication = 1 // it has no more
	}
	if inEmbedded || n.cfg.OriginOf("kafka.partitions") == (config.Origin{}) {
		// Where there are none to be counted, the comparison says why.
		if have, err := n.parts.reader.Partitions(ctx, n.topics.Documents); err == nil && have > 0 {
			n.cfg.Kafka.Partitions = int(have)
		}
	}
	if n.plan, err = Plan(n.cfg, inEmbedded); err != nil {
		return err
	}
	harmless, err := kafka.CheckTopics(ctx, n.kafka, n.plan)
	var topics *kafka.TopicsError
	if errors.As(err, &topics) {
		return fmt.Errorf("%w ('waymark topics plan' shows all differences, 'waymark topics apply' mends what can be mended)", err)
	}
	if err != nil {
		return err
	}
	for _, d := range harmless {
		n.log.Warn("a topic's setting differs from the plan; 'waymark topics apply' changes it", "difference", d.String())
	}
	if n.cfg.Kafka.Replication == 1 && !inEmbedded {
		n.log.Warn("every record is on one broker only (kafka.replication is 1): what that broker loses is lost; three brokers and a replication of 3 keep it")
	}
	return nil
}

// checkAccess refuses to run without the rights that the roles need, all of them at once.
func (n *Node) checkAccess(ctx context.Context) error {
	if n.o.Embedded {
		return nil
	}
	if err := kafka.CheckAccess(ctx, n.kafka, n.neededAccess()); err != nil {
		return fmt.Errorf("%w (docs/operations.md lists what each role needs)", err)
	}
	return nil
}

// neededAccess are the rights that the roles of this process need.
func (n *Node) neededAccess() []kafka.Access {
	var needed []kafka.Access
	add := func(o kafka.Operation, topics ...string) {
		for _, topic := range topics {
			needed = append(needed, kafka.Access{Operation: o, Topic: topic})
		}
	}
	t := n.topics
	add(kafka.OperationRead, t.Cluster)
	add(kafka.OperationWrite, t.Cluster)
	if n.has(config.RoleAPI) {
		add(kafka.OperationWrite, t.Documents, t.Commands)
		// How old what is unread is, and the views.
		add(kafka.OperationRead, t.Documents, t.Replays, t.Chunks, t.Vectors, t.Progress, t.Events, t.Commands, t.Tables.Indexer, t.Tables.Tracker, t.Tables.DeadLetters)
		for _, group := range []string{t.Groups.Chunker, t.Groups.Embedder, t.Groups.Indexer, t.Groups.Tracker, t.Groups.DeadLetters} {
			needed = append(needed, kafka.Access{Operation: kafka.OperationDescribe, Group: group}) // how far they are
		}
	}
	if n.has(config.RoleIndexer) {
		add(kafka.OperationRead, t.Documents) // the record of a letter, by its position
	}
	for _, r := range n.runners {
		g := r.Group()
		add(kafka.OperationRead, g.Inputs()...)
		add(kafka.OperationRead, g.Joins()...)
		add(kafka.OperationWrite, g.Outputs()...)
		if table := g.TableTopic(); table != "" {
			add(kafka.OperationRead, table)
			add(kafka.OperationWrite, table)
		}
		needed = append(needed, kafka.Access{Operation: kafka.OperationRead, Group: g.Name()})
	}
	return needed
}
