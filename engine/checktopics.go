package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/kafka"
)

// TopicsError lists the topics that are missing, or have other partitions than planned.
type TopicsError struct{ Differences []kafka.Difference }

func (e *TopicsError) Error() string {
	lines := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		lines[i] = d.String()
	}
	return "topics differ from the plan: " + strings.Join(lines, "; ")
}

// TopicChangedError says that an input topic is not the one that this data folder has worked with, but the group's table
// still is. Offsets in its rows mean nothing any more, and messages would count as old. Either remove the table as well, which starts
// the group anew, or raise the epoch, here and where the stage recognises messages (checkpoint.Rules).
type TopicChangedError struct {
	Group, Topic string
	Epoch        int // the one that has been used
}

func (e *TopicChangedError) Error() string {
	return fmt.Sprintf("group %s: topic %s was made anew, but its table was not: remove the table, or raise the epoch to %d", e.Group, e.Topic, e.Epoch+1)
}

// isFinal reports whether err stays however often it is tried.
func isFinal(err error) bool {
	var topics *TopicsError
	var changed *TopicChangedError
	var dir *DataDirError
	return errors.As(err, &topics) || errors.As(err, &changed) || errors.As(err, &dir)
}

// checkTopics creates or compares the topics, and returns the ids of the tables.
func (s *Supervisor) checkTopics(ctx context.Context, dir *dataDir) (map[string]string, error) {
	if err := s.comparePlan(ctx); err != nil {
		return nil, err
	}
	tables, inputs := map[string]bool{}, map[string]bool{}
	for _, g := range s.groups {
		for _, topic := range append(g.Joins(), g.TableTopic()) {
			if topic != "" {
				tables[topic] = true
			}
		}
		for _, topic := range g.Inputs() {
			inputs[topic] = true
		}
	}
	names := slices.Concat(slices.Sorted(maps.Keys(tables)), slices.Sorted(maps.Keys(inputs)))
	ids, err := kafka.TopicIDs(ctx, s.config.Kafka, names...)
	if err != nil {
		return nil, err
	}
	if err := s.compareIdentities(dir, ids); err != nil {
		return nil, err
	}
	maps.DeleteFunc(ids, func(topic, _ string) bool { return !tables[topic] })
	return ids, nil
}

func (s *Supervisor) comparePlan(ctx context.Context) error {
	c := s.config
	switch {
	case len(c.Topics) == 0:
		return nil
	case c.CreateTopics:
		applied, err := kafka.Apply(ctx, c.Kafka, c.Topics)
		for _, d := range applied {
			c.Log.Info("a topic was created or altered", "difference", d.String())
		}
		var left *kafka.UnfixableError
		if errors.As(err, &left) {
			return topicsError(left.Differences)
		}
		return err
	}
	differences, err := kafka.Diff(ctx, c.Kafka, c.Topics)
	if err != nil {
		return err
	}
	for _, d := range differences {
		c.Log.Warn("a topic differs from the plan", "difference", d.String())
	}
	return topicsError(differences)
}

// topicsError is nil where groups can run in spite of the differences.
func topicsError(differences []kafka.Difference) error {
	bad := slices.DeleteFunc(slices.Clone(differences), func(d kafka.Difference) bool {
		return d.Kind != kafka.DifferenceMissing && d.Kind != kafka.DifferencePartitions
	})
	if len(bad) == 0 {
		return nil
	}
	return &TopicsError{bad}
}

// compareIdentities looks whether rows in tables still speak of the topics that are there.
func (s *Supervisor) compareIdentities(dir *dataDir, ids map[string]string) error {
	known, err := dir.identities()
	if err != nil {
		return err
	}
	changed := func(topic string) bool {
		was, is := known.Topics[topic], ids[topic]
		return was != "" && is != "" && was != is
	}
	for _, g := range s.groups {
		if g.table == nil || changed(g.TableTopic()) || s.config.Epoch > known.Epoch {
			continue
		}
		for _, topic := range g.Inputs() {
			if changed(topic) {
				return &TopicChangedError{Group: g.name, Topic: topic, Epoch: known.Epoch}
			}
		}
	}
	next := identities{Epoch: max(known.Epoch, s.config.Epoch), Topics: map[string]string{}}
	maps.Copy(next.Topics, known.Topics)
	maps.Copy(next.Topics, ids)
	if next.Epoch == known.Epoch && maps.Equal(next.Topics, known.Topics) {
		return nil
	}
	return dir.setIdentities(next)
}
