package node

import (
	"context"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/api"
	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/pipeline"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/views"
)

// nodeViews are the three views behind the API.
type nodeViews struct {
	documents *views.Documents
	messages  *views.Messages
	letters   *views.Letters
}

// startViews opens the views; they are not ready until they have recovered.
func (n *Node) startViews(ctx context.Context) {
	t := pipeline.Topics(n.topics, fault.Now)
	o := views.Options{Kafka: n.kafka, Dir: n.path("views"), MaxOffline: maxTableOffline, Log: n.log.With("part", "views")}
	expiring := o
	expiring.Expiry = &kafka.Expiry{After: kafka.TrackerRetention, WrittenAt: codecs.WrittenAt}
	v := &nodeViews{
		documents: views.NewDocuments(o, t.IndexerTable, ledger.MergeDocumentRow),
		messages:  views.NewMessages(expiring, t.TrackerTable, ledger.MergeTrackerRow),
		letters:   views.NewLetters(o, t.DeadLettersTable, ledger.MergeLetterRow),
	}
	n.views = v
	for _, run := range []func(context.Context) error{v.documents.Run, v.messages.Run, v.letters.Run} {
		n.running.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				n.failed <- err
			}
		})
	}
}

// ready is nil once all views answer; also where there are none.
func (v *nodeViews) ready() error {
	if v == nil {
		return nil
	}
	for _, ready := range []func() error{v.documents.Ready, v.messages.Ready, v.letters.Ready} {
		if err := ready(); err != nil {
			return err
		}
	}
	return nil
}

// behind is the reason why answers would be too old: Kafka is away, or the views do not keep up. nil normally.
func (v *nodeViews) behind(ctx context.Context, limit time.Duration) error {
	if v == nil || v.ready() != nil {
		return nil
	}
	lag, err := v.documents.Lag(ctx)
	if err != nil || lag <= limit {
		return err
	}
	return fmt.Errorf("the view of the documents is %s behind the log, or Kafka does not say", lag.Round(time.Second))
}

// documents reads rows and what is served in the API's terms.
type documents struct{ *views.Documents }

// Snapshot fixes what is served now.
func (d documents) Snapshot(context.Context) (api.Snapshot, error) {
	s, err := d.Documents.Snapshot()
	if err != nil {
		return nil, err
	}
	return s, nil
}

// documentLister lists documents in the API's terms.
type documentLister struct{ v *views.Documents }

// List returns a page of documents.
func (d documentLister) List(ctx context.Context, q api.DocumentQuery) ([]api.DocumentEntry, error) {
	entries, err := d.v.List(ctx, views.DocumentQuery{Status: q.Status, After: views.Mark(q.After), Limit: q.Limit})
	out := make([]api.DocumentEntry, len(entries))
	for i, e := range entries {
		out[i] = api.DocumentEntry(e)
	}
	return out, err
}

// messages finds timelines in the API's terms.
type messages struct{ v *views.Messages }

// Get returns the timelines of a message id, of one document or of all that used it.
func (m messages) Get(ctx context.Context, messageID, documentID string) ([]*ledger.TrackerRow, error) {
	if documentID == "" {
		return m.v.Find(ctx, messageID)
	}
	row, err := m.v.Get(ctx, documentID, messageID)
	if row == nil || err != nil {
		return nil, err
	}
	return []*ledger.TrackerRow{row}, nil
}

// letters lists dead letters in the API's terms.
type letters struct{ v *views.Letters }

// List returns a page of letters.
func (l letters) List(ctx context.Context, q api.LetterQuery) ([]*ledger.LetterRow, error) {
	return l.v.List(ctx, views.LetterQuery{State: q.State, Stage: q.Stage, Reason: q.Reason, DocumentID: q.DocumentID,
		Since: q.Since, Until: q.Until, After: views.Mark(q.After), Limit: q.Limit})
}

// Payload is the record of a letter, byte for byte.
func (l letters) Payload(ctx context.Context, id string) (*api.Payload, error) {
	row, err := l.v.Get(ctx, id)
	if row == nil || err != nil {
		return nil, err
	}
	return &api.Payload{Original: row.Original, Lost: row.Lost}, nil
}
