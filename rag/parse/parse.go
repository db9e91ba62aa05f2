// Package parse turns the bytes of a document into readable UTF-8 text with its structure.
//
// It reads plain text, Markdown, HTML, JSON and JSON Lines. The type is told by the content first, then by the declared
// type, then by the name; with one exception: what was declared as text/plain and is text stays plain text, because a
// text about HTML looks like HTML. Plain text in UTF-8 is not changed in a single byte, so that offsets into the text
// are offsets into the document; of all other formats the text is what a reader would read.
//
// A document that cannot be read is an *Error with a reason. Content is hostile until read: size, nesting, output and
// time are limited, and no input makes invalid UTF-8.
package parse

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/waymarkhq/waymark/rag"
)

// Version of the rules. A change that gives any document another text or other blocks changes it: it is part of the
// content identity of every document.
const Version = "parse/1"

// Types of documents that a Parser reads, as Text.Type names them.
const (
	TypePlain     = "text/plain"
	TypeMarkdown  = "text/markdown"
	TypeHTML      = "text/html"
	TypeJSON      = "application/json"
	TypeJSONLines = "application/x-ndjson"
)

// Input is a document as it was submitted.
type Input struct {
	Content []byte
	// DeclaredType is the content type that the sender named, with parameters; "" if none.
	DeclaredType string
	// Name is a file name, path or document id; its extension is the last hint at the type.
	Name string
}

// Text is what was read.
type Text struct {
	Title string // "" if the document names none
	// Body is valid UTF-8 with something visible in it. The offsets of blocks and chunks are byte offsets into it.
	Body     string
	Blocks   []rag.Block
	Warnings []string // sentences for people about what was guessed, replaced or left out
	Type     string   // one of the Type constants
}

// Error says why a document cannot be read, ever.
type Error struct {
	Reason  string // one of the rag.Reason constants
	Message string // one sentence for people
}

func (e *Error) Error() string { return e.Message }

func reject(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Limits of one document. A zero field means its default.
type Limits struct {
	Input int           // bytes of content; DefaultInput
	Text  int           // bytes of text read from it; DefaultText
	Time  time.Duration // DefaultTime
}

// Defaults of Limits. Input is what a record of the documents topic may have.
const (
	DefaultInput = 12 << 20
	DefaultText  = 24 << 20
	DefaultTime  = 30 * time.Second
)

// maxBlocks bounds the blocks of a text; from there on neighbours are joined.
const maxBlocks = 100_000

// Parser reads documents. It is safe for concurrent use.
type Parser struct{ limits Limits }

// New checks the limits and returns a Parser.
func New(l Limits) (*Parser, error) {
	if l.Input < 0 || l.Text < 0 || l.Time < 0 {
		return nil, fmt.Errorf("parse: a limit is negative: %+v", l)
	}
	if l.Input == 0 {
		l.Input = DefaultInput
	}
	if l.Text == 0 {
		l.Text = DefaultText
	}
	if l.Time == 0 {
		l.Time = DefaultTime
	}
	return &Parser{l}, nil
}

// errTime is the cause of a context that has used up Limits.Time.
var errTime = errors.New("the time for one document is over")

// Parse reads one document. A document that cannot be read is an *Error: rag.ReasonEmptyText (no content at all),
// ReasonNoText (nothing to read in it), ReasonUnsupportedType, ReasonBrokenJSON, ReasonTooLarge or ReasonTimeout. When
// ctx ends, Parse returns its error.
func (p *Parser) Parse(ctx context.Context, in Input) (Text, error) {
	switch {
	case len(in.Content) == 0:
		return Text{}, reject(rag.ReasonEmptyText, "the document is empty")
	case len(in.Content) > p.limits.Input:
		return Text{}, reject(rag.ReasonTooLarge, "the document has %d bytes, more than the limit of %d", len(in.Content), p.limits.Input)
	}
	limited, cancel := context.WithTimeoutCause(ctx, p.limits.Time, errTime)
	defer cancel()
	text, err := p.parse(limited, in)
	switch {
	case ctx.Err() != nil:
		return Text{}, fmt.Errorf("parse: %w", ctx.Err())
	case context.Cause(limited) == errTime:
		return Text{}, reject(rag.ReasonTimeout, "reading the document takes longer than the limit of %v", p.limits.Time)
	case err != nil:
		return Text{}, err
	case !visible(text.Body):
		return Text{}, reject(rag.ReasonNoText, "there is no text in the document (%s)", text.Type)
	case len(text.Body) > p.limits.Text:
		return Text{}, errTextLimit(p.limits.Text)
	}
	return text, nil
}

func errTextLimit(limit int) error {
	return reject(rag.ReasonTooLarge, "the text of the document has more bytes than the limit of %d", limit)
}

func (p *Parser) parse(ctx context.Context, in Input) (Text, error) {
	d, err := detect(in)
	if err != nil {
		return Text{}, err
	}
	var text Text
	switch d.kind {
	case TypePlain:
		text = Text{Body: d.text, Blocks: paragraphs(d.text)}
	case TypeMarkdown:
		text, err = p.markdown(ctx, trimMark(d.text))
	case TypeHTML:
		text, err = p.html(ctx, trimMark(d.text))
	case TypeJSON:
		text, err = p.json(ctx, trimMark(d.text))
	case TypeJSONLines:
		text, err = p.jsonLines(ctx, trimMark(d.text))
	}
	text.Type, text.Warnings = d.kind, append(d.warnings, text.Warnings...)
	return text, err
}

// visible reports whether there is anything to see in s.
func visible(s string) bool {
	for _, r := range s {
		if unicode.IsGraphic(r) && !unicode.IsSpace(r) {
			return true
		}
	}
	return false
}
