package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
)

type searchCmd struct {
	Query    []string `arg:"" name:"query" help:"What to look for."`
	K        int      `short:"k" default:"5" placeholder:"N" help:"Show so many hits at most, 1 to 1,000. Default ${default}."`
	Mode     string   `enum:"hybrid,vector,text" default:"hybrid" placeholder:"MODE" help:"hybrid, vector (by meaning) or text (by words). Default ${default}."`
	Document string   `placeholder:"ID" help:"Search this document only."`
	Filter   []string `placeholder:"KEY:VALUE" sep:"none" help:"Only documents with this metadata, e.g. lang:en; may be repeated."`
	Full     bool     `help:"Show the whole text of each hit, or of its parent, instead of an excerpt."`
	clientFlags
}

// Validate is called by the parser.
func (c *searchCmd) Validate() error {
	if c.K < 1 || c.K > 1000 {
		return usageError("-k: %d is not between 1 and 1000", c.K)
	}
	for _, f := range c.Filter {
		if key, _, ok := strings.Cut(f, ":"); !ok || key == "" {
			return usageError("--filter: %q is not written key:value", f)
		}
	}
	return nil
}

// Run is called by the parser.
func (c *searchCmd) Run(ctx context.Context, env *environment) error {
	api, err := c.client(env, briefly)
	if err != nil {
		return err
	}
	defer api.Close()
	hits, err := api.Search(ctx, client.Query{
		Text: strings.Join(c.Query, " "), K: c.K, Mode: c.Mode, DocumentID: c.Document, Filters: c.Filter,
	})
	switch {
	case err != nil:
		return err
	case env.globals.JSON:
		if hits == nil {
			hits = []client.Hit{}
		}
		return env.writeJSON(map[string][]client.Hit{"hits": hits})
	case len(hits) == 0:
		env.console.Printf("Nothing found.\n")
		return nil
	}
	for i, h := range hits {
		if i > 0 {
			env.console.Printf("\n")
		}
		c.show(env, i+1, h)
	}
	return nil
}

const (
	excerptLines = 4
	// plainWidth is the width of text that does not go to a terminal.
	plainWidth = 100
	mostWidth  = 110
)

func (c *searchCmd) show(env *environment, rank int, h client.Hit) {
	width := min(env.console.Width(), mostWidth)
	bold, plain := "\x1b[1m", "\x1b[0m"
	if width == 0 || env.getenv("NO_COLOR") != "" {
		bold, plain = "", ""
	}
	if width == 0 {
		width = plainWidth
	}
	number := strconv.Itoa(rank) + ". "
	indent := strings.Repeat(" ", len(number))
	room := max(20, width-len(number))
	title, place := h.Title, fmt.Sprintf("%s, chunk %d", h.DocumentID, h.ChunkIndex)
	if title == "" || title == h.DocumentID {
		title, place = h.DocumentID, fmt.Sprintf("chunk %d", h.ChunkIndex)
	}
	env.console.Printf("%s%s%s%s\n", number, bold, console.Wrap(title, room, 1)[0], plain)
	if h.Page > 0 {
		place += fmt.Sprintf(", page %d", h.Page)
	}
	place += fmt.Sprintf(", score %.3f", h.Score)
	for _, line := range console.Wrap(place, room, 2) {
		env.console.Printf("%s%s\n", indent, line)
	}
	if h.Heading != "" && h.Heading != h.Title {
		env.console.Printf("%s%s\n", indent, console.Wrap(h.Heading, room, 1)[0])
	}
	limit, text := excerptLines, h.Text
	if c.Full {
		limit = 0
		if h.Parent != nil && h.Parent.Text != "" {
			text = h.Parent.Text
		}
	}
	for _, line := range console.Wrap(text, room, limit) {
		env.console.Printf("%s%s\n", indent, line)
	}
}
