package node

import (
	"context"
	"log/slog"
	"time"
)

// wait says for how long something that starts beside this process is waited for, and how often it is asked for.
type wait struct {
	what            string // as the log names it
	patience, every time.Duration
}

// await calls try until it succeeds, does not want to be called again, or no patience is left. It returns what try said last;
// a try that was cut off because the patience had ended says nothing of why, so that the one before it is returned.
func await(ctx context.Context, log *slog.Logger, w wait, try func(context.Context) (retry bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, w.patience)
	defer cancel()
	var last error
	for {
		retry, err := try(ctx)
		switch {
		case err == nil || !retry:
			return err
		case last == nil:
			log.Warn("waiting for "+w.what, "error", err, "patience", w.patience.String())
		case ctx.Err() != nil:
			return last
		}
		last = err
		select {
		case <-ctx.Done():
			return last
		case <-time.After(w.every):
		}
	}
}
