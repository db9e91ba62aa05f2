package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
)

// table is a view of one group table, held in memory.
type table[R any] struct {
	topic stage.Topic[R]
	merge func(a, b *R) *R
	view  *goka.View
	mu    sync.RWMutex
	rows  map[string]*R
}

func (t *table[R]) update(_ goka.UpdateContext, _ storage.Storage, key string, value []byte) error {
	if value == nil {
		return nil
	}
	row, err := t.topic.Codec.Decode(value)
	if errors.Is(err, stage.ErrNewerFormat) {
		return err
	}
	if err != nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	next := &row
	if old := t.rows[key]; old != nil {
		next = t.merge(old, next)
	}
	t.rows[key] = next
	return nil
}

func (t *table[R]) get(key string) *R {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rows[key]
}

type nodeViews struct {
	documents *table[ledger.DocumentRow]
	messages  *table[ledger.TrackerRow]
	letters   *table[ledger.LetterRow]
}

func openTable[R any](ctx context.Context, n *Node, topic stage.Topic[R], merge func(a, b *R) *R) (*table[R], error) {
	t := &table[R]{topic: topic, merge: merge, rows: map[string]*R{}}
	cfg := func() *sarama.Config {
		c, err := n.kafka.Sarama()
		if err != nil {
			panic(err)
		}
		return c
	}
	v, err := goka.NewView(n.kafka.Brokers, goka.Table(topic.Name), passThrough{}, goka.WithViewHasher(kafka.Hasher()), goka.WithViewCallback(t.update),
		goka.WithViewStorageBuilder(storage.MemoryBuilder()), goka.WithViewConsumerSaramaBuilder(goka.SaramaConsumerBuilderWithConfig(cfg())),
		goka.WithViewTopicManagerBuilder(goka.TopicManagerBuilderWithConfig(cfg(), goka.NewTopicManagerConfig())), goka.WithViewAutoReconnect())
	if err != nil {
		return nil, err
	}
	t.view = v
	n.running.Go(func() { _ = v.Run(ctx) })
	return t, nil
}

type passThrough struct{}

func (passThrough) Encode(v any) ([]byte, error) { return v.([]byte), nil }
func (passThrough) Decode(b []byte) (any, error) { return b, nil }

func (n *Node) startViews(ctx context.Context) error {
	t := pipeline.Topics(n.topics, time.Now)
	v := &nodeViews{}
	var err error
	if v.documents, err = openTable(ctx, n, t.IndexerTable, ledger.MergeDocumentRow); err != nil {
		return err
	}
	if v.messages, err = openTable(ctx, n, t.TrackerTable, ledger.MergeTrackerRow); err != nil {
		return err
	}
	if v.letters, err = openTable(ctx, n, t.DeadLettersTable, ledger.MergeLetterRow); err != nil {
		return err
	}
	n.views = v
	return nil
}

func (v *nodeViews) ready() error {
	if v == nil {
		return nil
	}
	for name, g := range map[string]*goka.View{"documents": v.documents.view, "messages": v.messages.view, "letters": v.letters.view} {
		if !g.Recovered() {
			return fmt.Errorf("the view of %s recovers", name)
		}
	}
	return nil
}

func (v *nodeViews) check() error {
	if err := v.ready(); err != nil {
		return &api.Unavailable{Reason: "views_recovering", RetryAfter: time.Second, Err: err}
	}
	return nil
}

func (v *nodeViews) Get(_ context.Context, id string) (*ledger.DocumentRow, error) {
	return v.documents.get(id), v.check()
}

func (v *nodeViews) Lag(context.Context) (time.Duration, error) { return 0, v.check() }

func after(at time.Time, id string, m api.Mark) bool {
	return m == (api.Mark{}) || at.Before(m.At) || at.Equal(m.At) && id > m.ID
}

func (v *nodeViews) List(_ context.Context, q api.DocumentQuery) ([]api.DocumentEntry, error) {
	var out []api.DocumentEntry
	v.documents.mu.RLock()
	for id, row := range v.documents.rows {
		c, ok := ledger.Latest(row)
		if ok && (q.Status == "" || c.Status == q.Status) && after(c.At, id, q.After) {
			out = append(out, api.DocumentEntry{ID: id, At: c.At, Row: row})
		}
	}
	v.documents.mu.RUnlock()
	slices.SortFunc(out, func(a, b api.DocumentEntry) int { return cmp.Or(b.At.Compare(a.At), cmp.Compare(a.ID, b.ID)) })
	return out[:min(len(out), q.Limit)], v.check()
}

func (v *nodeViews) countDocuments() map[rag.Status]int64 {
	out := map[rag.Status]int64{}
	v.documents.mu.RLock()
	defer v.documents.mu.RUnlock()
	for _, row := range v.documents.rows {
		if c, ok := ledger.Latest(row); ok {
			out[c.Status]++
		}
	}
	return out
}

func (v *nodeViews) countLetters() map[rag.LetterState]int64 {
	out := map[rag.LetterState]int64{}
	v.letters.mu.RLock()
	defer v.letters.mu.RUnlock()
	for _, row := range v.letters.rows {
		out[row.State]++
	}
	return out
}

type messages struct{ v *nodeViews }

func (m messages) Get(_ context.Context, messageID, documentID string) ([]*ledger.TrackerRow, error) {
	var out []*ledger.TrackerRow
	if documentID != "" {
		if r := m.v.messages.get(rag.EventKey(documentID, messageID)); r != nil {
			out = append(out, r)
		}
		return out, m.v.check()
	}
	m.v.messages.mu.RLock()
	defer m.v.messages.mu.RUnlock()
	for _, r := range m.v.messages.rows {
		if r.MessageID == messageID {
			out = append(out, r)
		}
	}
	return out, m.v.check()
}

type letters struct{ v *nodeViews }

func (l letters) Get(_ context.Context, id string) (*ledger.LetterRow, error) {
	return l.v.letters.get(id), l.v.check()
}

func (l letters) List(_ context.Context, q api.LetterQuery) ([]*ledger.LetterRow, error) {
	var out []*ledger.LetterRow
	l.v.letters.mu.RLock()
	for id, r := range l.v.letters.rows {
		if (q.State == "" || r.State == q.State) && (q.Reason == "" || r.Failure.Reason == q.Reason) && (q.Stage == "" || r.Failure.Stage == q.Stage) &&
			(q.DocumentID == "" || r.Subject.DocumentID == q.DocumentID) && after(r.LastFailed, id, q.After) {
			out = append(out, r)
		}
	}
	l.v.letters.mu.RUnlock()
	slices.SortFunc(out, func(a, b *ledger.LetterRow) int {
		return cmp.Or(b.LastFailed.Compare(a.LastFailed), cmp.Compare(a.ID, b.ID))
	})
	return out[:min(len(out), q.Limit)], l.v.check()
}

func (l letters) Payload(_ context.Context, id string) (*api.Payload, error) {
	r := l.v.letters.get(id)
	if r == nil {
		return nil, l.v.check()
	}
	return &api.Payload{Original: r.Original, Lost: r.Lost}, nil
}
