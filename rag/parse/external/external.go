// Package external reads documents with programs of other people: a command, or a service by HTTP.
//
// The command gets the document on standard input, its type and name as WAYMARK_CONTENT_TYPE and WAYMARK_NAME, and writes
// what it has read to standard output: plain text with a form feed between pages, or a reply in JSON, which begins with "{".
// The service gets the document as the body of a POST request and answers with text or the same JSON. docs/parsers.md is the
// protocol in full.
package external

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// When a program is asked.
const (
	Always = "always"  // for every document of its types, instead of the built-in reader
	NoText = "no_text" // for those that the built-in readers find no text in, or have no reader for
)

// DefaultMemory is what a command and all that it starts may have, in MiB.
const DefaultMemory = 1024

// Config is one program.
type Config struct {
	// Types are media types of documents as Waymark detects them, such as "application/pdf"; "image/*" means all images.
	Types []string `json:"types"`
	// When is Always or NoText; "" means Always.
	When string `json:"when,omitempty"`
	// Command and its arguments, without a shell; or URL of a service: one of the two.
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
	// Memory of the command with all that it starts, in MiB; 0 means DefaultMemory. It is measured on Linux alone.
	Memory int `json:"memory,omitempty"`
}

// Validate says what is wrong with a Config: one error for each field, joined. It looks for no command and asks no service.
func (c Config) Validate() error {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if len(c.Types) == 0 {
		add("types must name a content type at least")
	}
	for _, t := range c.Types {
		main, sub, found := strings.Cut(t, "/")
		if parsed, params, err := mime.ParseMediaType(t); !found || err != nil || parsed != t || len(params) > 0 || main == "*" || sub == "" {
			add("types: %q is not a content type such as image/png or image/*, in lower case and without parameters", t)
		}
	}
	if !slices.Contains([]string{"", Always, NoText}, c.When) {
		add("when: %q is neither %s nor %s", c.When, Always, NoText)
	}
	switch {
	case (len(c.Command) == 0) == (c.URL == ""):
		add("one of command and url must be given")
	case len(c.Command) > 0 && strings.TrimSpace(c.Command[0]) == "":
		add("command begins with an empty word")
	case c.URL != "":
		if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			add("url: %q is not an address such as http://127.0.0.1:9000/parse", c.URL)
		}
	}
	if c.Memory < 0 || c.Memory > 1<<20 || c.Memory > 0 && c.URL != "" {
		add("memory must be 0 to %d MiB, and is for commands alone", 1<<20)
	}
	return errors.Join(problems...)
}

// Input is a document.
type Input struct {
	Content []byte
	Type    string // its media type
	Name    string // "" if it has none
}

// Result is what a program has read.
type Result struct {
	Title    string
	Format   string // of the text: "text/plain", "text/markdown" or "text/html"
	Pages    []Page
	Warnings []string
}

// Page is the text of one page; Number is 0 where there are no pages.
type Page struct {
	Number int
	Text   string
}

// Reasons of failures that are not the document's.
const (
	ReasonUnavailable = "parser_unavailable" // it cannot be started or reached, or says so
	ReasonFailed      = "parser_failed"      // it ended in disorder, gives no answer in time, or its reply cannot be understood
)

// ErrNoAnswer is in the *Error of a service that gives no answer in time.
var ErrNoAnswer = errors.New("the parser gives no answer")

// Error is a failure that is not known to be the document's. Those that are, are a *flow.Error.
type Error struct {
	Class  rag.Class // ClassOutage or ClassTransient
	Reason string
	After  time.Duration // how long the service asks to be left alone; 0 if it does not say
	Err    error
}

func (e *Error) Error() string { return e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

func outage(format string, args ...any) *Error {
	return &Error{Class: rag.ClassOutage, Reason: ReasonUnavailable, Err: fmt.Errorf(format, args...)}
}

func failed(format string, args ...any) *Error {
	return &Error{Class: rag.ClassTransient, Reason: ReasonFailed, Err: fmt.Errorf(format, args...)}
}

// Parsers are all programs of a configuration. They are safe for concurrent use.
type Parsers struct {
	list  []*program
	slots chan struct{}
}

// concurrent is how many documents are read by programs at a time.
const concurrent = 2

type program struct {
	Config
	path   string // of the command
	limit  int    // bytes of what it may answer
	time   time.Duration
	client *http.Client
}

// New checks the programs; a command must be there. limit bounds the text that is read from one document, in bytes;
// most is how long a program may take for one, from when it is its turn.
func New(limit int, most time.Duration, configs ...Config) (*Parsers, error) {
	p := &Parsers{slots: make(chan struct{}, concurrent)}
	for i, c := range configs {
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("parsers[%d]: %w", i, err)
		}
		// Twice the text, because JSON escapes, and something for what is around it.
		x := &program{Config: c, limit: 2*limit + 64<<10, time: most, client: newClient()}
		if x.Memory == 0 {
			x.Memory = DefaultMemory
		}
		if len(c.Command) > 0 {
			path, err := exec.LookPath(c.Command[0])
			if err == nil {
				path, err = filepath.Abs(path)
			}
			if err != nil {
				return nil, fmt.Errorf("parsers[%d]: command: %w", i, err)
			}
			x.path = path
		}
		p.list = append(p.list, x)
	}
	return p, nil
}

// Close ends the connections to services. Nothing may be read any more.
func (p *Parsers) Close() {
	for _, x := range p.list {
		x.client.CloseIdleConnections()
	}
}

// Settings names what decides about texts: the same programs, the same name; "" without any.
func (p *Parsers) Settings() string {
	if len(p.list) == 0 {
		return ""
	}
	h := sha256.New()
	for _, x := range p.list {
		_ = json.NewEncoder(h).Encode(x.Config) // a hash takes everything, and strings can be encoded
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// For is the first program for documents of a type at a time, Always or NoText; nil if there is none.
func (p *Parsers) For(kind, when string) *Parser {
	for _, x := range p.list {
		if (x.When == NoText) == (when == NoText) && x.reads(kind) {
			return &Parser{x, p.slots}
		}
	}
	return nil
}

func (x *program) reads(kind string) bool {
	main, _, _ := strings.Cut(kind, "/")
	return kind != "" && (slices.Contains(x.Types, kind) || slices.Contains(x.Types, main+"/*"))
}

// Parser is one program.
type Parser struct {
	program *program
	slots   chan struct{}
}

// Read reads a document. A document that cannot be read is a *flow.Error; every other failure is an *Error, or that of ctx when
// it ends: then the command and all that it has started are killed. The clocks of ctx by flow.WithTime are held meanwhile: the
// wait for other documents is not this one's, and the program has its own limit.
func (p *Parser) Read(ctx context.Context, in Input) (Result, error) {
	defer flow.Hold(ctx)()
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	if p.program.URL != "" {
		return p.program.post(ctx, in)
	}
	return p.program.run(ctx, in)
}
