package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/rag"
)

type dlqCmd struct {
	List    dlqListCmd    `cmd:"" group:"sub" help:"List dead letters, the one that failed last first."`
	Show    dlqShowCmd    `cmd:"" group:"sub" help:"Show one dead letter, or its original bytes."`
	Replay  dlqReplayCmd  `cmd:"" group:"sub" help:"Run dead documents again."`
	Discard dlqDiscardCmd `cmd:"" group:"sub" help:"Give dead documents up."`
	Export  dlqExportCmd  `cmd:"" group:"sub" help:"Write dead letters with their original bytes as lines of JSON."`
}

// letterFlags choose dead letters.
type letterFlags struct {
	State    string `enum:",waiting,scheduled,replaying,resolved,superseded,discarded" default:"" placeholder:"STATE" help:"Only letters that are waiting, scheduled, replaying, resolved, superseded or discarded."`
	Reason   string `placeholder:"REASON" help:"Only letters with this reason, e.g. no_text."`
	Stage    string `enum:",chunker,embedder,indexer" default:"" placeholder:"STAGE" help:"Only letters of this stage: chunker, embedder or indexer."`
	Document string `placeholder:"ID" help:"Only letters of this document."`
	Since    moment `placeholder:"TIME" help:"Only letters that failed last at or after this time: as of RFC 3339, or so long ago, e.g. 2h."`
	Until    moment `placeholder:"TIME" help:"Only letters that failed last before this time."`
}

func (f letterFlags) filter() (client.LetterFilter, error) {
	since, until, err := between(f.Since, f.Until)
	return client.LetterFilter{State: rag.LetterState(f.State), Reason: f.Reason, Stage: f.Stage, DocumentID: f.Document, Since: since, Until: until}, err
}

// waitingFlags choose waiting dead letters instead of ids.
type waitingFlags struct {
	All      bool   `help:"Every waiting letter, or with the flags below those that match."`
	Reason   string `placeholder:"REASON" help:"With --all, only letters with this reason."`
	Stage    string `enum:",chunker,embedder,indexer" default:"" placeholder:"STAGE" help:"With --all, only letters of this stage: chunker, embedder or indexer."`
	Document string `placeholder:"ID" help:"With --all, only letters of this document."`
	Since    moment `placeholder:"TIME" help:"With --all, only letters that failed last at or after this time: as of RFC 3339, or so long ago, e.g. 2h."`
	Until    moment `placeholder:"TIME" help:"With --all, only letters that failed last before this time."`
}

// check refuses ids and filters together, and neither.
func (f waitingFlags) check(ids []string) error {
	switch {
	case f.All == (len(ids) > 0):
		return usageError("name dead letters, or say --all")
	case !f.All && f != waitingFlags{}:
		return usageError("--reason, --stage, --document, --since and --until go with --all")
	}
	return nil
}

func (f waitingFlags) filter() (client.WaitingFilter, error) {
	since, until, err := between(f.Since, f.Until)
	return client.WaitingFilter{Reason: f.Reason, Stage: f.Stage, DocumentID: f.Document, Since: since, Until: until}, err
}

type dlqListCmd struct {
	letterFlags
	Limit int `default:"100" placeholder:"N" help:"Show at most so many letters; 0 shows all. Default ${default}."`
	clientFlags
}

// Validate is called by the parser.
func (c *dlqListCmd) Validate() error {
	if c.Limit < 0 {
		return usageError("--limit: %d is below 0", c.Limit)
	}
	return nil
}

// Run is called by the parser.
func (c *dlqListCmd) Run(ctx context.Context, env *environment) error {
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	filter, err := c.filter()
	if err != nil {
		return err
	}
	rows := [][]string{{"ID", "STATE", "GENERATION", "REASON", "DOCUMENT", "LAST FAILED", "ERROR"}}
	n := 0
	for l, err := range api.DeadLetters(ctx, filter) {
		if err != nil {
			return err
		}
		if n++; c.Limit > 0 && n > c.Limit {
			break
		}
		if env.globals.JSON {
			if err := env.writeJSON(l); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{l.ID, string(l.State), strconv.Itoa(l.Generation), l.Reason, l.DocumentID, timestamp(l.LastFailedAt), l.Error})
	}
	return env.listed(rows, n, c.Limit, "dead letter")
}

type dlqShowCmd struct {
	ID      string `arg:"" name:"id" help:"Id of the dead letter."`
	Payload bool   `help:"Write the original bytes to standard output instead."`
	clientFlags
}

// Run is called by the parser.
func (c *dlqShowCmd) Run(ctx context.Context, env *environment) error {
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	if c.Payload {
		_, err := api.Payload(ctx, c.ID, env.console.Out())
		return err
	}
	l, err := api.DeadLetter(ctx, c.ID)
	if err != nil {
		return err
	}
	if env.globals.JSON {
		return env.writeJSON(l)
	}
	due := ""
	if l.RetryAt != nil {
		due = timestamp(*l.RetryAt)
	}
	return env.properties([][2]string{
		{"Dead letter", l.ID}, {"State", string(l.State)}, {"Discarded because", l.DiscardReason}, {"Next run", due},
		{"Document", l.DocumentID}, {"Message", l.MessageID},
		{"Reason", l.Reason}, {"Error", l.Error}, {"Stage", l.Stage}, {"Class", string(l.Class)}, {"Generation", strconv.Itoa(l.Generation)}, {"Attempts", strconv.Itoa(l.Attempts)},
		{"First failed", timestamp(l.FirstFailedAt)}, {"Last failed", timestamp(l.LastFailedAt)},
		{"Record", fmt.Sprintf("%s, partition %d, offset %d", l.Topic, l.Partition, l.Offset)}, {"Bytes", l.Lost},
	})
}

type dlqReplayCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Ids of dead letters."`
	waitingFlags
	clientFlags
}

// Help is the long description.
func (dlqReplayCmd) Help() string {
	return "Each failure can be replayed once: not while a replay runs, nor after one succeeded. A replay is a new generation of the letter; one that dies waits again. 'waymark status ID' shows how it ends."
}

// Validate is called by the parser.
func (c *dlqReplayCmd) Validate() error { return c.check(c.IDs) }

// Run is called by the parser.
func (c *dlqReplayCmd) Run(ctx context.Context, env *environment) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	if !c.All {
		return each(env, c.IDs, "asked for a replay", func(id string) error { return api.Replay(ctx, id) })
	}
	total := client.ReplayResult{}
	for more := true; more; {
		r, err := api.ReplayAll(ctx, filter)
		if err != nil {
			return err
		}
		total.Replayed += r.Replayed
		total.Skipped += r.Skipped
		more, filter.Cursor = r.NextCursor != "", r.NextCursor
	}
	if env.globals.JSON {
		return env.writeJSON(total)
	}
	env.console.Printf("Asked for a replay of %s.\n", plural(total.Replayed, "dead letter"))
	if total.Skipped > 0 {
		env.console.Printf("%s cannot be replayed: their bytes could not be kept.\n", plural(total.Skipped, "dead letter"))
	}
	return nil
}

type dlqDiscardCmd struct {
	IDs []string `arg:"" optional:"" name:"id" help:"Ids of dead letters."`
	waitingFlags
	Why string `placeholder:"TEXT" help:"Kept with the letters."`
	clientFlags
}

// Help is the long description.
func (dlqDiscardCmd) Help() string {
	return "The versions stay dead and are no longer shown as waiting. Letters whose replay runs are left alone."
}

// Validate is called by the parser.
func (c *dlqDiscardCmd) Validate() error { return c.check(c.IDs) }

// Run is called by the parser.
func (c *dlqDiscardCmd) Run(ctx context.Context, env *environment) error {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	if !c.All {
		return each(env, c.IDs, "discarded", func(id string) error { return api.Discard(ctx, id, c.Why) })
	}
	total := client.DiscardResult{}
	for more := true; more; {
		r, err := api.DiscardAll(ctx, filter, c.Why)
		if err != nil {
			return err
		}
		total.Discarded += r.Discarded
		more, filter.Cursor = r.NextCursor != "", r.NextCursor
	}
	if env.globals.JSON {
		return env.writeJSON(total)
	}
	env.console.Printf("Discarded %s.\n", plural(total.Discarded, "dead letter"))
	return nil
}

// each does something with every id. A refusal of one does not keep the others from being done; whatever else goes wrong
// does.
func each(env *environment, ids []string, done string, do func(string) error) error {
	refused := 0
	for _, id := range ids {
		err := do(id)
		var e *client.Error
		switch {
		case errors.As(err, &e) && (e.Status == 404 || e.Status == 409 || e.Status == 410):
			refused++
			if env.globals.JSON {
				err = env.writeJSON(map[string]any{"id": id, "done": false, "error": e.Kind(), "message": e.Detail})
			} else {
				env.console.Printf("%s: %s\n", console.Clean(id), console.Clean(e.Detail))
				err = nil
			}
		case err == nil && env.globals.JSON:
			err = env.writeJSON(map[string]any{"id": id, "done": true})
		case err == nil:
			env.console.Printf("%s: %s\n", console.Clean(id), done)
		}
		if err != nil {
			return err
		}
	}
	if refused > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

type dlqExportCmd struct {
	letterFlags
	Output string `short:"o" placeholder:"FILE" help:"Write to this file, which must not exist, instead of standard output."`
	clientFlags
}

// Help is the long description.
func (dlqExportCmd) Help() string {
	return "Each line is a dead letter as 'dlq show --json' prints it, with its original bytes in base64 as payload and the type that they were declared with as content_type. A payload of null is a deletion, or lost, as the field lost says."
}

// exportedLetter is one line of an export.
type exportedLetter struct {
	client.DeadLetter
	Payload     []byte `json:"payload"`
	ContentType string `json:"content_type,omitempty"`
}

// Run is called by the parser.
func (c *dlqExportCmd) Run(ctx context.Context, env *environment) (err error) {
	filter, err := c.filter()
	if err != nil {
		return err
	}
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	out := env.console.Out()
	if c.Output != "" {
		f, openErr := os.OpenFile(c.Output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if openErr != nil {
			return usageError("--output: %v", openErr)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	n, err := c.export(ctx, api, filter, out)
	if err == nil && c.Output != "" && !env.globals.JSON {
		env.console.Printf("Exported %s to %s.\n", plural(n, "dead letter"), c.Output)
	}
	return err
}

func (c *dlqExportCmd) export(ctx context.Context, api *client.Client, filter client.LetterFilter, out io.Writer) (n int, err error) {
	for l, err := range api.DeadLetters(ctx, filter) {
		if err != nil {
			return n, err
		}
		line := exportedLetter{DeadLetter: l}
		if l.Lost == "" {
			payload := bytes.NewBuffer([]byte{})
			p, err := api.Payload(ctx, l.ID, payload)
			if err != nil {
				return n, fmt.Errorf("payload of %s: %w", l.ID, err)
			}
			line.ContentType = p.ContentType
			if !p.Null {
				line.Payload = payload.Bytes()
			}
		}
		b, err := json.Marshal(line)
		if err != nil {
			return n, fmt.Errorf("export %s: %w", l.ID, err)
		}
		if _, err := out.Write(append(b, '\n')); err != nil {
			return n, fmt.Errorf("write the export: %w", err)
		}
		n++
	}
	return n, nil
}
