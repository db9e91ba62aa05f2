package main

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/stage"
)

// Account is the state of an account. It is a function of the log: it follows from the account's payments in their order.
type Account struct {
	Balance int64           `json:"balance"`
	Holds   map[string]Hold `json:"holds,omitempty"`
}

// Hold is an amount that is reserved.
type Hold struct {
	Amount int64     `json:"amount"`
	Until  time.Time `json:"until"`
}

// maxHolds bounds the row of an account.
const maxHolds = 100

// AccountRow is the ledger's row: the account, and the payments that it came from with what became of them.
type AccountRow = checkpoint.Row[Account, Entry]

// Ledger is the stage that keeps the accounts.
type Ledger struct {
	Topics  Topics
	Rules   checkpoint.Rules[Account, Entry]
	HoldFor time.Duration
	// Home is the partition of a key.
	Home func(key []byte) int32
	Now  func() time.Time
	// Decided is told what each payment was; it may be nil.
	Decided func(checkpoint.Decision, Payment)
}

// Handle applies a payment to its account.
func (l *Ledger) Handle(_ context.Context, m stage.Message[Payment], row *AccountRow) (stage.Result[AccountRow], error) {
	switch {
	case m.Record.Key == nil:
		return stage.Result[AccountRow]{}, stage.Reject("no_account", "a payment without a key")
	case m.DecodeError != nil:
		return stage.Result[AccountRow]{}, stage.Reject("broken_json", "a payment: %w", m.DecodeError)
	case m.Tombstone:
		return stage.Result[AccountRow]{}, stage.Reject("null_value", "a payment without a value")
	}
	if err := m.Value.check(); err != nil {
		return stage.Result[AccountRow]{}, stage.Reject("invalid_payment", "%w", err)
	}
	if l.Home(m.Record.Key) != m.Record.Partition {
		// A producer with another partitioner wrote it. Its account's row is in another partition: that is where it goes.
		return stage.Result[AccountRow]{Outputs: []stage.Output{{Topic: m.Record.Topic, Key: m.Record.Key, Value: m.Record.Value, Headers: m.Record.Headers}}}, nil
	}
	p := m.Value
	res, err := l.Rules.Apply(row,
		checkpoint.Message{ID: p.ID, Topic: m.Record.Topic, Offset: m.Record.Offset, At: m.Record.Timestamp, Committed: m.Committed},
		func(a Account) (Account, Entry, error) {
			a, declined := a.apply(p, m.Record.Timestamp.Add(l.HoldFor))
			e := Entry{ID: p.ID, Kind: p.Kind, Amount: p.Amount, Hold: p.Hold, Declined: declined,
				Balance: a.Balance, Available: a.available(), At: m.Record.Timestamp.UTC()}
			return a, e, nil
		})
	if err != nil {
		return stage.Result[AccountRow]{}, err
	}
	if l.Decided != nil {
		l.Decided(res.Decision, p)
	}
	if !res.Decision.Emits() {
		return stage.Result[AccountRow]{}, nil
	}
	return stage.Result[AccountRow]{Outputs: []stage.Output{l.Topics.Entries.Record(m.Key, res.Outcome)}, Row: res.Row}, nil
}

// apply returns the account after a payment, or why the payment is declined. It leaves a as it is.
func (a Account) apply(p Payment, until time.Time) (next Account, declined string) {
	hold, held := a.Holds[p.Hold]
	switch {
	case p.Kind == kindDeposit && a.Balance > maxAmount*1000:
		return a, "balance_limit"
	case (p.Kind == kindPayment || p.Kind == kindHold) && a.available() < p.Amount:
		return a, "insufficient_funds"
	case p.Kind == kindHold && len(a.Holds) >= maxHolds:
		return a, "too_many_holds"
	case (p.Kind == kindCapture || p.Kind == kindRelease) && !held:
		return a, "no_such_hold"
	}
	a.Holds = maps.Clone(a.Holds)
	switch p.Kind {
	case kindDeposit:
		a.Balance += p.Amount
	case kindPayment:
		a.Balance -= p.Amount
	case kindHold:
		if a.Holds == nil {
			a.Holds = map[string]Hold{}
		}
		a.Holds[p.ID] = Hold{Amount: p.Amount, Until: until.UTC()}
	case kindCapture:
		a.Balance -= hold.Amount
		delete(a.Holds, p.Hold)
	case kindRelease:
		delete(a.Holds, p.Hold)
	}
	if len(a.Holds) == 0 {
		a.Holds = nil // as it is read back
	}
	return a, ""
}

func (a Account) available() int64 {
	n := a.Balance
	for _, h := range a.Holds {
		n -= h.Amount
	}
	return n
}

// Expiry releases holds whose time is over. It changes nothing itself: it sends a payment that does, to the ledger's own
// input, so that the order of the log decides between a release and a capture. It may fire twice; the second release has the
// id of the first, and is recognised.
func (l *Ledger) Expiry() stage.Timer[AccountRow] {
	return stage.Timer[AccountRow]{
		Next: func(row *AccountRow) (next time.Time, ok bool) {
			for _, h := range row.State.Holds {
				if !ok || h.Until.Before(next) {
					next, ok = h.Until, true
				}
			}
			return next, ok
		},
		Fire: func(_ context.Context, account string, row *AccountRow, _ func() bool) (outs []stage.Output, err error) {
			for _, id := range slices.Sorted(maps.Keys(row.State.Holds)) {
				if until := row.State.Holds[id].Until; !until.After(l.Now()) {
					outs = append(outs, l.Topics.Payments.Record(account, release(id, until)))
				}
			}
			return outs, nil
		},
	}
}
