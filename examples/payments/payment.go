package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/codecs"
	"github.com/waymarkhq/waymark/stage"
)

// Kinds of payments.
const (
	kindDeposit = "deposit"
	kindPayment = "payment"
	kindHold    = "hold"    // reserves an amount for some time
	kindCapture = "capture" // takes what a hold has reserved
	kindRelease = "release" // ends a hold; the ledger's timer sends it when the time is over
)

// Payment is a record of the topic payments; its key is the account.
type Payment struct {
	// ID names the payment within its account. Whoever is not sure that it arrived sends it again under the same id.
	ID     string `json:"id"`
	Kind   string `json:"kind"`
	Amount int64  `json:"amount,omitempty"` // in cents: of deposit, payment and hold
	Hold   string `json:"hold,omitempty"`   // the id of the hold: of capture and release
}

// maxAmount keeps sums far away from overflow.
const maxAmount = 1_000_000_000_00

// check refuses what no account could make sense of.
func (p Payment) check() error {
	switch p.Kind {
	case kindDeposit, kindPayment, kindHold:
		if p.Amount < 1 || p.Amount > maxAmount {
			return fmt.Errorf("amount: %d is not between 1 and %d cents", p.Amount, int64(maxAmount))
		}
	case kindCapture, kindRelease:
		if p.Hold == "" {
			return errors.New("hold: is missing")
		}
	default:
		return fmt.Errorf("kind: %q is unknown", p.Kind)
	}
	switch {
	case p.ID == "":
		return errors.New("id: is missing")
	case strings.HasPrefix(p.ID, releasePrefix) != (p.Kind == kindRelease):
		return fmt.Errorf("id: %q is not one for a %s: ids of releases are the ledger's", p.ID, p.Kind)
	}
	return nil
}

const releasePrefix = "release of "

// release ends a hold whose time is over. Its id is the same however often it is sent, and nobody else's.
func release(hold string, until time.Time) Payment {
	return Payment{ID: fmt.Sprintf("%s%s at %d", releasePrefix, hold, until.UnixMilli()), Kind: kindRelease, Hold: hold}
}

// Entry is a record of the topic entries: what became of a payment.
type Entry struct {
	ID        string    `json:"id"` // of the payment
	Kind      string    `json:"kind"`
	Amount    int64     `json:"amount"`
	Hold      string    `json:"hold,omitempty"`
	Declined  string    `json:"declined,omitempty"` // why; empty: it was accepted
	Balance   int64     `json:"balance"`            // after it
	Available int64     `json:"available"`          // the balance without what is on hold
	At        time.Time `json:"at"`                 // of the payment
}

// Alert is a record of the topic alerts.
type Alert struct {
	ID    string `json:"id"` // of the payment that caused it
	Rule  string `json:"rule"`
	Text  string `json:"text"`
	Count int    `json:"count,omitempty"`
}

// jsonCodec writes values as plain JSON, for topics that others write to and read. Unknown fields are refused: a misspelt
// "amuont" must not become a payment of nothing.
type jsonCodec[T any] struct{}

func (jsonCodec[T]) Encode(v T) ([]byte, error) { return json.Marshal(v) }

func (jsonCodec[T]) Decode(b []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, err
	}
	if d.More() {
		return v, errors.New("something stands behind the value")
	}
	return v, nil
}

// rawCodec leaves values as they are.
type rawCodec struct{}

func (rawCodec) Encode(b []byte) ([]byte, error) { return b, nil }
func (rawCodec) Decode(b []byte) ([]byte, error) { return bytes.Clone(b), nil }

// rows are JSON in the framework's envelope, which tells formats and damaged bytes apart.
func rows[R any](now func() time.Time) stage.Codec[R] {
	return codecs.New(1, now,
		func(r R) ([]byte, error) { return json.Marshal(r) },
		func(b []byte) (r R, err error) { err = json.Unmarshal(b, &r); return r, err })
}
