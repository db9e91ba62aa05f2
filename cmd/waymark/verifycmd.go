package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/verify"
)

// VerifyOptions of one comparison.
type VerifyOptions struct {
	Repair   bool
	Progress func(step string)
	Log      *slog.Logger
}

type verifyCmd struct {
	Repair bool `help:"Write again what is missing or not found, and remove what is stale or doubled, as far as that is safe."`

	Configuration configFlags `embed:""`
}

// Help is the long description.
func (verifyCmd) Help() string {
	return `It compares the document rows with the store. Chunks that are served can be missing, or unsearchable: there, but not found by a vector search. Others can be stale: of a version that is neither served nor in work nor about to be removed; or doubled: at the place of a chunk, but not it.

It may run beside 'waymark up' or the roles of a cluster. A difference counts only if it still stands at a second look; before it calls something stale it waits longer than delivery.removal_delay. Undecided is what the pipeline may be at work on, while it is behind or does not run.

--repair writes chunks again from the log, which has the last 30 days, or from the store's own text, which is embedded once more. A chunk that neither has can only come from its document: delete it and submit it again.

Exit codes: 0 nothing differs, or everything was repaired; 1 something is left.

` + moreFlags
}

// Run is called by the parser.
func (c *verifyCmd) Run(ctx context.Context, env *environment) error {
	cfg, runtime, err := env.loadBeside(c.Configuration)
	if err != nil {
		return err
	}
	report, err := runtime.Verify(ctx, cfg, VerifyOptions{
		Repair: c.Repair, Log: env.log, Progress: func(step string) { env.console.SetStatus(step + "…") },
	})
	env.console.SetStatus("")
	if err != nil {
		return err
	}
	if err := c.print(env, &report); err != nil {
		return err
	}
	if !report.Clean() {
		return &exitError{code: exitFailed}
	}
	return nil
}

// finding is one line of the results.
type finding struct {
	Kind       verify.Kind `json:"kind"`
	DocumentID string      `json:"document_id"`
	Version    rag.Version `json:"version"`
	Generation int         `json:"generation"`
	Chunks     []int       `json:"chunks"`
	Objects    int         `json:"objects"`
	Repaired   int         `json:"repaired"`
	Note       string      `json:"note,omitempty"`
}

// verifySummary is the last line of the results.
type verifySummary struct {
	Documents   int `json:"documents"`
	Chunks      int `json:"chunks"`
	Objects     int `json:"objects"`
	Differences int `json:"differences"`
	Repaired    int `json:"repaired"`
	Left        int `json:"left"`
	Undecided   int `json:"undecided"`
}

func (c *verifyCmd) print(env *environment, r *verify.Report) error {
	s := verifySummary{Documents: r.Documents, Chunks: r.Chunks, Objects: r.Objects, Left: r.Left(), Undecided: r.Undecided}
	rows := [][]string{{"KIND", "DOCUMENT", "VERSION", "CHUNKS", "OBJECTS", "REPAIRED", "NOTE"}}
	for _, f := range r.Findings {
		s.Differences += f.Objects
		s.Repaired += f.Repaired
		if env.globals.JSON {
			if err := env.writeJSON(finding{f.Kind, f.DocumentID, f.Revision.Version, f.Revision.Generation, indexes(f.Chunks), f.Objects, f.Repaired, f.Note}); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{string(f.Kind), f.DocumentID, revisionOf(f.Revision), ranges(indexes(f.Chunks)), strconv.Itoa(f.Objects), strconv.Itoa(f.Repaired), f.Note})
	}
	if env.globals.JSON {
		return env.writeJSON(s)
	}
	if len(rows) > 1 {
		if err := env.table(rows); err != nil {
			return err
		}
		env.console.Printf("\n")
	}
	env.console.Printf("%s\n", s.sentence(c.Repair))
	return nil
}

// sentence is the summary for people.
func (s verifySummary) sentence(repair bool) string {
	text := fmt.Sprintf("Compared %s, %s served, with %s of the store: ", plural(s.Documents, "document"), plural(s.Chunks, "chunk"), plural(s.Objects, "object"))
	switch {
	case s.Differences == 0:
		text += "nothing differs"
	case repair:
		text += fmt.Sprintf("%s, %s repaired, %s left", plural(s.Differences, "difference"), console.Count(s.Repaired), console.Count(s.Left))
	default:
		text += plural(s.Differences, "difference")
	}
	if s.Undecided > 0 {
		text += fmt.Sprintf("; %s undecided, because the pipeline is behind or does not run", plural(s.Undecided, "object"))
	}
	return text + "."
}

// revisionOf is a revision for people: the generation only where the version was replayed.
func revisionOf(r rag.Revision) string {
	text := strconv.FormatInt(int64(r.Version), 10)
	if r.Generation > 0 {
		text += " replay " + strconv.Itoa(r.Generation)
	}
	return text
}

// indexes are the numbers in a set.
func indexes(b ledger.Bitmap) []int {
	out := []int{}
	for n, i := b.Len(), 0; len(out) < n; i++ {
		if b.Has(i) {
			out = append(out, i)
		}
	}
	return out
}

// ranges writes ascending numbers briefly: "0-3,7".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		part := strconv.Itoa(numbers[i])
		if j > i {
			part += "-" + strconv.Itoa(numbers[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
