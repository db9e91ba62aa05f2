package pipeline_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/pipeline"
)

// Blobs are looked through soon after a process became the one that does it, so that one that lives for less than a day does
// it too. A look that fails is tried again the next time.
func TestCollectBlobs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var waits []time.Duration
	var log bytes.Buffer
	looks := 0
	p := pipeline.New(pipeline.Options{
		After: func(d time.Duration) <-chan time.Time {
			waits = append(waits, d)
			now := make(chan time.Time, 1)
			now <- time.Now()
			return now
		},
		Now: time.Now, CollectEvery: 24 * time.Hour, Jitter: func() float64 { return 0.5 },
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		CollectBlobs: func(ctx context.Context) error {
			looks++
			switch looks {
			case 1, 2:
				return errors.New("the store is away")
			case 4: // the partition is lost
				cancel()
				return ctx.Err()
			}
			return nil
		},
	})
	if err := p.Collect(ctx, 1); err != nil || len(waits) > 0 {
		t.Errorf("another partition: waits %v, %v", waits, err)
	}
	if err := p.Collect(ctx, 0); err != nil {
		t.Error(err)
	}
	if len(waits) < 4 || waits[0] != 12*time.Minute+30*time.Second || waits[1] != 24*time.Hour || waits[3] != 24*time.Hour {
		t.Errorf("waits %v", waits)
	}
	if looks != 4 || strings.Count(log.String(), "the store is away") != 2 || strings.Count(log.String(), "\n") != 2 {
		t.Errorf("%d looks, log %s", looks, log.String())
	}
}
