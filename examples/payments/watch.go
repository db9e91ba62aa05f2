package main

import (
	"context"
	"fmt"
	"time"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/stage"
)

const (
	largeAmount   = 5_000_00
	declinesInRow = 3
	declinesIn    = time.Minute
)

// Suspicion is what is remembered of an account: when payments were declined, one after the other.
type Suspicion struct {
	Declined []time.Time `json:"declined,omitempty"`
}

// SuspicionRow keeps the alerts that followed from each entry as its outcome.
type SuspicionRow = checkpoint.Row[Suspicion, []Alert]

// Watch is the stage that looks at entries for what somebody should know. The ledger sends an entry again whenever it cannot
// know that it was read; the entry has the id of its payment, so it is recognised here, and nobody is alarmed twice.
type Watch struct {
	Topics Topics
	Rules  checkpoint.Rules[Suspicion, []Alert]
}

// Handle looks at one entry.
func (w *Watch) Handle(_ context.Context, m stage.Message[Entry], row *SuspicionRow) (stage.Result[SuspicionRow], error) {
	switch {
	case m.DecodeError != nil:
		return stage.Result[SuspicionRow]{}, stage.Reject("broken_json", "an entry: %w", m.DecodeError)
	case m.Tombstone:
		return stage.Result[SuspicionRow]{}, stage.Reject("null_value", "an entry without a value")
	}
	e := m.Value
	res, err := w.Rules.Apply(row,
		checkpoint.Message{ID: e.ID, Topic: m.Record.Topic, Offset: m.Record.Offset, At: m.Record.Timestamp, Committed: m.Committed},
		func(s Suspicion) (Suspicion, []Alert, error) {
			s, alerts := s.after(e)
			return s, alerts, nil
		})
	if err != nil || !res.Decision.Emits() {
		return stage.Result[SuspicionRow]{}, err
	}
	out := stage.Result[SuspicionRow]{Row: res.Row}
	for _, a := range res.Outcome {
		out.Outputs = append(out.Outputs, w.Topics.Alerts.Record(m.Key, a))
	}
	return out, nil
}

// after returns what is suspected after an entry, and what somebody should know. It leaves s as it is. Times are those of the
// payments: by the clock on the wall a second look would see something else.
func (s Suspicion) after(e Entry) (next Suspicion, alerts []Alert) {
	if e.Declined == "" && e.Kind == kindPayment && e.Amount >= largeAmount {
		alerts = append(alerts, Alert{ID: e.ID, Rule: "large", Text: fmt.Sprintf("a payment of %s", money(e.Amount))})
	}
	if e.Declined != "insufficient_funds" {
		if e.Kind == kindPayment {
			return next, alerts
		}
		return s, alerts
	}
	for _, at := range s.Declined {
		if e.At.Sub(at) <= declinesIn {
			next.Declined = append(next.Declined, at)
		}
	}
	next.Declined = append(next.Declined, e.At)
	if n := len(next.Declined); n >= declinesInRow {
		alerts = append(alerts, Alert{ID: e.ID, Rule: "declines", Text: fmt.Sprintf("%d payments declined within %v", n, declinesIn), Count: n})
		next.Declined = nil
	}
	return next, alerts
}

// money is an amount as people write it.
func money(cents int64) string {
	sign := ""
	if cents < 0 {
		sign, cents = "-", -cents
	}
	return fmt.Sprintf("%s%d.%02d", sign, cents/100, cents%100)
}
