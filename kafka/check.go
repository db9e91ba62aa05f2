package kafka

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TopicsError lists what keeps a process from working on the topics: one is missing, has other partitions or fewer replicas
// than planned, or a setting that keeps less than the delivery contract needs.
type TopicsError struct{ Differences []Difference }

func (e *TopicsError) Error() string {
	lines := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		lines[i] = d.String()
	}
	return "topics are not what they have to be: " + strings.Join(lines, "; ")
}

// Missing reports whether nothing is wrong but that topics are missing, which somebody may be about to make.
func (e *TopicsError) Missing() bool {
	return !slices.ContainsFunc(e.Differences, func(d Difference) bool { return d.Kind != DifferenceMissing })
}

// CheckTopics compares the plan with the cluster before a process works on it; it changes nothing. The error is a
// *TopicsError where the contract could not be kept. Differences that it survives come back alone: a setting that keeps
// more than planned, or has to do with speed only.
func CheckTopics(ctx context.Context, cfg Config, plan []TopicSpec) (harmless []Difference, err error) {
	differences, err := Diff(ctx, cfg, plan)
	if err != nil {
		return nil, fmt.Errorf("compare the topics with the plan: %w", err)
	}
	grave := &TopicsError{}
	for _, d := range differences {
		if d.harmless() {
			harmless = append(harmless, d)
		} else {
			grave.Differences = append(grave.Differences, d)
		}
	}
	if len(grave.Differences) > 0 {
		return harmless, grave
	}
	return harmless, nil
}

// harmless reports whether the contract holds in spite of the difference.
func (d Difference) harmless() bool {
	if d.Kind != DifferenceConfig {
		return false
	}
	switch d.Key {
	case "segment.ms":
		return true
	case "retention.ms":
		return keepsLonger(d.Have, d.Want)
	case MinInSyncReplicas, "max.message.bytes", "min.compaction.lag.ms", "delete.retention.ms":
		have, err := strconv.ParseInt(d.Have, 10, 64)
		want, wantErr := strconv.ParseInt(d.Want, 10, 64)
		return err == nil && wantErr == nil && have >= want
	}
	return false
}

// keepsLonger compares times of retention in milliseconds; a negative one is for ever.
func keepsLonger(have, want string) bool {
	h, err := strconv.ParseInt(have, 10, 64)
	w, wantErr := strconv.ParseInt(want, 10, 64)
	return err == nil && wantErr == nil && (h < 0 || w >= 0 && h >= w)
}
