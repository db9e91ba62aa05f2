package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
	"github.com/waymarkhq/waymark/config"
)

// Exit codes. They are API.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2 // wrong usage or configuration
	exitDead        = 3 // done, but a document of this call is dead
	exitInterrupted = 130
)

// environment is what a command works with, beside its flags.
type environment struct {
	console    *console.Console
	stdin      io.Reader
	environ    []string
	getenv     func(string) string
	newRuntime func(*slog.Logger) Runtime

	globals *globals
	log     *slog.Logger
}

// exitError ends the process with a code of its own; the message may be empty where everything was said.
type exitError struct {
	code    int
	message string
}

func (e *exitError) Error() string { return e.message }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, args...)}
}

// stopParsing is how the parser's wish to end the process, after it has printed help, gets out of it.
type stopParsing struct{ code int }

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, env *environment) (code int) {
	afterHelp := exitDone
	defer func() {
		switch r := recover().(type) {
		case nil:
		case stopParsing:
			code = max(r.code, afterHelp)
		default:
			panic(r)
		}
	}()
	c := newCLI()
	parser, err := newParser(c, env)
	if err != nil {
		return env.fail(exitFailed, err.Error(), "")
	}
	if len(args) == 0 {
		args, afterHelp = []string{"--help"}, exitUsage
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		return env.fail(exitUsage, err.Error(), fmt.Sprintf("Run '%s --help' for help.", commandOf(parser, err)))
	}
	env.globals = &c.globals
	env.log = env.logger(parsed.Command())
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run(env)
	if err == nil {
		err = env.console.OutError()
	}
	if err == nil {
		return exitDone
	}
	text, advice := explain(err)
	return env.fail(codeOf(ctx, err), text, advice)
}

func newParser(c *cli, env *environment) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("waymark"),
		kong.Description("Turns documents into searchable vectors through Kafka, and loses none."),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, FlagsLast: true, WrapUpperBound: 100}),
		kong.Writers(env.console.Out(), env.console.Err()),
		kong.Exit(func(code int) { panic(stopParsing{code}) }),
		kong.ExplicitGroups([]kong.Group{
			{Key: "serve", Title: "Run the pipeline:"}, {Key: "client", Title: "Work with documents:"}, {Key: "other", Title: "Other:"},
			{Key: "sub", Title: "Commands:"}, {Key: "global", Title: "Everywhere:"}, {Key: "config", Title: "Configuration:"},
		}),
	)
}

// commandOf is the command that a parse error belongs to, as far as it was understood.
func commandOf(parser *kong.Kong, err error) string {
	var parseError *kong.ParseError
	if errors.As(err, &parseError) {
		if node := parseError.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return parser.Model.Name
}

// codeOf is the exit code that an error stands for.
func codeOf(ctx context.Context, err error) int {
	var exit *exitError
	var problems config.Problems
	var usage *ingest.UsageError
	switch {
	case errors.Is(context.Cause(ctx), errInterrupted):
		return exitInterrupted
	case errors.As(err, &exit):
		return exit.code
	case errors.As(err, &problems), errors.As(err, &usage):
		return exitUsage
	}
	return exitFailed
}

// explain says what went wrong, and what a person can do about it, where there is something.
func explain(err error) (text, advice string) {
	var broken *client.ConnectionError
	var refused *client.Error
	switch {
	case errors.As(err, &broken):
		why := broken.Err
		var transport *url.Error
		if errors.As(why, &transport) {
			why = transport.Err // without the address of the call, which says little to a person
		}
		return "the API does not answer: " + why.Error(), "Start it with 'waymark up', or name another address with --api."
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return err.Error(), "Give a token with the variable " + tokenVariable + " or with --api-token-file."
	}
	return err.Error(), ""
}

// fail says why the command ends. No text means that everything was said.
func (e *environment) fail(code int, text, advice string) int {
	switch {
	case code == exitInterrupted:
		text, advice = "interrupted", ""
	case text == "":
		return code
	}
	text = strings.TrimRight(text, "\n")
	if advice != "" {
		text += "\n" + advice
	}
	fmt.Fprintf(e.console.Err(), "waymark: %s\n", text)
	return code
}

// logger writes to standard error, in the form and from the level that the flags say.
func (e *environment) logger(command string) *slog.Logger {
	var level slog.Level
	text := e.globals.LogLevel
	if text == "" {
		text = e.defaultLevel(command)
	}
	if err := level.UnmarshalText([]byte(text)); err != nil {
		level = slog.LevelInfo // cannot be: the parser knows the levels
	}
	opts := &slog.HandlerOptions{Level: level}
	if e.globals.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(e.console.Err(), opts))
	}
	return slog.New(slog.NewTextHandler(e.console.Err(), opts))
}

// defaultLevel is info for what runs as a service. A person who looks on is told of trouble only.
func (e *environment) defaultLevel(command string) string {
	name, _, _ := strings.Cut(command, " ")
	switch {
	case name == "run", name == "broker", name == "up" && !e.console.Live():
		return "info"
	}
	return "warn"
}
