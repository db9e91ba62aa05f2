package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/waymarkhq/waymark/config"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/language"
	"github.com/waymarkhq/waymark/rag/parse"
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
	text, _, err := c.read(ctx, env)
	switch {
	case err != nil:
		return err
	case env.globals.JSON:
		return env.writeJSON(parsed{c.File, text.Type, text.Title, text.Language, text.Body, jsonBlocks(text.Blocks), nonNil(text.Warnings)})
	case c.Text:
		env.console.Printf("%s\n", text.Body)
		return nil
	}
	if err := env.about(text, plural(len(text.Blocks), "block")); err != nil {
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
func (e *environment) about(text parse.Text, size string) error {
	rows := [][2]string{{"type", text.Type}, {"title", text.Title}, {"language", text.Language}, {"size", fmt.Sprintf("%s, %s of text", size, plural(len(text.Body), "byte"))}}
	for _, w := range text.Warnings {
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

// read reads the document as the chunker would. A document that cannot be read ends the command as a dead one.
func (c *readFlags) read(ctx context.Context, env *environment) (parse.Text, *config.Config, error) {
	cfg, err := env.load(c.Configuration, config.Target{Command: config.CommandClient})
	if err != nil {
		return parse.Text{}, nil, err
	}
	content, err := c.content(env)
	if err != nil {
		return parse.Text{}, nil, err
	}
	options := []parse.Option{parse.External(cfg.ParserConfigs()...)}
	if dir, err := os.UserCacheDir(); err == nil { // without a home nothing is kept
		options = append(options, parse.CacheDir(filepath.Join(dir, "waymark", "pdfium")))
	}
	parser, err := parse.New(parse.Limits{Time: cfg.Limits.ParseTime}, options...)
	if err != nil {
		return parse.Text{}, nil, err
	}
	name := c.File
	if name == "-" {
		name = ""
	}
	text, err := parser.Parse(ctx, parse.Input{Content: content, DeclaredType: c.Type, Name: filepath.ToSlash(name)})
	closed := parser.Close()
	var bad *parse.Error
	if errors.As(err, &bad) {
		return text, nil, dead(c.File, bad.Reason, bad.Message)
	}
	return text, cfg, errors.Join(err, closed)
}

// dead is how a command ends whose document the pipeline would not serve.
func dead(file, reason, message string) error {
	return &exitError{exitDead, fmt.Sprintf("%s: dead (%s): %s", file, reason, message)}
}

// content is what the file holds, or standard input; one byte more than what can be read is enough to say so.
func (c *readFlags) content(env *environment) ([]byte, error) {
	in := env.stdin
	if c.File != "-" {
		f, err := os.Open(c.File)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	content, err := io.ReadAll(io.LimitReader(in, parse.DefaultInput+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.File, err)
	}
	return content, nil
}
