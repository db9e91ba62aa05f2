// Package parse turns the bytes of a document into readable UTF-8 text with its structure.
//
// It reads plain text, Markdown, HTML, PDF, Word, PowerPoint and Excel documents, CSV and TSV, e-mail, EPUB, RTF, XML, JSON,
// JSON Lines and source code. The type is told by the content first, then by the declared
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
	"sync/atomic"
	"time"
	"unicode"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/language"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/parse/pdf"
)

// Version of the rules. A change that gives any document another text or other blocks changes it: it is part of the
// content identity of every document.
const Version = "parse/4"

// Types of documents that a Parser reads, as Text.Type names them.
const (
	TypePlain     = "text/plain"
	TypeMarkdown  = "text/markdown"
	TypeHTML      = "text/html"
	TypeJSON      = "application/json"
	TypeJSONLines = "application/x-ndjson"
	TypePDF       = "application/pdf"
	TypeDOCX      = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	TypePPTX      = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	TypeXLSX      = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	TypeCSV       = "text/csv"
	TypeTSV       = "text/tab-separated-values"
	TypeMail      = "message/rfc822"
	TypeEPUB      = "application/epub+zip"
	TypeRTF       = "application/rtf"
	TypeXML       = "application/xml"
	TypeSource    = "text/x-source"
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
	Language string   // code of ISO 639 as package language tells it; "" where it cannot, and for types that machines write
	Type     string   // one of the Type constants, or the media type of what an external program has read
}

// Error says why a document cannot be read, ever.
type Error = flow.Error

func reject(reason, format string, args ...any) error { return flow.Reject(reason, format, args...) }

// Limits of one document. A zero field means its default.
type Limits struct {
	Input int           // bytes of content; DefaultInput
	Text  int           // bytes of text read from it; DefaultText
	Time  time.Duration // DefaultTime; what an external program takes has this limit of its own
}

// Defaults of Limits. Input is what a record of the documents topic may have.
const (
	DefaultInput = 12 << 20
	DefaultText  = 24 << 20
	DefaultTime  = 30 * time.Second
)

// maxBlocks bounds the blocks of a text; from there on neighbours are joined.
const maxBlocks = 100_000

// Parser reads documents. It is safe for concurrent use. Close frees what reading PDF documents has taken.
type Parser struct {
	limits  Limits
	pdf     *pdf.Engine
	outside *external.Parsers
	readers map[string]reader // by type
	grace   time.Duration     // between the end of the time and giving up a reader that does not stop
	strays  atomic.Int32      // readers that were given up and still run
}

// reader reads documents of one type.
type reader func(context.Context, source) (Text, error)

// source is a document whose type is known.
type source struct {
	content []byte // as it was submitted
	text    string // decoded, without a byte order mark but for plain text; "" where the format is not text
	name    string
	depth   int // of messages and archives around it
}

// Option of a Parser.
type Option func(*options)

type options struct {
	pdf      pdf.Options
	external []external.Config
}

// CacheDir names the folder in which the compiled PDFium is kept. It is made if it is missing; processes may share it.
// Without it the first PDF document of each process waits some 10 seconds.
func CacheDir(dir string) Option { return func(o *options) { o.pdf.CacheDir = dir } }

// External names programs that read documents instead of the built-in readers, or where these find no text.
func External(programs ...external.Config) Option {
	return func(o *options) { o.external = programs }
}

// New checks the limits and the external programs, and returns a Parser.
func New(l Limits, settings ...Option) (*Parser, error) {
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
	var o options
	for _, set := range settings {
		set(&o)
	}
	outside, err := external.New(l.Text, l.Time, o.external...)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	p := &Parser{limits: l, pdf: pdf.New(o.pdf), outside: outside, grace: stopGrace}
	p.readers = p.allReaders()
	return p, nil
}

// Close frees what the Parser holds. Nothing may be read any more.
func (p *Parser) Close() error {
	p.outside.Close()
	return p.pdf.Close()
}

// Settings name everything beside a document that decides which text is read from it: Version, and the external programs.
func (p *Parser) Settings() string {
	if s := p.outside.Settings(); s != "" {
		return Version + "+" + s
	}
	return Version
}

// Parse reads one document. A document that cannot be read is an *Error: rag.ReasonEmptyText (no content at all),
// ReasonNoText (nothing to read in it), ReasonScanWithoutText, ReasonUnsupportedType, ReasonBrokenJSON, ReasonBrokenFile,
// ReasonEncrypted, ReasonArchiveBomb, ReasonTooLarge, ReasonMemory, ReasonTimeout or ReasonPanic. When ctx ends, Parse returns its error;
// when it ends before PDFium was ready for the first PDF document, an error that blames nothing but that. An *external.Error says
// that an external program failed and the document may be innocent.
func (p *Parser) Parse(ctx context.Context, in Input) (Text, error) {
	switch {
	case len(in.Content) == 0:
		return Text{}, reject(rag.ReasonEmptyText, "the document is empty")
	case len(in.Content) > p.limits.Input:
		return Text{}, reject(rag.ReasonTooLarge, "the document has %d bytes, more than the limit of %d", len(in.Content), p.limits.Input)
	}
	if isPDF(in.Content) { // so that the wait is not taken for the document's
		if err := p.pdf.Ready(ctx); err != nil && !errors.Is(ctx.Err(), context.Canceled) {
			return Text{}, err
		}
	}
	limited, cancel := flow.WithTime(ctx, p.limits.Time)
	defer cancel()
	text, err := p.guarded(limited, in)
	var outside *external.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return Text{}, fmt.Errorf("parse: %w", ctx.Err())
	case errors.Is(err, pdf.ErrNotReady), errors.As(err, &outside):
		return Text{}, err
	case ctx.Err() != nil:
		return Text{}, fmt.Errorf("parse: %w", ctx.Err())
	case limited.Err() != nil:
		return Text{}, reject(rag.ReasonTimeout, "reading the document takes longer than the limit of %v", p.limits.Time)
	case err != nil:
		return Text{}, err
	}
	return text, nil
}

func errTextLimit(limit int) error {
	return reject(rag.ReasonTooLarge, "the text of the document has more bytes than the limit of %d", limit)
}

// read reads a document that lies in depth messages and archives.
func (p *Parser) read(ctx context.Context, in Input, depth int) (Text, error) {
	d, err := detect(in)
	if x := p.outside.For(d.kind, external.Always); x != nil {
		return p.readOutside(ctx, x, in, d, depth)
	}
	if err != nil {
		return p.orOutside(ctx, in, d, depth, err)
	}
	s := source{content: in.Content, text: d.text, name: in.Name, depth: depth}
	if d.kind != TypePlain {
		s.text = trimMark(d.text)
	}
	text, err := p.readers[d.kind](ctx, s)
	text.Type, text.Warnings = d.kind, append(d.warnings, text.Warnings...)
	if text, err = p.checked(ctx, text, err); err != nil {
		return p.orOutside(ctx, in, d, depth, err)
	}
	return text, nil
}

// checked is what every reader's text must be.
func (p *Parser) checked(ctx context.Context, text Text, err error) (Text, error) {
	switch {
	case err != nil:
		return Text{}, err
	case ctx.Err() != nil:
		return Text{}, ctx.Err()
	case !visible(text.Body):
		return Text{}, reject(rag.ReasonNoText, "there is no text in the document (%s)", text.Type)
	case len(text.Body) > p.limits.Text:
		return Text{}, errTextLimit(p.limits.Text)
	}
	if !noLanguage[text.Type] {
		text.Language = language.Detect(text.Body)
	}
	return text, nil
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
