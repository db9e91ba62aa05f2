package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/stage/stagetest"
)

func watchKit(t testing.TB) *stagetest.Kit {
	w := options{topics: topics(), now: later}.watch()
	return stagetest.New(t,
		stagetest.Input(w.Topics.Entries, w.Handle),
		stagetest.Output(w.Topics.Alerts),
		stagetest.Table(rows[SuspicionRow](later), w.Rules.Merge),
		stagetest.OnFailure(deadLetters[SuspicionRow]()),
	)
}

func TestAlerts(t *testing.T) {
	declined := func(id string, second int) Entry {
		return Entry{ID: id, Kind: kindPayment, Amount: 1, Declined: "insufficient_funds", At: later().Add(time.Duration(second) * time.Second)}
	}
	paid := func(id string, amount int64) Entry {
		return Entry{ID: id, Kind: kindPayment, Amount: amount, At: later()}
	}
	for _, c := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"three declines in a minute", []Entry{declined("1", 0), declined("2", 30), declined("3", 60)}, "3 declines"},
		{"too slow", []Entry{declined("1", 0), declined("2", 30), declined("3", 61)}, ""},
		{"too slow at first", []Entry{declined("1", 0), declined("2", 30), declined("3", 61), declined("4", 62)}, "4 declines"},
		{"one that was paid between", []Entry{declined("1", 0), declined("2", 1), paid("x", 1), declined("3", 2)}, ""},
		{"a deposit between", []Entry{declined("1", 0), declined("2", 1), {ID: "x", Kind: kindDeposit, At: later()}, declined("3", 2)}, "3 declines"},
		{"it begins again after an alert", []Entry{declined("1", 0), declined("2", 1), declined("3", 2), declined("4", 3), declined("5", 4), declined("6", 5)}, "3 declines, 6 declines"},
		{"entries that the ledger sends again", []Entry{declined("1", 0), declined("2", 1), declined("1", 0), declined("2", 1)}, ""},
		{"a large one", []Entry{paid("1", largeAmount), paid("2", largeAmount-1)}, "1 large"},
		{"a large one that comes again", []Entry{paid("1", largeAmount), paid("1", largeAmount)}, "1 large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var steps []stagetest.Step
			for _, e := range c.entries {
				steps = append(steps, stagetest.Message(topics().Entries, "ann", e))
			}
			var got []string
			for _, a := range stagetest.Sent(watchKit(t).Run(steps...), topics().Alerts) {
				got = append(got, fmt.Sprint(a.ID, " ", a.Rule))
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("alerts %q, want %q", got, c.want)
			}
		})
	}
}
