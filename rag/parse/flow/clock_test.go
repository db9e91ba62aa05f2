package flow_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/waymarkhq/waymark/rag/parse/flow"
)

func TestClocksCountWhatIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		outer, stop := flow.WithTime(t.Context(), 10*time.Second)
		defer stop()
		inner, stop := flow.WithTime(context.WithValue(outer, t, "between"), 12*time.Second)
		defer stop()
		child, cancel := context.WithCancel(inner)
		defer cancel()
		<-time.After(4 * time.Second)
		one, two := flow.Hold(child), flow.Hold(inner)
		<-time.After(time.Minute)
		one()
		<-time.After(time.Minute)
		two()
		if inner.Err() != nil || outer.Err() != nil {
			t.Fatalf("ended while they were held: %v, %v", inner.Err(), outer.Err())
		}
		<-child.Done()
		if took := time.Since(start); took != 2*time.Minute+10*time.Second {
			t.Errorf("ended after %v", took)
		}
		for name, ctx := range map[string]context.Context{"outer": outer, "inner": inner, "child": child} {
			if ctx.Err() != context.DeadlineExceeded {
				t.Errorf("%s: %v", name, ctx.Err())
			}
		}
		flow.Hold(child)() // of what has ended, and of what has no clock
		flow.Hold(t.Context())()
	})
}

func TestHeldClocksEndWithTheirCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, end := context.WithCancel(t.Context())
		ctx, stop := flow.WithTime(caller, time.Second)
		defer stop()
		release := flow.Hold(ctx)
		end()
		<-ctx.Done()
		release()
		<-time.After(time.Minute)
		if ctx.Err() != context.Canceled {
			t.Errorf("held: %v", ctx.Err())
		}
		late, stop := flow.WithTime(caller, time.Second)
		defer stop()
		if late.Err() != context.Canceled {
			t.Errorf("begun too late: %v", late.Err())
		}
		own, stop := flow.WithTime(t.Context(), time.Second)
		stop()
		if own.Err() != context.Canceled {
			t.Errorf("stopped: %v", own.Err())
		}
	})
}
