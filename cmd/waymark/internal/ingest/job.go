package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/rag"
)

// API is what a job needs of the server; a client.Client has it.
type API interface {
	Upload(context.Context, client.Upload) (client.Accepted, error)
	Batch(context.Context, [][]byte) ([]client.BatchResult, error)
	Delete(ctx context.Context, id, messageID string) (client.Accepted, error)
	Wait(context.Context, []client.WaitFor, time.Duration) (client.WaitResult, error)
}

// Config of a job.
type Config struct {
	API API
	// Concurrency is how many files are sent at once; at least 1.
	Concurrency int
	// NoWait ends the job once everything is accepted.
	NoWait bool
	// Hidden takes hidden files and folders too.
	Hidden bool
	// Stdin is read for the source "-". StdinID makes all of it one document; without it, it holds one document a line.
	Stdin   io.Reader
	StdinID string
	// Count walks through the sources ahead of the job, so that Progress knows the total.
	Count bool
	// Report is told of every outcome, one at a time; nil: nobody is.
	Report func(Outcome)
}

// Job sends documents once. Progress and Summary may be called at any time.
type Job struct {
	cfg     Config
	tracker *tracker
	start   time.Time

	mu       sync.Mutex
	summary  Summary
	total    int
	retrying int

	reporting sync.Mutex
}

// New makes a job; it starts with Ingest, Files or Delete, of which one is called once.
func New(cfg Config) *Job {
	cfg.Concurrency = max(1, cfg.Concurrency)
	return &Job{cfg: cfg, tracker: newTracker(cfg.API), start: time.Now(), summary: Summary{Statuses: map[rag.Status]int{}}}
}

// Ingest sends all documents of the sources. A document that cannot be read, is refused or dies is an outcome, not an
// error; an error is what keeps the job from going on.
func (j *Job) Ingest(ctx context.Context, sources []Source) error {
	return j.run(ctx, func(ctx context.Context, each func(File) error) error {
		for _, s := range sources {
			if s.arg == Stdin {
				if err := each(File{ID: j.cfg.StdinID}); err != nil {
					return err
				}
				continue
			}
			if err := j.walk(ctx, s, each); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context) error { return j.count(ctx, sources) })
}

func (j *Job) walk(ctx context.Context, s Source, each func(File) error) error {
	var skipped Skipped
	err := s.Walk(ctx, j.cfg.Hidden, &skipped, each)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.summary.Skipped.Hidden += skipped.Hidden
	j.summary.Skipped.Links += skipped.Links
	j.summary.Skipped.Special += skipped.Special
	return err
}

// Changes sends files that were found by other means, and deletes documents by their ids.
func (j *Job) Changes(ctx context.Context, files []File, deleted []string) error {
	return j.run(ctx, func(ctx context.Context, each func(File) error) error {
		for _, id := range deleted {
			if err := j.delete(ctx, id); err != nil {
				return err
			}
		}
		for _, f := range files {
			if err := each(f); err != nil {
				return err
			}
		}
		return nil
	}, func(context.Context) error {
		j.setTotal(len(files) + len(deleted))
		return nil
	})
}

// Delete submits that documents are to go.
func (j *Job) Delete(ctx context.Context, ids []string) error { return j.Changes(ctx, nil, ids) }

// run produces files, sends them with some workers and follows what was accepted.
func (j *Job) run(ctx context.Context, produce func(context.Context, func(File) error) error, count func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	files := make(chan File)
	group.Go(func() error {
		defer close(files)
		return produce(ctx, func(f File) error {
			select {
			case files <- f:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	if j.cfg.Count {
		group.Go(func() error { return count(ctx) })
	}
	group.Go(func() error { return j.tracker.run(ctx, j.report, j.seen) })
	group.Go(func() error {
		defer j.tracker.close()
		workers, ctx := errgroup.WithContext(ctx)
		for range j.cfg.Concurrency {
			workers.Go(func() error {
				for f := range files {
					if err := j.send(ctx, f); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return workers.Wait()
	})
	return group.Wait()
}

// send sends one file.
func (j *Job) send(ctx context.Context, f File) error {
	switch {
	case f.Err != nil:
		j.report(unreadable(f.ID, "", f.Err))
		return nil
	case f.Path == "" && f.ID == "":
		return j.sendLines(ctx, f, j.cfg.Stdin)
	case f.Path == "":
		return j.sendStdin(ctx, f)
	case f.Lines():
		r, err := os.Open(f.Path)
		if err != nil {
			j.report(unreadable(f.ID, "", cause(err)))
			return nil
		}
		defer r.Close()
		return j.sendLines(ctx, f, r)
	}
	return j.upload(ctx, f.ID, client.File(f.Path))
}

func (j *Job) sendStdin(ctx context.Context, f File) error {
	data, err := io.ReadAll(io.LimitReader(&interruptible{ctx, j.cfg.Stdin}, maxLine+1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil && len(data) > maxLine {
		err = fmt.Errorf("it is larger than %d bytes", maxLine)
	}
	if err != nil {
		j.report(unreadable(f.ID, "", err))
		return nil
	}
	return j.upload(ctx, f.ID, client.Bytes(data))
}

func (j *Job) upload(ctx context.Context, id string, body client.Body) error {
	accepted, err := j.cfg.API.Upload(ctx, client.Upload{ID: id, MessageID: client.NewMessageID(), Body: body})
	return j.answer(ctx, id, accepted, err)
}

func (j *Job) delete(ctx context.Context, id string) error {
	if err := checkID(id); err != nil {
		j.report(unreadable(id, "", err))
		return nil
	}
	accepted, err := j.cfg.API.Delete(ctx, id, client.NewMessageID())
	return j.answer(ctx, id, accepted, err)
}

// answer handles what the API said of one document.
func (j *Job) answer(ctx context.Context, id string, accepted client.Accepted, err error) error {
	var unread *client.BodyError
	switch {
	case errors.As(err, &unread):
		j.report(unreadable(id, "", cause(unread.Err)))
		return nil
	case err != nil:
		if r := refusal(err); r != nil {
			j.report(refused(id, "", r))
			return nil
		}
		return err
	}
	return j.accepted(ctx, client.WaitFor{MessageID: accepted.MessageID, DocumentID: accepted.DocumentID})
}

func (j *Job) accepted(ctx context.Context, key client.WaitFor) error {
	j.mu.Lock()
	j.summary.Documents++
	j.summary.Statuses[rag.StatusAccepted]++
	j.mu.Unlock()
	if j.cfg.NoWait {
		j.tell(Outcome{DocumentID: key.DocumentID, MessageID: key.MessageID, Status: rag.StatusAccepted})
		return nil
	}
	return j.tracker.add(ctx, key)
}

// report counts an outcome: the end of an accepted document, or one that was never accepted.
func (j *Job) report(o Outcome) {
	j.mu.Lock()
	if o.Status == StatusRefused || o.Status == StatusUnreadable {
		j.summary.Documents++
	} else {
		j.summary.Statuses[rag.StatusAccepted]--
	}
	j.summary.Statuses[o.Status]++
	if o.Status == rag.StatusIndexed {
		j.summary.Chunks += o.Chunks
	}
	j.mu.Unlock()
	j.tell(o)
}

func (j *Job) tell(o Outcome) {
	if j.cfg.Report == nil {
		return
	}
	j.reporting.Lock()
	defer j.reporting.Unlock()
	j.cfg.Report(o)
}

func (j *Job) seen(statuses map[string]int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.retrying = retrying(statuses)
}

// Summary of what has been done so far.
func (j *Job) Summary() Summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.summary
	s.Statuses = map[rag.Status]int{}
	for status, n := range j.summary.Statuses {
		if n > 0 {
			s.Statuses[status] = n
		}
	}
	s.Seconds = time.Since(j.start).Seconds()
	return s
}

// Progress for a progress bar.
func (j *Job) Progress() console.Progress {
	j.mu.Lock()
	defer j.mu.Unlock()
	p := console.Progress{Total: j.total, Sent: j.summary.Documents, Failed: j.summary.Failed(), Elapsed: time.Since(j.start)}
	p.Done = p.Sent - j.summary.Statuses[rag.StatusAccepted]
	if j.cfg.NoWait {
		p.Done = p.Sent
	}
	if j.retrying > 0 {
		p.Note = console.Count(j.retrying) + " retrying"
	}
	return p
}

func (j *Job) setTotal(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.total = n
}
