package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/waymarkhq/waymark/kafka"
)

// watchEvery is how old a change of the topics may be when it is noticed.
const watchEvery = 15 * time.Second

// TopicRemadeError says that a topic is no longer the one that the groups have begun to work with: it was deleted and made
// again while they ran. Offsets and rows of the one mean nothing in the other.
type TopicRemadeError struct{ Topic string }

func (e *TopicRemadeError) Error() string {
	return fmt.Sprintf("topic %s was made anew while its groups ran", e.Topic)
}

// watchTopics returns an error when a topic of the groups is made anew, or gets another number of partitions, while they
// run: keys would have other homes, and offsets another meaning. What the next process finds, it judges when it starts. It
// returns nil when ctx ends.
func (s *Supervisor) watchTopics(ctx context.Context) error {
	names, began := s.watched(), map[string]kafka.TopicIdentity{}
	for {
		// Where Kafka is away, or does not say, the groups notice that themselves.
		if now, err := kafka.TopicIdentities(ctx, s.config.Kafka, names...); err == nil {
			if err := compareTopics(names, began, now); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.config.Clock.After(watchEvery):
		}
	}
}

// watched are the inputs, joined tables and tables of the groups, each once.
func (s *Supervisor) watched() (names []string) {
	for _, g := range s.groups {
		names = append(names, slices.Concat(g.Inputs(), g.Joins())...)
		if table := g.TableTopic(); table != "" {
			names = append(names, table)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// compareTopics notes in began what is seen first. A topic that is missing now may be one that a broker does not know yet.
func compareTopics(names []string, began, now map[string]kafka.TopicIdentity) error {
	var differences []kafka.Difference
	for _, name := range names {
		is, there := now[name]
		was, known := began[name]
		switch {
		case !there:
		case !known:
			began[name] = is
		case was.ID != is.ID:
			return &TopicRemadeError{name}
		case was.Partitions != is.Partitions:
			differences = append(differences, kafka.Difference{Topic: name, Kind: kafka.DifferencePartitions,
				Have: strconv.Itoa(is.Partitions), Want: strconv.Itoa(was.Partitions)})
		}
	}
	return topicsError(differences)
}
