package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/node"
	"github.com/waymarkhq/waymark/rag/split"
)

type splitCmd struct {
	readFlags
}

// Help is shown below the usage.
func (splitCmd) Help() string {
	return "Shows the chunks that the pipeline would make of the document: each with its bytes in the text, its tokens, its page and the headings above it. " +
		"What a chunk repeats of the one before it is counted, and with splitting.parent_tokens the bytes of its parent are shown above it. " + moreFlags
}

// Run is called by the parser.
func (c *splitCmd) Run(ctx context.Context, env *environment) error {
	text, cfg, err := c.read(ctx, env)
	if err != nil {
		return err
	}
	splitter, err := split.New(node.SplitOptions(cfg))
	if err != nil {
		return err
	}
	pieces, err := splitter.Split(ctx, text.Body, text.Blocks)
	var bad *split.Error
	switch {
	case errors.As(err, &bad):
		return dead(c.File, bad.Reason, bad.Message)
	case err != nil:
		return err
	case env.globals.JSON:
		return env.writeJSON(chunked{c.File, text.Type, text.Title, splitter.Settings(), jsonChunks(text.Body, pieces), nonNil(text.Warnings)})
	}
	if err := env.about(text, plural(len(pieces), "chunk")); err != nil {
		return err
	}
	end := 0
	for i, p := range pieces {
		if p.Parent != (split.Span{}) && (i == 0 || p.Parent != pieces[i-1].Parent) {
			env.console.Printf("\n%s\n", place("parent", p.Parent.Start, p.Parent.End, 0, ""))
		}
		what := fmt.Sprintf("chunk %d, %s", i, plural(split.EstimateTokens(text.Body[p.Start:p.End]), "token"))
		if p.Start < end {
			what += fmt.Sprintf(", %s repeated", plural(end-p.Start, "byte"))
		}
		end = p.End
		env.console.Printf("\n%s\n%s\n", place(what, p.Start, p.End, p.Page, p.Heading), text.Body[p.Start:p.End])
	}
	return nil
}

// chunked is the result as JSON.
type chunked struct {
	File     string      `json:"file"`
	Type     string      `json:"type"`
	Title    string      `json:"title,omitempty"`
	Settings string      `json:"settings"`
	Chunks   []jsonChunk `json:"chunks"`
	Warnings []string    `json:"warnings"`
}

type jsonChunk struct {
	Index   int    `json:"index"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
	Tokens  int    `json:"tokens"`
	Heading string `json:"heading,omitempty"`
	Page    int    `json:"page,omitempty"`
	Text    string `json:"text"`
	// Parent is absent without splitting.parent_tokens.
	Parent *jsonSpan `json:"parent,omitempty"`
}

type jsonSpan struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

func jsonChunks(text string, pieces []split.Piece) []jsonChunk {
	out := make([]jsonChunk, 0, len(pieces))
	for i, p := range pieces {
		s := text[p.Start:p.End]
		c := jsonChunk{Index: i, Start: p.Start, End: p.End, Tokens: split.EstimateTokens(s), Heading: p.Heading, Page: p.Page, Text: s}
		if p.Parent != (split.Span{}) {
			c.Parent = &jsonSpan{p.Parent.Start, p.Parent.End}
		}
		out = append(out, c)
	}
	return out
}
