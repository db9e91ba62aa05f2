// Package read turns a document of any size into the chunks that it is found by: whole where its format asks for it, in
// windows where it is plain text or a table, so that memory does not grow with it.
package read

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/waymarkhq/waymark/internal/fault"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/language"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/split"
)

// Version of the rules, by which a text is cut into windows and its language told. A change that gives any document other chunks changes it.
const Version = "read/2;" + language.Version

// Limits that are constants.
const (
	// WindowBytes is how much of a plain text is read at once. A text of at most twice that is read as a whole.
	WindowBytes = 4 << 20
	// MaxTextFormat is the largest document of a format that is text and is read as a tree: HTML, Markdown, JSON, XML, RTF, source code.
	MaxTextFormat = parse.DefaultInput
	// smallBytes is what a document may have to be parsed without a look at how much is being parsed already.
	smallBytes = 1 << 20
)

// Parser turns a document's bytes into text.
type Parser interface {
	Parse(ctx context.Context, in parse.Input) (parse.Text, error)
}

// Input is a document as it was submitted.
type Input struct {
	// Open gives its bytes from the beginning. It may be called several times, and must give the same each time. Its errors,
	// and those of reading, are returned as they are.
	Open func(ctx context.Context) (io.ReadCloser, error)
	// Size is how many bytes it gives. A source that gives more or fewer was not read: that is an error of neither type that
	// speaks of the document.
	Size int64
	// DeclaredType and Name as in parse.Input.
	DeclaredType string
	Name         string
}

// Bytes is an Open for content in memory.
func Bytes(content []byte) func(context.Context) (io.ReadCloser, error) {
	return func(context.Context) (io.ReadCloser, error) { return memory{bytes.NewReader(content), content}, nil }
}

// memory is content that need not be copied to be read as a whole.
type memory struct {
	*bytes.Reader
	content []byte
}

func (memory) Close() error { return nil }

// Options of a Reader.
type Options struct {
	Parser    Parser
	Splitter  split.Splitter
	MaxPieces int           // of a document; split.DefaultMaxPieces if 0
	MaxBytes  int64         // of a document; parse.DefaultInput if 0
	Time      time.Duration // for a document that is read as a whole, or for a window; no limit if 0
}

// Reader reads documents. It is safe for concurrent use: of documents that are read as a whole, no more than Options.MaxBytes
// is being parsed at once, small ones apart.
type Reader struct {
	o      Options
	window int // WindowBytes
	budget *semaphore.Weighted
}

// New makes a Reader.
func New(o Options) *Reader {
	if o.MaxPieces == 0 {
		o.MaxPieces = split.DefaultMaxPieces
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = parse.DefaultInput
	}
	return &Reader{o: o, window: WindowBytes, budget: semaphore.NewWeighted(o.MaxBytes)}
}

// Document is what was read.
type Document struct {
	Type     string
	Title    string
	Language string // as parse.Text.Language
	Warnings []string
	Pieces   []split.Piece
	Bytes    int64 // of the extracted text
	texts    func(ctx context.Context, pieces []split.Piece, yield func(i int, text string) error) error
}

// Texts gives the text of each piece in order, and that of its parent ("" if it has none), until yield returns an error, which is
// returned. It may be called several
// times, and gives the same each time; the document's bytes are read again where they were not kept.
func (d *Document) Texts(ctx context.Context, yield func(i int, text, parent string) error) error {
	if len(d.Pieces) == 0 || d.Pieces[0].Parent == (split.Span{}) {
		return d.texts(ctx, d.Pieces, func(i int, text string) error { return yield(i, text, "") })
	}
	var parents []split.Piece
	for _, p := range d.Pieces {
		if n := len(parents); n == 0 || parents[n-1].Start != p.Parent.Start {
			parents = append(parents, split.Piece{Start: p.Parent.Start, End: p.Parent.End})
		}
	}
	next := 0
	return d.texts(ctx, parents, func(n int, text string) error {
		for ; next < len(d.Pieces) && d.Pieces[next].Parent.Start == parents[n].Start; next++ {
			p := d.Pieces[next]
			if err := yield(next, text[p.Start-p.Parent.Start:p.End-p.Parent.Start], text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Read reads one document. One that cannot be read is a *parse.Error or a *split.Error; the end of Options.Time is a *parse.Error
// too. Errors of Input.Open and of ctx are returned as they are.
func (r *Reader) Read(ctx context.Context, in Input) (*Document, error) {
	l, err := r.look(ctx, in)
	if err != nil {
		return nil, err
	}
	if l.parts != nil {
		d, err := r.inParts(ctx, l)
		if !errors.Is(err, errOtherText) {
			return d, err
		}
	}
	if in.Size > l.limit {
		return nil, tooLarge(in.Size, l.limit, largeFormats)
	}
	return r.whole(ctx, in)
}

// Text gives the extracted text of a document in parts, each with its place in the text, which the pieces of Read refer to. Where it is
// not read in windows there is one part. What is only known at the end comes as warnings of a part without text, at -1. Errors as of
// Read, but for those of the splitter.
func (r *Reader) Text(ctx context.Context, in Input, yield func(start int, part parse.Text) error) error {
	l, err := r.look(ctx, in)
	if err != nil {
		return err
	}
	if l.parts != nil {
		err := r.eachPart(ctx, l, yield)
		if !errors.Is(err, errOtherText) {
			return err
		}
	}
	if in.Size > l.limit {
		return tooLarge(in.Size, l.limit, largeFormats)
	}
	content, err := readAll(ctx, in)
	if err != nil {
		return err
	}
	text, err := r.o.Parser.Parse(ctx, parse.Input{Content: content, DeclaredType: in.DeclaredType, Name: in.Name})
	if err != nil {
		return err
	}
	return yield(0, text)
}

const largeFormats = "; only plain text, CSV, PDF, Office documents, EPUB and e-mail may be larger"

func tooLarge(size, limit int64, but string) error {
	return &parse.Error{Reason: rag.ReasonTooLarge, Message: fmt.Sprintf("the document has %d bytes, more than the limit of %d%s", size, limit, but)}
}

// whole reads a document in memory.
func (r *Reader) whole(ctx context.Context, in Input) (*Document, error) {
	if in.Size > smallBytes {
		if err := r.budget.Acquire(ctx, in.Size); err != nil {
			return nil, err
		}
		defer r.budget.Release(in.Size)
	}
	content, err := readAll(ctx, in)
	if err != nil {
		return nil, err
	}
	text, pieces, err := r.cut(ctx, parse.Input{Content: content, DeclaredType: in.DeclaredType, Name: in.Name})
	if err != nil {
		return nil, err
	}
	body := text.Body
	return &Document{Type: text.Type, Title: text.Title, Language: text.Language, Warnings: text.Warnings, Pieces: pieces, Bytes: int64(len(body)),
		texts: func(_ context.Context, pieces []split.Piece, yield func(int, string) error) error {
			for i, p := range pieces {
				if err := yield(i, body[p.Start:p.End]); err != nil {
					return err
				}
			}
			return nil
		}}, nil
}

// cut parses and splits, within the time for it.
func (r *Reader) cut(ctx context.Context, in parse.Input) (text parse.Text, pieces []split.Piece, err error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if r.o.Time > 0 {
		limited, cancel = flow.WithTime(ctx, r.o.Time)
	}
	defer cancel()
	fault.Parse(in.Content)
	if text, err = r.o.Parser.Parse(limited, in); err == nil {
		pieces, err = r.o.Splitter.Split(limited, text.Body, text.Blocks)
	}
	return text, pieces, r.timedOut(ctx, limited, err)
}

// timedOut tells the end of the time from the end of ctx.
func (r *Reader) timedOut(ctx, limited context.Context, err error) error {
	if errors.Is(err, context.DeadlineExceeded) && limited.Err() != nil && ctx.Err() == nil { // not one that a parser has met
		return &parse.Error{Reason: rag.ReasonTimeout, Message: fmt.Sprintf("reading the document took longer than %s", r.o.Time)}
	}
	return err
}

// readAll reads the content to its end, where a blob is verified.
func readAll(ctx context.Context, in Input) ([]byte, error) {
	source, err := in.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	if m, ok := source.(memory); ok {
		return m.content, nil
	}
	b := bytes.NewBuffer(make([]byte, 0, in.Size+bytes.MinRead)) // room to see the end without growing
	if _, err := b.ReadFrom(source); err != nil {
		return nil, err
	}
	if err := in.sized(b.Len(), true); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
