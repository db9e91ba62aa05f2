package main

import (
	"errors"
	"time"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// Topics of the application.
type Topics struct {
	Payments    stage.Topic[Payment] // key: account
	Entries     stage.Topic[Entry]   // key: account
	Alerts      stage.Topic[Alert]   // key: account
	DeadLetters stage.Topic[[]byte]  // payments that cannot be understood, as they were
}

func topics() Topics {
	return Topics{
		Payments:    stage.Topic[Payment]{Name: "payments", Codec: jsonCodec[Payment]{}},
		Entries:     stage.Topic[Entry]{Name: "payments.entries", Codec: jsonCodec[Entry]{}},
		Alerts:      stage.Topic[Alert]{Name: "payments.alerts", Codec: jsonCodec[Alert]{}},
		DeadLetters: stage.Topic[[]byte]{Name: "payments.dead-letters", Codec: rawCodec{}},
	}
}

const partitions = 4

// options of the application.
type options struct {
	topics  Topics
	holdFor time.Duration
	now     func() time.Time
	decided func(checkpoint.Decision, Payment)
	console *console
}

func (o options) ledger() *Ledger {
	return &Ledger{Topics: o.topics, Rules: checkpoint.Rules[Account, Entry]{Now: o.now}, HoldFor: o.holdFor, Now: o.now, Decided: o.decided,
		Home: func(key []byte) int32 { return kafka.PartitionOf(key, partitions) }}
}

func (o options) watch() *Watch {
	return &Watch{Topics: o.topics, Rules: checkpoint.Rules[Suspicion, []Alert]{Now: o.now}}
}

// groups are the whole application:
//
//	payments ──> [ledger] ── entries ──> [watch] ── alerts ──> [console]
//	   ^  release    │
//	   └─────────────┴── dead-letters
func groups(o options) ([]*engine.Group, error) {
	t, l, w := o.topics, o.ledger(), o.watch()
	ledger, ledgerErr := engine.NewGroup("payments-ledger",
		engine.Input(t.Payments, l.Handle),
		engine.Output(t.Entries),
		engine.Output(t.DeadLetters),
		engine.Table(engine.Irreplaceable(rows[AccountRow](o.now)), l.Rules.Merge),
		engine.Timer(l.Expiry()),
		engine.OnFailure(engine.ToDeadLetters[AccountRow](t.DeadLetters.Name, kafka.MaxRecordBytes)),
	)
	watch, watchErr := engine.NewGroup("payments-watch",
		engine.Input(t.Entries, w.Handle),
		engine.Output(t.Alerts),
		engine.Output(t.DeadLetters),
		engine.Table(rows[SuspicionRow](o.now), w.Rules.Merge),
		engine.OnFailure(engine.ToDeadLetters[SuspicionRow](t.DeadLetters.Name, kafka.MaxRecordBytes)),
	)
	console, consoleErr := engine.NewGroup("payments-console", // has no table: it may say a thing twice
		engine.Input(t.Entries, o.console.entry),
		engine.Input(t.Alerts, o.console.alert),
		engine.Input(t.DeadLetters, o.console.letter),
	)
	return []*engine.Group{ledger, watch, console}, errors.Join(ledgerErr, watchErr, consoleErr)
}

// plan lists the topics that the groups need.
func plan(embedded bool, groups []*engine.Group) ([]kafka.TopicSpec, error) {
	o := engine.TopicOptions{Partitions: partitions, Replication: 3, Embedded: embedded, Forever: []string{topics().DeadLetters.Name}}
	if embedded {
		o.Replication = 1
	}
	return engine.TopicPlan(o, groups...)
}
