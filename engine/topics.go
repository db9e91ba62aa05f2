package engine

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/waymarkhq/waymark/kafka"
)

// TopicOptions are what an operator chooses about the topics of groups.
type TopicOptions struct {
	// Partitions of every topic. A group's inputs, its table and the tables that it joins must have equally many.
	Partitions int32
	// Replication; 1 on the embedded broker.
	Replication int16
	// Embedded plans for the embedded broker: it compacts by its own clock, so nothing is compacted there.
	Embedded bool
	// Forever are topics whose records never leave, as dead letters should not. Those of the others leave after
	// kafka.StreamRetention, read or not; tables always stay.
	Forever []string
}

// TopicPlan lists every topic that the groups read, write and keep, with the settings that the delivery contract needs. A
// topic that is an input takes batches of up to kafka.MaxDocumentBytes, the others up to kafka.MaxRecordBytes, so that a dead
// letter fits with its headers. What it returns may be changed before it is applied.
func TopicPlan(o TopicOptions, groups ...*Group) ([]kafka.TopicSpec, error) {
	const prefix = "plan" // of names that nobody sees
	kinds, err := kafka.Plan(kafka.PlanOptions{Prefix: prefix, Partitions: o.Partitions, Replication: o.Replication, Embedded: o.Embedded})
	if err != nil {
		return nil, err
	}
	// The settings are those of the document pipeline's topics of the same kind.
	names := kafka.NewTopics(prefix)
	like := func(kind, name string) kafka.TopicSpec {
		spec := kinds[slices.IndexFunc(kinds, func(s kafka.TopicSpec) bool { return s.Name == kind })]
		spec.Name, spec.Config = name, maps.Clone(spec.Config)
		return spec
	}
	var plan []kafka.TopicSpec
	add := func(kind, name string, input bool) {
		if slices.ContainsFunc(plan, func(s kafka.TopicSpec) bool { return s.Name == name }) {
			return
		}
		spec := like(kind, name)
		if input {
			spec.Config["max.message.bytes"] = strconv.Itoa(kafka.MaxDocumentBytes)
		}
		plan = append(plan, spec)
	}
	stream := func(name string) string {
		if slices.Contains(o.Forever, name) {
			return names.DeadLetters
		}
		return names.Chunks
	}
	for _, g := range groups {
		for _, topic := range g.Inputs() {
			add(stream(topic), topic, true)
		}
	}
	for _, g := range groups {
		for _, topic := range g.Outputs() {
			add(stream(topic), topic, false)
		}
	}
	for _, g := range groups {
		if t := g.TableTopic(); t != "" {
			add(names.Tables.Indexer, t, false)
		}
	}
	for _, name := range o.Forever {
		if !slices.ContainsFunc(plan, func(s kafka.TopicSpec) bool { return s.Name == name }) {
			return nil, fmt.Errorf("topic plan: forever names %s, which no group reads or writes", name)
		}
	}
	return plan, nil
}
