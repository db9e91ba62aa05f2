package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/rag"
)

// briefly is the patience of commands that a person waits for.
var briefly = client.Retry{For: 10 * time.Second}

type statusCmd struct {
	IDs     []string `arg:"" optional:"" name:"id" help:"Document ids; none: counts of everything."`
	Message string   `placeholder:"ID" help:"Show the submission with this message id; with a document id where several documents used it."`
	List    string   `enum:",all,accepted,chunked,embedded,retrying,indexed,unchanged,superseded,deleted,dead" default:"" placeholder:"STATUS" help:"List the documents with this status, or all; the one changed last comes first."`
	Limit   int      `default:"100" placeholder:"N" help:"With --list, show at most so many documents; 0 shows all. Default ${default}."`
	clientFlags
}

// Validate is called by the parser.
func (c *statusCmd) Validate() error {
	switch {
	case c.List != "" && (len(c.IDs) > 0 || c.Message != ""):
		return usageError("--list stands alone")
	case c.Message != "" && len(c.IDs) > 1:
		return usageError("--message takes one document id at most")
	case c.Limit < 0:
		return usageError("--limit: %d is below 0", c.Limit)
	}
	return nil
}

// Run is called by the parser.
func (c *statusCmd) Run(ctx context.Context, env *environment) error {
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	switch {
	case c.List != "":
		return c.list(ctx, env, api)
	case c.Message != "":
		return c.message(ctx, env, api)
	case len(c.IDs) > 0:
		return c.documents(ctx, env, api)
	}
	return c.counts(ctx, env, api)
}

func (c *statusCmd) counts(ctx context.Context, env *environment, api *client.Client) error {
	s, err := api.Stats(ctx)
	if err != nil {
		return err
	}
	if env.globals.JSON {
		return env.writeJSON(s)
	}
	lag := make([]string, 0, len(s.Lag))
	for _, stage := range slices.Sorted(maps.Keys(s.Lag)) {
		if s.Lag[stage] > 0 {
			lag = append(lag, stage+" "+console.Count(int(s.Lag[stage])))
		}
	}
	return env.properties([][2]string{
		{"Documents", cmp.Or(counts(statuses(), s.Documents), "none")},
		{"Dead letters", cmp.Or(counts(letterStates(), s.DeadLetters), "none")},
		{"Lag", cmp.Or(strings.Join(lag, ", "), "none")},
		{"Store", plural(int(s.Store.Chunks), "chunk")},
	})
}

func statuses() []rag.Status {
	return []rag.Status{
		rag.StatusAccepted, rag.StatusChunked, rag.StatusEmbedded, rag.StatusRetrying, rag.StatusIndexed,
		rag.StatusUnchanged, rag.StatusSuperseded, rag.StatusDeleted, rag.StatusDead,
	}
}

func letterStates() []rag.LetterState {
	return []rag.LetterState{
		rag.LetterWaiting, rag.LetterScheduled, rag.LetterReplaying, rag.LetterResolved, rag.LetterSuperseded, rag.LetterDiscarded,
	}
}

// documents shows each document; one that is not there does not keep the others from being shown.
func (c *statusCmd) documents(ctx context.Context, env *environment, api *client.Client) error {
	missing := 0
	for i, id := range c.IDs {
		d, err := api.Document(ctx, id)
		if client.IsKind(err, client.KindNotVisibleYet) {
			fmt.Fprintf(env.console.Err(), "waymark: there is no document %s\n", console.Clean(id))
			missing++
			continue
		}
		if err != nil {
			return err
		}
		if env.globals.JSON {
			if err := env.writeJSON(d); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			env.console.Printf("\n")
		}
		if err := showDocument(env, d); err != nil {
			return err
		}
		if err := showTimeline(ctx, env, api, d); err != nil {
			return err
		}
	}
	if missing > 0 {
		return &exitError{code: exitFailed}
	}
	return nil
}

func showDocument(env *environment, d client.DocumentStatus) error {
	served := "nothing"
	if d.Served != nil {
		served = fmt.Sprintf("version %d, %s", d.Served.Version, plural(d.Served.Chunks, "chunk"))
	}
	rows := [][2]string{
		{"Document", d.DocumentID}, {"Status", string(d.Status)}, {"Error", failureText(d.Error)},
		{"Version", strconv.FormatInt(int64(d.Version), 10)}, {"Chunks", strconv.Itoa(d.Chunks)}, {"Served", served},
		{"Message", d.MessageID}, {"Updated", timestamp(d.UpdatedAt)},
	}
	for _, w := range d.Warnings {
		rows = append(rows, [2]string{"Warning", w})
	}
	return env.properties(rows)
}

// showTimeline shows how the latest version got there. Timelines are kept for a week only: none is no error.
func showTimeline(ctx context.Context, env *environment, api *client.Client, d client.DocumentStatus) error {
	m, err := api.Message(ctx, d.MessageID, d.DocumentID)
	if client.IsKind(err, client.KindNotVisibleYet) {
		return nil
	}
	if err != nil {
		return err
	}
	return showEvents(env, m)
}

func showEvents(env *environment, m client.MessageStatus) error {
	if len(m.Events) == 0 {
		return nil
	}
	env.console.Printf("\n")
	rows := [][]string{{"AT", "STAGE", "OUTCOME", "ATTEMPT"}}
	for _, e := range m.Events {
		attempt := strconv.Itoa(e.Attempt)
		if e.Generation > 0 {
			attempt += fmt.Sprintf(" of replay %d", e.Generation)
		}
		rows = append(rows, []string{timestamp(e.At), e.Stage, string(e.Outcome), attempt})
	}
	return env.table(rows)
}

func failureText(f *client.Failure) string {
	if f == nil {
		return ""
	}
	return fmt.Sprintf("%s in the %s: %s", f.Reason, f.Stage, f.Message)
}

func (c *statusCmd) message(ctx context.Context, env *environment, api *client.Client) error {
	documentID := ""
	if len(c.IDs) == 1 {
		documentID = c.IDs[0]
	}
	m, err := api.Message(ctx, c.Message, documentID)
	var e *client.Error
	switch {
	case client.IsKind(err, client.KindNotVisibleYet):
		return fmt.Errorf("there is no submission %s", console.Clean(c.Message))
	case errors.As(err, &e) && len(e.Documents) > 0:
		return fmt.Errorf("several documents used this message id; name one of them too: %s", console.Clean(strings.Join(e.Documents, ", ")))
	case err != nil:
		return err
	case env.globals.JSON:
		return env.writeJSON(m)
	}
	err = env.properties([][2]string{
		{"Message", m.MessageID}, {"Document", m.DocumentID}, {"Status", string(m.Status)}, {"Error", failureText(m.Error)},
		{"Version", strconv.FormatInt(int64(m.Version), 10)}, {"Chunks", strconv.Itoa(m.Chunks)}, {"Attempts", strconv.Itoa(m.Attempts)},
	})
	if err != nil {
		return err
	}
	return showEvents(env, m)
}

func (c *statusCmd) list(ctx context.Context, env *environment, api *client.Client) error {
	status := rag.Status(c.List)
	if c.List == "all" {
		status = ""
	}
	rows := [][]string{{"STATUS", "REASON", "UPDATED", "CHUNKS", "DOCUMENT", "ERROR"}}
	n := 0
	for d, err := range api.Documents(ctx, status) {
		if err != nil {
			return err
		}
		if n++; c.Limit > 0 && n > c.Limit {
			break
		}
		if env.globals.JSON {
			if err := env.writeJSON(d); err != nil {
				return err
			}
			continue
		}
		reason, message := "", ""
		if d.Error != nil {
			reason, message = d.Error.Reason, d.Error.Message
		}
		rows = append(rows, []string{
			string(d.Status), reason, timestamp(d.UpdatedAt), console.Count(d.Chunks), d.DocumentID, message,
		})
	}
	return env.listed(rows, n, c.Limit, "document")
}

// listed shows the rows of a list that may have been cut at the limit.
func (e *environment) listed(rows [][]string, n, limit int, noun string) error {
	if e.globals.JSON {
		return nil
	}
	if n == 0 {
		e.console.Printf("No %ss.\n", noun)
		return nil
	}
	if err := e.table(rows); err != nil {
		return err
	}
	if limit > 0 && n > limit {
		fmt.Fprintf(e.console.Err(), "There are more; --limit 0 shows all.\n")
	}
	return nil
}
