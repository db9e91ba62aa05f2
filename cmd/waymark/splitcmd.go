package main

import (
	"context"
	"fmt"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/node"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
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
	return c.read(env, func(cfg *config.Config, parser *parse.Parser, in parse.Input) error {
		splitter, err := split.New(node.SplitOptions(cfg))
		if err != nil {
			return err
		}
		d, err := read.New(node.ReadOptions(cfg, parser, splitter)).Read(ctx, read.Input{Open: read.Bytes(in.Content), Size: int64(len(in.Content)),
			DeclaredType: in.DeclaredType, Name: in.Name})
		if err != nil {
			return err
		}
		if env.globals.JSON {
			chunks, err := jsonChunks(ctx, d)
			if err != nil {
				return err
			}
			return env.writeJSON(chunked{c.File, d.Type, d.Title, splitter.Settings(), chunks, nonNil(d.Warnings)})
		}
		return c.show(ctx, env, d)
	})
}

func (c *splitCmd) show(ctx context.Context, env *environment, d *read.Document) error {
	if err := env.about(d.Type, d.Title, d.Language, d.Warnings, int(d.Bytes), plural(len(d.Pieces), "chunk")); err != nil {
		return err
	}
	end := 0
	return d.Texts(ctx, func(i int, text, _ string) error {
		p := d.Pieces[i]
		if p.Parent != (split.Span{}) && (i == 0 || p.Parent != d.Pieces[i-1].Parent) {
			env.console.Printf("\n%s\n", place("parent", p.Parent.Start, p.Parent.End, 0, ""))
		}
		what := fmt.Sprintf("chunk %d, %s", i, plural(split.EstimateTokens(text), "token"))
		if p.Start < end {
			what += fmt.Sprintf(", %s repeated", plural(end-p.Start, "byte"))
		}
		end = p.End
		env.console.Printf("\n%s\n%s\n", place(what, p.Start, p.End, p.Page, p.Heading), text)
		return nil
	})
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

func jsonChunks(ctx context.Context, d *read.Document) ([]jsonChunk, error) {
	out := make([]jsonChunk, 0, len(d.Pieces))
	err := d.Texts(ctx, func(i int, text, _ string) error {
		p := d.Pieces[i]
		c := jsonChunk{Index: i, Start: p.Start, End: p.End, Tokens: split.EstimateTokens(text), Heading: p.Heading, Page: p.Page, Text: text}
		if p.Parent != (split.Span{}) {
			c.Parent = &jsonSpan{p.Parent.Start, p.Parent.End}
		}
		out = append(out, c)
		return nil
	})
	return out, err
}
