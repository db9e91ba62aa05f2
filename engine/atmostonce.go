package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/IBM/sarama"

	"github.com/waymarkhq/waymark/stage"
)

// ErrExactlyOnce is returned for groups that ask for a contract that does not exist yet.
var ErrExactlyOnce = errors.New("exactly-once is not available; choose at-least-once or at-most-once")

// Deliver sets the delivery contract of a group; stage.AtLeastOnce is the default.
func Deliver(d stage.Delivery) Option {
	return func(g *Group) {
		switch d {
		case stage.AtLeastOnce, stage.AtMostOnce:
			g.delivery = d
		case stage.ExactlyOnce:
			g.problem = ErrExactlyOnce
		default:
			g.problem = fmt.Errorf("delivery contract %q: there are %s and %s", d, stage.AtLeastOnce, stage.AtMostOnce)
		}
	}
}

// commitAhead is how many records of a claim are committed with one request before they are worked on: the most that a
// death loses per topic and partition.
const commitAhead = 100

// feedCommitted hands records over after their offsets were committed (contract rule 20). Records that nobody committed
// are not handed over: whoever owns the partition next gets them.
func (c *gatedClaim) feedCommitted(ctx context.Context, s *session, r *runner, g *gate, done <-chan struct{}) {
	defer close(c.out)
	for {
		batch, ok := c.gather(done)
		if len(batch) == 0 {
			return
		}
		next := batch[len(batch)-1].Offset + 1
		if err := r.commitOffset(ctx, s, c.Topic(), c.Partition(), next); err != nil {
			r.log.Warn("an offset could not be committed before the work; the claim ends", "topic", c.Topic(), "partition", c.Partition(), "error", err)
			return
		}
		for _, m := range batch {
			if !g.deliver(m) {
				return
			}
			select {
			case c.out <- m:
			case <-done:
				return
			}
		}
		if !ok {
			return
		}
	}
}

// gather waits for one record and takes what else is there; false once the claim has ended.
func (c *gatedClaim) gather(done <-chan struct{}) (batch []*sarama.ConsumerMessage, ok bool) {
	select {
	case m, open := <-c.ConsumerGroupClaim.Messages():
		if !open {
			return nil, false
		}
		batch = append(batch, m)
	case <-done:
		return nil, false
	}
	for len(batch) < commitAhead {
		select {
		case m, open := <-c.ConsumerGroupClaim.Messages():
			if !open {
				return batch, false
			}
			batch = append(batch, m)
		default:
			return batch, true
		}
	}
	return batch, true
}

// commitTries bounds the tries of one commit; a coordinator that moves answers within them.
const commitTries = 5

// commitOffset commits with a request whose answer is read: sarama's own commits report their failures somewhere else.
func (r *runner) commitOffset(ctx context.Context, s *session, topic string, partition int32, next int64) error {
	for try := 1; ; try++ {
		err := r.tryCommit(s, topic, partition, next)
		if err == nil {
			return nil
		}
		moved := errors.Is(err, sarama.ErrNotCoordinatorForConsumer) || errors.Is(err, sarama.ErrOffsetsLoadInProgress) ||
			errors.Is(err, sarama.ErrConsumerCoordinatorNotAvailable) || !isKafkaError(err)
		if !moved || try == commitTries {
			return err
		}
		if err := r.client.RefreshCoordinator(r.group.name); err != nil {
			r.log.Debug("looking for the coordinator", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-r.env.Clock.After(r.env.Retry.wait(try, r.env.Jitter())):
		}
	}
}

func isKafkaError(err error) bool {
	var k sarama.KError
	return errors.As(err, &k)
}

func (r *runner) tryCommit(s *session, topic string, partition int32, next int64) error {
	coordinator, err := r.client.Coordinator(r.group.name)
	if err != nil {
		return fmt.Errorf("looking for the coordinator: %w", err)
	}
	req := &sarama.OffsetCommitRequest{Version: 7, ConsumerGroup: r.group.name, ConsumerGroupGeneration: s.GenerationID(),
		ConsumerID: s.MemberID(), RetentionTime: -1}
	if r.env.InstanceID != "" {
		id := r.staticID()
		req.GroupInstanceId = &id
	}
	req.AddBlock(topic, partition, next, 0, "")
	answer, err := coordinator.CommitOffset(req)
	if err != nil {
		return fmt.Errorf("committing: %w", err)
	}
	if k := answer.Errors[topic][partition]; k != sarama.ErrNoError {
		return fmt.Errorf("committing: %w", k)
	}
	return nil
}
