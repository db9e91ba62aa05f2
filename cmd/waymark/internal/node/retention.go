package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waymarkhq/waymark/kafka"
)

// Records that travel between stages are deleted after kafka.StreamRetention, read or not. Half of that is worth an alarm;
// from four fifths on nothing more is accepted: what cannot be kept must not be promised (contract rule 13).
const (
	unreadAlarm   = kafka.StreamRetention / 2
	unreadRefusal = kafka.StreamRetention / 5 * 4
	unreadEvery   = time.Minute
)

// unreadError says that records will be deleted unread.
type unreadError struct {
	stage string
	age   time.Duration
}

func (e *unreadError) Error() string {
	return fmt.Sprintf("the stage %s has left a record unread for %s; it is deleted after %s", e.stage, e.age.Round(time.Hour), kafka.StreamRetention)
}

// retentionWatch looks how old the oldest unread record of each stage is.
type retentionWatch struct {
	lag    *lagReader
	reader *kafka.Reader
	log    *slog.Logger
	age    *prometheus.GaugeVec
	now    func() time.Time

	mu  sync.Mutex
	err error
}

func newRetentionWatch(lag *lagReader, reader *kafka.Reader, log *slog.Logger, r prometheus.Registerer) *retentionWatch {
	w := &retentionWatch{lag: lag, reader: reader, log: log, now: time.Now, age: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: "waymark", Name: "unread_age_seconds", Help: "Age of the oldest record that a stage has not committed; 0 if there is none."}, []string{"stage"})}
	r.MustRegister(w.age)
	return w
}

// Err is why nothing may be accepted; nil normally.
func (w *retentionWatch) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *retentionWatch) run(ctx context.Context) {
	for {
		w.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(unreadEvery):
		}
	}
}

// look asks the cluster once. What cannot be read now is looked at next time.
func (w *retentionWatch) look(ctx context.Context) {
	var refuse error
	for stage, in := range w.lag.inputs() {
		age, err := w.oldest(ctx, in.group, in.topics)
		if err != nil {
			w.log.Debug("the age of unread records is not known now", "stage", stage, "error", err)
			continue
		}
		w.age.WithLabelValues(stage).Set(age.Seconds())
		if age > unreadAlarm {
			w.log.Error("records wait unread and will be deleted", "stage", stage, "age", age.Round(time.Hour).String(), "deleted_after", kafka.StreamRetention.String())
		}
		if age > unreadRefusal {
			refuse = errors.Join(refuse, &unreadError{stage, age})
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = refuse
}

// oldest is the age of the oldest record that the group has not committed, over its topics that expire.
func (w *retentionWatch) oldest(ctx context.Context, group string, topics []string) (time.Duration, error) {
	var oldest time.Duration
	for _, topic := range topics {
		if topic == w.lag.topics.Documents || topic == w.lag.topics.DeadLetters {
			continue // they are never deleted
		}
		positions, err := w.lag.unread(group, topic)
		if err != nil {
			return 0, err
		}
		for partition, offset := range positions {
			r, err := w.reader.Read(ctx, topic, partition, offset)
			if errors.Is(err, kafka.ErrGone) {
				continue
			}
			if err != nil {
				return 0, err
			}
			oldest = max(oldest, w.now().Sub(r.Timestamp))
		}
	}
	return oldest, nil
}

// unread is the first uncommitted offset of each partition that has one.
func (l *lagReader) unread(group, topic string) (map[int32]int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	asked, err := l.partitions(topic)
	if err != nil {
		return nil, err
	}
	done, err := l.committed(group, asked)
	if err != nil {
		return nil, err
	}
	oldest, err := l.offsets(asked, sarama.OffsetOldest)
	if err != nil {
		return nil, err
	}
	ends, err := l.offsets(asked, sarama.OffsetNewest)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for p, first := range oldest[topic] {
		if b := done.GetBlock(topic, p); b != nil && b.Offset > first {
			first = b.Offset
		}
		if first < ends[topic][p] {
			out[p] = first
		}
	}
	return out, nil
}
