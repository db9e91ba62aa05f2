package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/kafka"
)

// report is what the topics of results say.
type report struct {
	balances map[string]int64
	outcomes map[string]Entry // by account and payment
	alerts   map[string]Alert // by account, payment and rule
	letters  map[string]int   // by account and value
}

// read reads all of them from the beginning.
func read(ctx context.Context, r *kafka.Reader, t Topics) (report, error) {
	rep := report{balances: map[string]int64{}, outcomes: map[string]Entry{}, alerts: map[string]Alert{}, letters: map[string]int{}}
	each := func(topic string, do func(rec kafka.Record) error) error {
		n, err := r.Partitions(ctx, topic)
		for p := int32(0); p < n && err == nil; p++ {
			err = r.Each(ctx, topic, p, do)
		}
		return err
	}
	if err := each(t.Entries.Name, func(rec kafka.Record) error {
		var e Entry
		if err := json.Unmarshal(rec.Value, &e); err != nil {
			return fmt.Errorf("an entry of %s: %w", rec.Key, err)
		}
		rep.balances[string(rec.Key)] = e.Balance
		rep.outcomes[name(rec.Key, e.ID)] = e
		return nil
	}); err != nil {
		return rep, err
	}
	if err := each(t.Alerts.Name, func(rec kafka.Record) error {
		var a Alert
		if err := json.Unmarshal(rec.Value, &a); err != nil {
			return fmt.Errorf("an alert of %s: %w", rec.Key, err)
		}
		rep.alerts[name(rec.Key, a.ID+"/"+a.Rule)] = a
		return nil
	}); err != nil {
		return rep, err
	}
	return rep, each(t.DeadLetters.Name, func(rec kafka.Record) error {
		rep.letters[name(rec.Key, string(rec.Value))]++
		return nil
	})
}

func name(account []byte, id string) string { return string(account) + "/" + id }

// missing says what has not come to its end: a record of the script without an outcome, or a hold that still holds.
func (r report) missing(sent []kafka.Record) (what []string) {
	for _, rec := range sent {
		if r.letters[name(rec.Key, string(rec.Value))] > 0 {
			continue
		}
		var p Payment
		if err := json.Unmarshal(rec.Value, &p); err != nil {
			what = append(what, "the dead letter of "+string(rec.Value))
			continue
		}
		if _, ok := r.outcomes[name(rec.Key, p.ID)]; !ok {
			what = append(what, "the outcome of "+name(rec.Key, p.ID))
		}
	}
	ended := map[string]bool{}
	for key, e := range r.outcomes {
		if account, _, _ := strings.Cut(key, "/"); e.Hold != "" && e.Declined == "" {
			ended[name([]byte(account), e.Hold)] = true
		}
	}
	for key, e := range r.outcomes {
		if e.Kind == kindHold && e.Declined == "" && !ended[key] {
			what = append(what, "the end of the hold "+key)
		}
	}
	slices.Sort(what)
	return what
}

func (r report) String() string {
	var b strings.Builder
	for _, account := range slices.Sorted(maps.Keys(r.balances)) {
		fmt.Fprintf(&b, "  %-8s %10s\n", account, money(r.balances[account]))
	}
	return b.String()
}
