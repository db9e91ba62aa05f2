package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/waymarkhq/waymark/client"
)

// sendLines sends a file of lines, batch after batch: two lines of one document keep their order.
func (j *Job) sendLines(ctx context.Context, f File, r io.Reader) error {
	if f.Path == "" {
		r = &interruptible{ctx: ctx, r: r}
	}
	lines := newLineReader(r)
	b := batch{job: j, file: f, ids: map[string]bool{}}
	for {
		line, err := lines.next()
		switch {
		case errors.Is(err, errLineTooLong):
			j.report(unreadable("", b.place(lines.number), err))
			continue
		case errors.Is(err, io.EOF):
			return b.flush(ctx)
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			j.report(unreadable(f.ID, b.place(lines.number), cause(err)))
			return b.flush(ctx)
		}
		it := prepare(line, lines.number, func() string { return b.documentID(lines.number) }, client.NewMessageID)
		if b.full(it) {
			if err := b.flush(ctx); err != nil {
				return err
			}
		}
		b.add(it)
		if f.Path == "" && lines.idle() { // what a person or a program writes slowly is not held back
			if err := b.flush(ctx); err != nil {
				return err
			}
		}
	}
}

// batch collects lines of one file.
type batch struct {
	job   *Job
	file  File
	items []item
	bytes int
	ids   map[string]bool
}

// full reports whether the item needs another batch: a part of a batch may be sent again, which would change the order
// of two lines of one document.
func (b *batch) full(it item) bool {
	return len(b.items) == client.MaxBatchLines || b.bytes > 0 && b.bytes+len(it.line) > maxBatchBytes ||
		it.key.DocumentID != "" && b.ids[it.key.DocumentID]
}

func (b *batch) add(it item) {
	b.items = append(b.items, it)
	b.bytes += len(it.line)
	b.ids[it.key.DocumentID] = true
}

// flush sends what was collected.
func (b *batch) flush(ctx context.Context) error {
	if len(b.items) == 0 {
		return nil
	}
	lines := make([][]byte, len(b.items))
	for i, it := range b.items {
		lines[i] = it.line
	}
	results, err := b.job.cfg.API.Batch(ctx, lines)
	if err != nil {
		return err
	}
	for i, r := range results {
		if err := b.answer(ctx, b.items[i], r); err != nil {
			return err
		}
	}
	b.items, b.bytes = nil, 0
	clear(b.ids)
	return nil
}

func (b *batch) answer(ctx context.Context, it item, r client.BatchResult) error {
	if r.Problem == nil {
		return b.job.accepted(ctx, client.WaitFor{MessageID: r.MessageID, DocumentID: r.DocumentID})
	}
	p := refusal(r.Problem)
	if p == nil {
		return fmt.Errorf("%s: %w", b.place(it.number), r.Problem)
	}
	b.job.report(refused(it.key.DocumentID, b.place(it.number), p))
	return nil
}

// place is "docs.jsonl:12", for people.
func (b *batch) place(number int) string {
	name := b.file.Path
	if name == "" {
		name = "standard input"
	}
	return fmt.Sprintf("%s:%d", name, number)
}

// documentID is for a line without an id: its place in the file, or for standard input, which has no name, a new one.
func (b *batch) documentID(number int) string {
	if b.file.ID == "" {
		return client.NewMessageID()
	}
	return lineID(b.file.ID, number, client.NewMessageID)
}

// interruptible lets go of a reader that may block for ever, such as a terminal, when ctx ends. Its goroutine then stays
// until the read returns: nothing can end the read of a terminal, and the process is about to end.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buf := make([]byte, len(p)) // not p: an abandoned read must not write to it
	done := make(chan result, 1)
	go func() {
		n, err := i.r.Read(buf)
		done <- result{n, err}
	}()
	select {
	case r := <-done:
		return copy(p, buf[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	}
}
