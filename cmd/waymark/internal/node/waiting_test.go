package node

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

// What a process waited for in vain is said, also when its last question was cut off by the end of the waiting.
func TestWaitingInVainSaysForWhat(t *testing.T) {
	missing := errors.New("the topic is missing")
	for _, c := range []struct {
		name  string
		takes time.Duration // how long one question takes
		want  error
	}{
		{"between two questions", 0, missing},
		{"in a question", 700 * time.Millisecond, missing},
		{"in the first question", time.Hour, context.DeadlineExceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, asked := time.Now(), 0
				err := await(t.Context(), slog.New(slog.DiscardHandler), wait{"a topic", 30 * time.Second, 200 * time.Millisecond}, func(ctx context.Context) (bool, error) {
					asked++
					select {
					case <-ctx.Done():
						return true, ctx.Err()
					case <-time.After(c.takes):
						return true, missing
					}
				})
				if !errors.Is(err, c.want) {
					t.Errorf("after %d questions: %v", asked, err)
				}
				if waited := time.Since(began); waited != 30*time.Second {
					t.Errorf("it waited %s", waited)
				}
			})
		})
	}
}

// What no waiting can mend ends it at once, and so does success.
func TestWaitingEndsWhenItIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, final := range []error{nil, errors.New("the key is wrong")} {
			began, asked := time.Now(), 0
			err := await(t.Context(), slog.New(slog.DiscardHandler), wait{"a service", time.Minute, time.Second}, func(context.Context) (bool, error) {
				if asked++; asked < 3 {
					return true, errors.New("not yet")
				}
				return false, final
			})
			if !errors.Is(err, final) || asked != 3 || time.Since(began) != 2*time.Second {
				t.Errorf("%v after %d questions and %s", err, asked, time.Since(began))
			}
		}
	})
}
