package main

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/waymarkhq/waymark/checkpoint"
	"github.com/waymarkhq/waymark/engine"
	"github.com/waymarkhq/waymark/stage"
)

// console shows what happens, a line each.
type console struct {
	mu     sync.Mutex
	w      io.Writer
	counts map[checkpoint.Decision]int
}

func newConsole(w io.Writer) *console { return &console{w: w, counts: map[checkpoint.Decision]int{}} }

func (c *console) say(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fmt.Fprintf(c.w, format+"\n", args...) // a reader who has gone is no reason to stop
}

// decided is told by the ledger what each payment was.
func (c *console) decided(d checkpoint.Decision, p Payment) {
	c.mu.Lock()
	c.counts[d]++
	c.mu.Unlock()
	if d != checkpoint.New {
		c.say("           %s recognised: %s", d, p.ID)
	}
}

func (c *console) count(d checkpoint.Decision) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[d]
}

type nothing = stage.Result[struct{}]

func (c *console) entry(_ context.Context, m stage.Message[Entry], _ *struct{}) (nothing, error) {
	e := m.Value
	outcome := "balance " + money(e.Balance)
	if e.Available != e.Balance {
		outcome += ", available " + money(e.Available)
	}
	if e.Declined != "" {
		outcome = "declined: " + e.Declined
	}
	amount := ""
	if e.Amount > 0 {
		amount = money(e.Amount)
	}
	c.say("%-10s %-8s %10s  %s", m.Key, e.Kind, amount, outcome)
	return nothing{}, nil
}

func (c *console) alert(_ context.Context, m stage.Message[Alert], _ *struct{}) (nothing, error) {
	c.say("%-10s ALERT %s: %s", m.Key, m.Value.Rule, m.Value.Text)
	return nothing{}, nil
}

func (c *console) letter(_ context.Context, m stage.Message[[]byte], _ *struct{}) (nothing, error) {
	why := ""
	for _, h := range m.Record.Headers {
		if string(h.Key) == engine.HeaderErrorMessage {
			why = string(h.Value)
		}
	}
	c.say("%-10s dead letter: %s", m.Key, why)
	return nothing{}, nil
}
