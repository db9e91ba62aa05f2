package read

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/split"
)

// errNotUTF8: a text cannot be read in windows, because its bytes are not its text.
var errNotUTF8 = errors.New("the text is not UTF-8 as it stands")

// windows reads a plain text window by window. Every window ends where a paragraph ends, if it can, and is a text of its own
// to the parser and the splitter: no chunk reaches over its end. The text is the document's own bytes, so that the texts of
// chunks are read from there again.
func (r *Reader) windows(ctx context.Context, in Input, warnings []string) (*Document, error) {
	d := &Document{Type: parse.TypePlain, Bytes: in.Size, Warnings: warnings}
	err := r.eachWindow(ctx, in, func(start int, window []byte) error {
		pieces, text, err := r.cutWindow(ctx, window)
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
	d.texts = func(ctx context.Context, pieces []split.Piece, yield func(int, string) error) error {
		return texts(ctx, in, pieces, yield)
	}
	return d, nil
}

// cutWindow cuts one window; a blank one has no pieces.
func (r *Reader) cutWindow(ctx context.Context, window []byte) ([]split.Piece, parse.Text, error) {
	if !utf8.Valid(window) {
		return nil, parse.Text{}, errNotUTF8
	}
	if len(bytes.TrimFunc(window, func(c rune) bool { return unicode.IsSpace(c) || !unicode.IsGraphic(c) })) == 0 {
		return nil, parse.Text{}, nil
	}
	text, pieces, err := r.cut(ctx, parse.Input{Content: window, DeclaredType: "text/plain; charset=utf-8"})
	if err == nil && len(text.Body) != len(window) {
		err = errNotUTF8
	}
	return pieces, text, err
}

// eachWindow gives the windows of a text with their places, and reads to the end, where a blob is verified.
func (r *Reader) eachWindow(ctx context.Context, in Input, yield func(start int, window []byte) error) error {
	source, err := in.Open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	buf, have, start := make([]byte, r.window), 0, 0
	for {
		n, err := io.ReadFull(source, buf[have:])
		have += n
		last := err == io.EOF || err == io.ErrUnexpectedEOF // of ReadFull itself: one that wraps them is no end
		if err != nil && !last {
			return err
		}
		if err := in.sized(start+have, last); err != nil {
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

// texts reads a text again and gives the slices of the pieces, which begin in ascending order. Before it gives the last one it
// reads to the end, where a blob is verified.
func texts(ctx context.Context, in Input, pieces []split.Piece, yield func(int, string) error) error {
	source, err := in.Open(ctx)
	if err != nil {
		return err
	}
	defer source.Close()
	r, at := bufio.NewReaderSize(source, textBuffer), 0
	for i, p := range pieces {
		if _, err := r.Discard(p.Start - at); err != nil {
			return ended(in, at, err)
		}
		at = p.Start
		b, err := r.Peek(p.End - p.Start)
		if err != nil {
			return ended(in, at+len(b), err)
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

// ended: where the source ends without an error of its own, it ends sooner than it did before.
func ended(in Input, have int, err error) error {
	if err == io.EOF { //nolint:errorlint // one that wraps it is an error of its own
		return in.sized(have, true)
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
