package node

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/waymarkhq/waymark/kafka"
)

// suspicions are records of the cluster topic, by group and position: which messages were being worked on when a process
// died. They are few, and compacted.
type suspicions struct {
	reader   *kafka.Reader
	producer *kafka.Producer
	topic    string
}

// suspicion is the value of such a record.
type suspicion struct {
	// Alone is how often the message was alone when a process died.
	Alone int `json:"alone"`
}

func suspicionKey(group, position string) string { return "suspect/" + group + "/" + position }

// Load reads what the processes of a group suspect.
func (s suspicions) Load(ctx context.Context, group string) (map[string]int, error) {
	out := map[string]int{}
	prefix := suspicionKey(group, "")
	err := s.reader.Each(ctx, s.topic, 0, func(r kafka.Record) error {
		position, ours := strings.CutPrefix(string(r.Key), prefix)
		if !ours {
			return nil
		}
		var v suspicion
		if r.Value == nil || json.Unmarshal(r.Value, &v) != nil {
			delete(out, position)
			return nil
		}
		out[position] = v.Alone
		return nil
	})
	return out, err
}

// Publish sets or clears a count.
func (s suspicions) Publish(ctx context.Context, group, position string, count int) error {
	r := kafka.Record{Topic: s.topic, Key: []byte(suspicionKey(group, position))}
	if count >= 0 {
		b, err := json.Marshal(suspicion{Alone: count})
		if err != nil {
			return fmt.Errorf("encoding a suspicion: %w", err)
		}
		r.Value = b
	}
	_, _, err := s.producer.SendSync(ctx, r)
	return err
}
