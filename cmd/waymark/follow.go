package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
	"github.com/waymarkhq/waymark/rag"
)

const (
	// patience is how long one call of a job is repeated while the API is away or overloaded.
	patience = 2 * time.Minute
	// noteworthy is the wait from which on a person is told of it where there is no progress bar.
	noteworthy = 5 * time.Second
)

var errTimeout = errors.New("the time is over")

// waitFlags are the flags of commands that follow documents to their final status.
type waitFlags struct {
	Wait    bool          `negatable:"" default:"true" help:"Wait until each document has its final status. Default; --no-wait ends once all are accepted."`
	Timeout time.Duration `placeholder:"DURATION" help:"Give up waiting after this time, e.g. 10m. Default: never."`
}

// follower runs jobs and shows them: a progress bar on a terminal, a line for each failure, a summary.
type follower struct {
	env   *environment
	label string
	wait  waitFlags
	// waiting is why calls are being repeated, "" while they are not.
	waiting atomic.Value
}

func newFollower(env *environment, label string, wait waitFlags) *follower {
	f := &follower{env: env, label: label, wait: wait}
	f.waiting.Store("")
	return f
}

// retry is the patience of the client that the jobs use.
func (f *follower) retry() client.Retry {
	return client.Retry{For: patience, Unreachable: true, Notify: func(err error, wait time.Duration) {
		f.waiting.Store("waiting: " + shortReason(err))
		if wait >= noteworthy {
			f.env.log.Warn("the API cannot go on; trying again", "after", wait.String(), "error", err)
		}
	}}
}

func shortReason(err error) string {
	var e *client.Error
	if errors.As(err, &e) {
		return e.Title
	}
	return "no answer"
}

// job is the configuration of a job that reports here.
func (f *follower) job(api ingest.API) ingest.Config {
	return ingest.Config{
		API: &noticing{API: api, f: f}, NoWait: !f.wait.Wait, Stdin: f.env.stdin, Concurrency: 8, Count: f.env.console.Live(), Report: f.report,
	}
}

// noticing takes the waiting note away once a call has been answered.
type noticing struct {
	ingest.API
	f *follower
}

// Wait is the call that a job makes all the time.
func (n *noticing) Wait(ctx context.Context, keys []client.WaitFor, atMost time.Duration) (client.WaitResult, error) {
	result, err := n.API.Wait(ctx, keys, atMost)
	n.f.waiting.Store("")
	return result, err
}

// Upload is the other one.
func (n *noticing) Upload(ctx context.Context, u client.Upload) (client.Accepted, error) {
	accepted, err := n.API.Upload(ctx, u)
	n.f.waiting.Store("")
	return accepted, err
}

// report shows an outcome: all of them as JSON, the failures otherwise.
func (f *follower) report(o ingest.Outcome) {
	switch {
	case f.env.globals.JSON:
		// An outcome is made of texts and numbers: it can always be written.
		_ = f.env.writeJSON(map[string]ingest.Outcome{"document": o})
	case o.Failed():
		f.env.console.Printf("%s\n", o)
	}
}

// run does a job and shows it. The error is nil only when all went well.
func (f *follower) run(ctx context.Context, job *ingest.Job, do func(context.Context) error) error {
	if f.wait.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, f.wait.Timeout, errTimeout)
		defer cancel()
	}
	stop := f.env.console.Show(func() console.Progress {
		p := job.Progress()
		p.Label = f.label
		if note, ok := f.waiting.Load().(string); ok && note != "" {
			p.Note = note
		}
		return p
	}, !console.UTF8(f.env.getenv))
	err := do(ctx)
	stop()
	s := job.Summary()
	if showErr := f.summary(s); err == nil {
		err = showErr
	}
	switch open := s.Statuses[rag.StatusAccepted]; {
	case errors.Is(context.Cause(ctx), errTimeout):
		return &exitError{exitFailed, fmt.Sprintf("gave up after %s: %s without a final status; they go on", f.wait.Timeout, plural(open, "document"))}
	case err != nil:
		return err
	}
	return verdict(s)
}

// summary shows the end of a job.
func (f *follower) summary(s ingest.Summary) error {
	if f.env.globals.JSON {
		return f.env.writeJSON(map[string]ingest.Summary{"summary": s})
	}
	f.env.console.Printf("%s\n", s)
	if text := skipped(s.Skipped); text != "" {
		fmt.Fprintln(f.env.console.Err(), text)
	}
	return nil
}

// skipped says what walks have passed over.
func skipped(s ingest.Skipped) string {
	text := ""
	for _, part := range []struct {
		n    int
		what string
	}{{s.Hidden, "hidden"}, {s.Links, "symbolic link"}, {s.Special, "special file"}} {
		switch {
		case part.n == 0:
			continue
		case text != "":
			text += ", "
		}
		if part.what == "hidden" {
			text += console.Count(part.n) + " hidden"
		} else {
			text += plural(part.n, part.what)
		}
	}
	if text == "" {
		return ""
	}
	return "skipped: " + text
}

// verdict is the exit code of a job that has ended: everything was said already.
func verdict(s ingest.Summary) error {
	switch {
	case s.Statuses[ingest.StatusRefused]+s.Statuses[ingest.StatusUnreadable] > 0:
		return &exitError{code: exitFailed}
	case s.Statuses[rag.StatusDead] > 0:
		return &exitError{code: exitDead}
	}
	return nil
}
