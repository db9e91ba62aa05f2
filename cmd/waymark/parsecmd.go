package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/waymarkhq/waymark/cmd/waymark/internal/node"
	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
)

// readFlags say which document a command reads on this machine, without the pipeline.
type readFlags struct {
	File          string      `arg:"" name:"file" help:"The document; - reads standard input."`
	Type          string      `placeholder:"TYPE" help:"Content type that a sender would declare, such as text/html."`
	Configuration configFlags `embed:""`
}

type parseCmd struct {
	Text bool `help:"Write the text alone."`
	readFlags
}

// Help is shown below the usage.
func (parseCmd) Help() string {
	return "Shows the text that the pipeline would take from the document, and its structure: each block with its kind, its bytes in the text and its page. " + moreFlags
}

// Run is called by the parser.
func (c *parseCmd) Run(ctx context.Context, env *environment) error {
	return c.read(env, func(cfg *config.Config, parser *parse.Parser, in parse.Input) error {
		text, err := wholeText(ctx, read.New(node.ReadOptions(cfg, parser, nil)), in)
		if err != nil {
			return err
		}
		return c.show(env, text)
	})
}

// wholeText joins the parts in which the pipeline reads a large text.
func wholeText(ctx context.Context, r *read.Reader, in parse.Input) (parse.Text, error) {
	var whole parse.Text
	var body strings.Builder
	err := r.Text(ctx, read.Input{Open: read.Bytes(in.Content), Size: int64(len(in.Content)), DeclaredType: in.DeclaredType, Name: in.Name}, func(start int, part parse.Text) error {
		if whole.Type == "" {
			whole = parse.Text{Title: part.Title, Type: part.Type, Language: part.Language}
		}
		body.WriteString(strings.Repeat("\n", max(0, start-body.Len())))
		body.WriteString(part.Body)
		for _, b := range part.Blocks {
			b.Start, b.End = b.Start+start, b.End+start
			whole.Blocks = append(whole.Blocks, b)
		}
		whole.Warnings = append(whole.Warnings, part.Warnings...)
		return nil
	})
	whole.Body = body.String()
	return whole, err
}

func (c *parseCmd) show(env *environment, text parse.Text) error {
	switch {
	case env.globals.JSON:
		return env.writeJSON(parsed{c.File, text.Type, text.Title, text.Language, text.Body, jsonBlocks(text.Blocks), nonNil(text.Warnings)})
	case c.Text:
		env.console.Printf("%s\n", text.Body)
		return nil
	}
	if err := env.about(text.Type, text.Title, text.Language, text.Warnings, len(text.Body), plural(len(text.Blocks), "block")); err != nil {
		return err
	}
	for _, b := range text.Blocks {
		kind := string(b.Kind)
		if b.Level > 0 {
			kind = fmt.Sprintf("%s %d", kind, b.Level)
		}
		env.console.Printf("\n%s\n%s\n", place(kind, b.Start, b.End, b.Page, ""), text.Body[b.Start:b.End])
	}
	return nil
}

// parsed is the result as JSON.
type parsed struct {
	File     string      `json:"file"`
	Type     string      `json:"type"`
	Title    string      `json:"title,omitempty"`
	Language string      `json:"language,omitempty"`
	Text     string      `json:"text"`
	Blocks   []jsonBlock `json:"blocks"`
	Warnings []string    `json:"warnings"`
}

type jsonBlock struct {
	Kind    rag.BlockKind `json:"kind"`
	Start   int           `json:"start"`
	End     int           `json:"end"`
	Level   int           `json:"level,omitempty"`
	Heading string        `json:"heading,omitempty"`
	Page    int           `json:"page,omitempty"`
}

func jsonBlocks(blocks []rag.Block) []jsonBlock {
	out := make([]jsonBlock, 0, len(blocks))
	for _, b := range blocks {
		out = append(out, jsonBlock{b.Kind, b.Start, b.End, b.Level, b.Heading, b.Page})
	}
	return out
}

func nonNil(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// about writes what is known of a document as a whole.
func (e *environment) about(kind, title, language string, warnings []string, bytes int, size string) error {
	rows := [][2]string{{"type", kind}, {"title", title}, {"language", language}, {"size", fmt.Sprintf("%s, %s of text", size, plural(bytes, "byte"))}}
	for _, w := range warnings {
		rows = append(rows, [2]string{"warning", w})
	}
	return e.properties(rows)
}

// place is the line above a part of the text.
func place(what string, start, end, page int, heading string) string {
	s := fmt.Sprintf("[%d:%d] %s", start, end, what)
	if page > 0 {
		s += fmt.Sprintf(", page %d", page)
	}
	if heading != "" {
		s += ", under " + heading
	}
	return s
}

// read gives the document to work, which reads it with the pipeline's parser. One that cannot be read ends the command as a dead one.
func (c *readFlags) read(env *environment, work func(*config.Config, *parse.Parser, parse.Input) error) error {
	cfg, err := env.load(c.Configuration, config.Target{Command: config.CommandClient})
	if err != nil {
		return err
	}
	content, err := c.content(env, cfg.Limits.DocumentBytes)
	if err != nil {
		return err
	}
	options := []parse.Option{parse.External(cfg.ParserConfigs()...)}
	if dir, err := os.UserCacheDir(); err == nil { // without a home nothing is kept
		options = append(options, parse.CacheDir(filepath.Join(dir, "waymark", "pdfium")))
	}
	parser, err := parse.New(parse.Limits{Time: cfg.Limits.ParseTime, Input: cfg.Limits.DocumentBytes}, options...)
	if err != nil {
		return err
	}
	name := c.File
	if name == "-" {
		name = ""
	}
	err = work(cfg, parser, parse.Input{Content: content, DeclaredType: c.Type, Name: filepath.ToSlash(name)})
	closed := parser.Close()
	var unreadable *parse.Error
	var unsplit *split.Error
	switch {
	case errors.As(err, &unreadable):
		return dead(c.File, unreadable.Reason, unreadable.Message)
	case errors.As(err, &unsplit):
		return dead(c.File, unsplit.Reason, unsplit.Message)
	}
	return errors.Join(err, closed)
}

// dead is how a command ends whose document the pipeline would not serve.
func dead(file, reason, message string) error {
	return &exitError{exitDead, fmt.Sprintf("%s: dead (%s): %s", file, reason, message)}
}

// content is what the file holds, or standard input; one byte more than what can be read is enough to say so.
func (c *readFlags) content(env *environment, limit int) ([]byte, error) {
	in := env.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.File, err)
	}
	return content, nil
}
