package main

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// later is a clock by which the time of every hold is over.
func later() time.Time { return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC) }

// ledgerKit is the ledger in the test kit: every Run also crashes at every point, and delivers again.
func ledgerKit(t testing.TB, decided func(checkpoint.Decision, Payment)) *stagetest.Kit {
	l := options{topics: topics(), holdFor: time.Minute, now: later, decided: decided}.ledger()
	l.Home = func([]byte) int32 { return 0 }
	return stagetest.New(t,
		stagetest.Input(l.Topics.Payments, l.Handle),
		stagetest.Output(l.Topics.Entries),
		stagetest.Table(rows[AccountRow](later), l.Rules.Merge),
		stagetest.Timer(l.Expiry()),
		stagetest.OnFailure(deadLetters[AccountRow]()),
	)
}

// deadLetters is the engine's failure handler as the kit calls it.
func deadLetters[R any]() stagetest.FailureHandler[R] {
	h := engine.ToDeadLetters[R](topics().DeadLetters.Name, 0)
	return func(ctx context.Context, r stage.Record, class stage.Class, err error, row *R) (stage.Result[R], error) {
		return h(ctx, engine.Failure{Group: "g", Record: r, Class: class, Err: err, Attempts: 1}, row)
	}
}

func pay(account string, p Payment) stagetest.Step {
	return stagetest.Message(topics().Payments, account, p)
}

// told are entries in short: what became of each payment.
func told(entries []Entry) string {
	var parts []string
	for _, e := range entries {
		outcome := fmt.Sprintf("%d/%d", e.Balance, e.Available)
		if e.Declined != "" {
			outcome = e.Declined
		}
		parts = append(parts, e.ID+" "+outcome)
	}
	return strings.Join(parts, ", ")
}

func TestPaymentsChangeTheBalance(t *testing.T) {
	run := ledgerKit(t, nil).Run(
		pay("ann", Payment{ID: "1", Kind: kindDeposit, Amount: 100}),
		pay("ann", Payment{ID: "2", Kind: kindPayment, Amount: 30}),
		pay("bob", Payment{ID: "2", Kind: kindPayment, Amount: 1}), // ids are scoped to the account
		pay("ann", Payment{ID: "3", Kind: kindPayment, Amount: 71}),
		pay("ann", Payment{ID: "4", Kind: kindPayment, Amount: 70}),
	)
	want := "1 100/100, 2 70/70, 2 insufficient_funds, 3 insufficient_funds, 4 0/0"
	if got := told(stagetest.Sent(run, topics().Entries)); got != want {
		t.Errorf("entries: %s\nwant:    %s", got, want)
	}
	if row := stagetest.Row[AccountRow](run, "ann"); row.State.Balance != 0 || row.Count != 4 {
		t.Errorf("the row is %+v", row)
	}
}

func TestAPaymentThatIsSentAgainCountsOnce(t *testing.T) {
	counts := map[checkpoint.Decision]int{}
	p := Payment{ID: "1", Kind: kindDeposit, Amount: 100}
	run := ledgerKit(t, func(d checkpoint.Decision, _ Payment) { counts[d]++ }).Run(pay("ann", p), pay("ann", p), pay("ann", p))
	if got := told(stagetest.Sent(run, topics().Entries)); got != "1 100/100" {
		t.Errorf("entries: %s", got)
	}
	if counts[checkpoint.Duplicate] == 0 || counts[checkpoint.Redelivery] == 0 {
		t.Errorf("decided %v", counts)
	}
}

func TestHoldsReserveAndEnd(t *testing.T) {
	run := ledgerKit(t, nil).Run(
		pay("ann", Payment{ID: "1", Kind: kindDeposit, Amount: 100}),
		pay("ann", Payment{ID: "h1", Kind: kindHold, Amount: 60}),
		pay("ann", Payment{ID: "h2", Kind: kindHold, Amount: 30}),
		pay("ann", Payment{ID: "2", Kind: kindPayment, Amount: 11}),
		pay("ann", Payment{ID: "c", Kind: kindCapture, Hold: "h1"}),
		pay("ann", Payment{ID: "c2", Kind: kindCapture, Hold: "h1"}),
	)
	entries := stagetest.Sent(run, topics().Entries)
	last := entries[len(entries)-1]
	if last.Kind != kindRelease || last.Hold != "h2" || last.Available != 40 {
		t.Errorf("the timer has led to %+v", last)
	}
	want := "1 100/100, h1 100/40, h2 100/10, 2 insufficient_funds, c 40/10, c2 no_such_hold"
	if got := told(entries[:len(entries)-1]); got != want {
		t.Errorf("entries: %s\nwant:    %s", got, want)
	}
	if row := stagetest.Row[AccountRow](run, "ann"); !reflect.DeepEqual(row.State, Account{Balance: 40}) {
		t.Errorf("the account is %+v", row.State)
	}
}

// A hold that is not due stays, and the row says when it will be.
func TestHoldsAreDueInTheirOrder(t *testing.T) {
	l := options{topics: topics(), now: later}.ledger()
	row := &AccountRow{State: Account{Holds: map[string]Hold{"past": {1, later()}, "future": {1, later().Add(time.Hour)}}}}
	if next, ok := l.Expiry().Next(row); !ok || !next.Equal(later()) {
		t.Errorf("due at %v, %v", next, ok)
	}
	outs, err := l.Expiry().Fire(t.Context(), "ann", row, nil)
	if err != nil || len(outs) != 1 || !strings.Contains(string(outs[0].Value), `"hold":"past"`) || string(outs[0].Key) != "ann" {
		t.Errorf("fired %v, %v", outs, err)
	}
	if _, ok := l.Expiry().Next(&AccountRow{}); ok {
		t.Error("an account without holds is due")
	}
}

func TestWhatIsNoPaymentGoesToTheDeadLetters(t *testing.T) {
	raw := func(value string) stagetest.Step {
		return stagetest.Raw(stage.Record{Topic: topics().Payments.Name, Key: []byte("ann"), Value: []byte(value)})
	}
	steps := []stagetest.Step{
		raw(`hello?`), raw(`{"id":"1","kind":"deposit","amuont":1}`), raw(`{"id":"1","kind":"deposit","amount":1}{}`),
		raw(`{"id":"1","kind":"gift","amount":1}`), raw(`{"kind":"deposit","amount":1}`), raw(`{"id":"1","kind":"deposit","amount":0}`),
		raw(`{"id":"1","kind":"deposit","amount":100000000001}`), raw(`{"id":"1","kind":"capture"}`),
		raw(`{"id":"release of h at 1","kind":"deposit","amount":1}`), raw(`{"id":"1","kind":"release","hold":"h"}`),
		stagetest.Raw(stage.Record{Topic: topics().Payments.Name, Key: []byte("ann")}),
		stagetest.Raw(stage.Record{Topic: topics().Payments.Name, Value: []byte(`{"id":"1","kind":"deposit","amount":1}`)}),
	}
	run := ledgerKit(t, nil).Run(append(steps, pay("ann", Payment{ID: "1", Kind: kindDeposit, Amount: 5}))...)
	outs := run.Outputs()
	if len(outs) != len(steps)+1 {
		t.Fatalf("%d records, want %d dead letters and an entry", len(outs), len(steps))
	}
	for i, out := range outs[:len(steps)] {
		if back, err := engine.OriginalOf(stage.Record{Key: out.Key, Value: out.Value, Headers: out.Headers}); err != nil || out.Topic != topics().DeadLetters.Name || back.Topic != topics().Payments.Name {
			t.Errorf("record %d is %+v: %v", i, out, err)
		}
	}
	if got := told(stagetest.Sent(run, topics().Entries)); got != "1 5/5" {
		t.Errorf("entries: %s", got)
	}
}

// A record that another partitioner has put elsewhere goes to the partition where its account's row is.
func TestAPaymentInAForeignPartitionIsForwarded(t *testing.T) {
	run := ledgerKit(t, nil).Run(pay("ann", Payment{ID: "1", Kind: kindDeposit, Amount: 5}).On(3))
	outs := run.Outputs()
	if len(outs) != 1 || outs[0].Topic != topics().Payments.Name || string(outs[0].Key) != "ann" || stagetest.Row[AccountRow](run, "ann") != nil {
		t.Errorf("sent %v, row %v", outs, stagetest.Row[AccountRow](run, "ann"))
	}
}

// Whatever is sent, in whatever order and how often: no account goes below zero, and crashes change nothing (the kit sees to
// that).
func TestNoAccountGoesBelowZero(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var steps []stagetest.Step
		for range rapid.IntRange(1, 5).Draw(rt, "payments") {
			steps = append(steps, pay(rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "account"), Payment{
				ID:     rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "id"),
				Kind:   rapid.SampledFrom([]string{kindDeposit, kindDeposit, kindPayment, kindHold, kindCapture}).Draw(rt, "kind"),
				Amount: int64(rapid.IntRange(1, 3).Draw(rt, "amount")),
				Hold:   rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "hold")}))
		}
		run := ledgerKit(t, nil).Run(steps...)
		for _, e := range stagetest.Sent(run, topics().Entries) {
			if e.Balance < 0 || e.Available < 0 || e.Available > e.Balance {
				rt.Fatalf("after %s the balance is %d, of which %d is available", e.ID, e.Balance, e.Available)
			}
		}
		if t.Failed() {
			rt.FailNow()
		}
	})
}
