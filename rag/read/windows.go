package read

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/split"
)

// partsReader reads a text in parts, of which each is one to the splitter: no chunk reaches over its end. It reads to the end of
// the document, where a blob is verified.
type partsReader interface {
	// each gives the parts with their places in the text, and in the end what there is to warn of.
	each(ctx context.Context, yield func(start int, part parse.Text) error) (warnings []string, err error)
	// texts gives slices of the text, which begin in ascending order.
	texts(ctx context.Context, pieces []split.Piece, yield func(i int, text string) error) error
}

// eachPart gives the parts of a text. One whose encoding is not what its beginning said is errOtherText before any part was given.
func (r *Reader) eachPart(ctx context.Context, l look, yield func(start int, part parse.Text) error) error {
	l, err := r.settled(ctx, l)
	if err != nil {
		return err
	}
	first := true
	warnings, err := l.parts.each(ctx, func(start int, part parse.Text) error {
		if part.Type == "" && !blank(part.Body) {
			if part, err = r.o.Parser.Parse(ctx, plainInput(part)); err != nil {
				return err
			}
		}
		if part.Type = l.kind; first {
			part.Warnings, first = append(l.warnings, part.Warnings...), false
		}
		return yield(start, part)
	})
	if err != nil || len(warnings) == 0 {
		return err
	}
	return yield(-1, parse.Text{Type: l.kind, Warnings: warnings})
}

// settled reads a text once, so that it is known whether it is in one encoding to its end, and in which.
func (r *Reader) settled(ctx context.Context, l look) (look, error) {
	nothing := func(int, parse.Text) error { return nil }
	_, err := l.parts.each(ctx, nothing)
	var bad errNotUTF8
	if errors.As(err, &bad) {
		var ok bool
		if l, ok = l.encoded(r.window, bad); !ok {
			return l, errOtherText
		}
		_, err = l.parts.each(ctx, nothing)
	}
	return l, err
}

// inParts reads a text in parts. Of the text nothing is kept: chunks are read again.
func (r *Reader) inParts(ctx context.Context, l look) (*Document, error) {
	d, err := r.cutParts(ctx, l)
	var bad errNotUTF8
	if errors.As(err, &bad) {
		var ok bool
		if l, ok = l.encoded(r.window, bad); !ok {
			return nil, errOtherText
		}
		d, err = r.cutParts(ctx, l)
	}
	return d, err
}

func (r *Reader) cutParts(ctx context.Context, l look) (*Document, error) {
	d := &Document{Type: l.kind, Warnings: l.warnings, texts: l.parts.texts}
	warnings, err := l.parts.each(ctx, func(start int, part parse.Text) error {
		d.Bytes = int64(start + len(part.Body))
		pieces, text, err := r.cutPart(ctx, part)
		if err != nil {
			return err
		}
		if len(d.Pieces)+len(pieces) > r.o.MaxPieces {
			return &split.Error{Reason: rag.ReasonTooManyChunks,
				Message: fmt.Sprintf("the text gives more than %d chunks, the most that one document may have", r.o.MaxPieces)}
		}
		for _, p := range pieces {
			p.Start, p.End = p.Start+start, p.End+start
			if p.Parent != (split.Span{}) {
				p.Parent = split.Span{Start: p.Parent.Start + start, End: p.Parent.End + start}
			}
			d.Pieces = append(d.Pieces, p)
		}
		if d.Language == "" {
			d.Language = text.Language
		}
		d.Warnings = append(d.Warnings, text.Warnings...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	d.Warnings = append(d.Warnings, warnings...)
	return d, nil
}

// cutPart cuts one part; a blank one has no pieces. One of a plain text is parsed first.
func (r *Reader) cutPart(ctx context.Context, part parse.Text) ([]split.Piece, parse.Text, error) {
	if part.Type != "" {
		pieces, err := r.split(ctx, part)
		return pieces, part, err
	}
	if blank(part.Body) {
		return nil, parse.Text{}, nil
	}
	text, pieces, err := r.cut(ctx, plainInput(part))
	if err == nil && len(text.Body) != len(part.Body) {
		err = errOtherText
	}
	return pieces, text, err
}

// plainInput is a part of a plain text to the parser.
func plainInput(part parse.Text) parse.Input {
	return parse.Input{Content: []byte(part.Body), DeclaredType: "text/plain; charset=utf-8"}
}

func blank(text string) bool {
	return !strings.ContainsFunc(text, func(c rune) bool { return unicode.IsGraphic(c) && !unicode.IsSpace(c) })
}

// split splits a text that was parsed, within the time for it.
func (r *Reader) split(ctx context.Context, text parse.Text) ([]split.Piece, error) {
	limited, cancel := ctx, context.CancelFunc(func() {})
	if r.o.Time > 0 {
		limited, cancel = flow.WithTime(ctx, r.o.Time)
	}
	defer cancel()
	pieces, err := r.o.Splitter.Split(limited, text.Body, text.Blocks)
	return pieces, r.timedOut(ctx, limited, err)
}

// utf8Text is a plain text whose bytes are the text.
type utf8Text struct {
	in     Input
	window int
	head   []byte
}

func (t utf8Text) each(ctx context.Context, yield func(int, parse.Text) error) ([]string, error) {
	source, err := t.in.open(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	var seen []byte
	return nil, eachWindow(source, t.window, func(start int, window []byte) error {
		if !utf8.Valid(window) {
			return errNotUTF8{slices.Concat(t.head, seen, window)}
		}
		seen = accents(seen, window)
		return yield(start, parse.Text{Body: string(window)})
	})
}

func (t utf8Text) texts(ctx context.Context, pieces []split.Piece, yield func(int, string) error) error {
	source, err := t.in.open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	return cutOut(source, pieces, yield)
}

// encodedText is a plain text in another encoding.
type encodedText struct {
	in       Input
	window   int
	encoding parse.Encoding
}

func (t encodedText) each(ctx context.Context, yield func(int, parse.Text) error) ([]string, error) {
	source, err := t.in.open(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	characters, replaced := 0, 0
	err = eachWindow(t.encoding.Reader(source), t.window, func(start int, window []byte) error {
		characters += utf8.RuneCount(window)
		replaced += bytes.Count(window, []byte("\ufffd"))
		if _, ok := t.encoding.Replaced(replaced, characters); !ok {
			return errOtherText
		}
		return yield(start, parse.Text{Body: string(window)})
	})
	if err != nil || replaced == 0 {
		return nil, err
	}
	warning, _ := t.encoding.Replaced(replaced, characters)
	return []string{warning}, nil
}

func (t encodedText) texts(ctx context.Context, pieces []split.Piece, yield func(int, string) error) error {
	source, err := t.in.open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	return cutOut(t.encoding.Reader(source), pieces, yield)
}

// tableText is a table with rows on lines.
type tableText struct {
	in       Input
	window   int
	kind     string
	encoding parse.Encoding
	head     []byte // that the encoding was told by
	damaged  bool   // bytes that it has no meaning for are replaced, and counted
}

func (t tableText) each(ctx context.Context, yield func(int, parse.Text) error) ([]string, error) {
	source, err := t.in.open(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	var text io.Reader = source
	if t.encoding.UTF8() && !t.damaged {
		text = &utf8Only{r: source, head: t.head}
	}
	start, characters, replaced := 0, 0, 0
	err = parse.TableParts(t.encoding.Reader(text), t.kind, t.window, func(part parse.Text) error {
		characters += utf8.RuneCountInString(part.Body)
		replaced += strings.Count(part.Body, "\ufffd")
		if _, ok := t.encoding.Replaced(replaced, characters); !ok {
			return errOtherText
		}
		at := start
		start += len(part.Body) + parse.TablePartGap
		return yield(at, part)
	})
	if err != nil || replaced == 0 || t.encoding.UTF8() && !t.damaged {
		return nil, err
	}
	warning, _ := t.encoding.Replaced(replaced, characters)
	return []string{warning}, nil
}

func (t tableText) texts(ctx context.Context, pieces []split.Piece, yield func(int, string) error) error {
	next := 0
	give := func(p split.Piece, start int, body string) error {
		next++
		return yield(next-1, body[p.Start-start:p.End-start])
	}
	var last func() error // behind the end of the document
	_, err := t.each(ctx, func(start int, part parse.Text) error {
		for next < len(pieces) && pieces[next].Start < start+len(part.Body) {
			p := pieces[next]
			if p.Start < start || p.End > start+len(part.Body) {
				return errors.New("the table has not the text that it had before")
			}
			if next == len(pieces)-1 {
				last = func() error { return give(p, start, part.Body) }
				return nil
			}
			if err := give(p, start, part.Body); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil || last == nil {
		return err
	}
	return last()
}

// eachWindow gives the windows of a text with their places. Every window ends where a paragraph ends, if it can.
func eachWindow(source io.Reader, size int, yield func(start int, window []byte) error) error {
	buf, have, start := make([]byte, size), 0, 0
	for {
		n, err := io.ReadFull(source, buf[have:])
		have += n
		last := err == io.EOF || err == io.ErrUnexpectedEOF // of ReadFull itself: the source has others
		if err != nil && !last {
			return err
		}
		end := have
		if !last {
			end = border(buf)
		}
		if end > 0 {
			if err := yield(start, buf[:end]); err != nil {
				return err
			}
		}
		if last {
			return nil
		}
		start += end
		have = copy(buf, buf[end:have])
	}
}

// border is where a window ends that more follows: behind the last blank line of its second half, else behind the last line
// or the last space there, else before the last character, which may be cut.
func border(window []byte) int {
	half := len(window) / 2
	for _, sep := range []string{"\n\n", "\r\n\r\n", "\n", " "} {
		if i := bytes.LastIndex(window[half:], []byte(sep)); i >= 0 {
			return half + i + len(sep)
		}
	}
	end := len(window)
	for i := end - 1; i >= max(half, end-utf8.UTFMax); i-- {
		if utf8.RuneStart(window[i]) {
			return i
		}
	}
	return end
}

// textBuffer is above the bytes of any piece (split.MaxTokens, of 16 bytes at most).
const textBuffer = 256 << 10

// cutOut gives the slices of a text that are the pieces, which begin in ascending order. Before it gives the last one it reads to
// the end, where a blob is verified.
func cutOut(source io.Reader, pieces []split.Piece, yield func(int, string) error) error {
	r, at := bufio.NewReaderSize(source, textBuffer), 0
	for i, p := range pieces {
		if _, err := r.Discard(p.Start - at); err != nil {
			return ended(err)
		}
		at = p.Start
		b, err := r.Peek(p.End - p.Start)
		if err != nil {
			return ended(err)
		}
		text := string(b)
		if i == len(pieces)-1 {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
		}
		if err := yield(i, text); err != nil {
			return err
		}
	}
	return nil
}

// ended: a text that ends sooner than it did before is no end of a source that has all its bytes.
func ended(err error) error {
	if err == io.EOF { //nolint:errorlint // one that wraps it is an error of its own
		return errors.New("the document has not the text that it had before")
	}
	return err
}

// sized refuses a source that has, or at its end had, other bytes than the document. That says nothing about the document.
func (in Input) sized(have int, ended bool) error {
	switch {
	case int64(have) > in.Size:
		return fmt.Errorf("the document has more than its %d bytes", in.Size)
	case ended && int64(have) < in.Size:
		return fmt.Errorf("the document breaks off after %d of its %d bytes", have, in.Size)
	}
	return nil
}
