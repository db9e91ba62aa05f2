package read

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse"
)

// headBytes is how much of a large document tells what it is.
const headBytes = 256 << 10

// look is how a document is to be read.
type look struct {
	in       Input
	parts    partsReader // nil if it is read as a whole
	kind     string      // its type, if it is read in parts
	warnings []string
	limit    int64 // of a document that is read as a whole
}

// look tells by the size and the beginning of a document how it is read.
func (r *Reader) look(ctx context.Context, in Input) (look, error) {
	switch {
	case in.Size == 0:
		return look{}, &parse.Error{Reason: rag.ReasonEmptyText, Message: "the document is empty"}
	case in.Size > r.o.MaxBytes:
		return look{}, tooLarge(in.Size, r.o.MaxBytes, "")
	case in.Size <= 2*int64(r.window):
		return look{limit: r.o.MaxBytes}, nil
	}
	head, err := readHead(ctx, in)
	if err != nil {
		return look{}, err
	}
	if bytes.Contains(head[:min(len(head), 1<<10)], []byte("%PDF-")) || bytes.HasPrefix(head, []byte("PK\x03\x04")) {
		return look{limit: r.o.MaxBytes}, nil
	}
	start := parse.Input{Content: head[:border(head)], DeclaredType: in.DeclaredType, Name: in.Name}
	text, err := r.o.Parser.Parse(ctx, start)
	if err != nil {
		return look{limit: MaxTextFormat}, ctx.Err() // reading it as a whole will say what is wrong
	}
	l := look{in: in, limit: MaxTextFormat, kind: text.Type, warnings: text.Warnings}
	if text.Type == parse.TypeMail {
		l.limit = r.o.MaxBytes
	}
	encoding, ok := parse.EncodingOf(start)
	if !ok {
		return l, nil
	}
	l.warnings = slices.DeleteFunc(slices.Clone(l.warnings), func(w string) bool { return w == encoding.ReplacedAtFirst() })
	switch text.Type {
	case parse.TypePlain:
		if text.Body != encoding.Text || !saidPlain(in) && cutTree(text.Body) {
			break // read by another program, or perhaps JSON or XML
		}
		if text.Body == string(start.Content) {
			l.parts = utf8Text{in, r.window, head}
		} else {
			l.parts = encodedText{in, r.window, encoding}
		}
	case parse.TypeCSV, parse.TypeTSV:
		if sameTable(text, encoding.Text) {
			l.parts = tableText{in, r.window, text.Type, encoding, head, encoding.ReplacedAtFirst() != ""}
		}
	}
	return l, nil
}

// sameTable reports whether a text was read by the built-in reader of tables.
func sameTable(read parse.Text, table string) bool {
	var b strings.Builder
	whole := 16*len(table) + 1 // more than its text can have: an empty cell is three bytes, and a header is repeated
	err := parse.TableParts(strings.NewReader(table), read.Type, whole, func(part parse.Text) error {
		b.WriteString(part.Body)
		return nil
	})
	return err == nil && b.String() == read.Body
}

// readHead reads the beginning of a document.
func readHead(ctx context.Context, in Input) ([]byte, error) {
	source, err := in.open(ctx)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	head := make([]byte, min(in.Size, headBytes))
	if _, err := io.ReadFull(source, head); err != nil {
		return nil, err
	}
	return head, nil
}

// open gives the document's bytes, and an error if they are not as many as it has.
func (in Input) open(ctx context.Context) (io.ReadCloser, error) {
	source, err := in.Open(ctx)
	if err != nil {
		return nil, err
	}
	return &sized{ReadCloser: source, in: in}, nil
}

// sized is a source whose end comes where it should.
type sized struct {
	io.ReadCloser
	in   Input
	have int
}

func (s *sized) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	s.have += n
	ended := err == io.EOF || err == io.ErrUnexpectedEOF //nolint:errorlint // one that wraps them is no end
	if err != nil && !ended {
		return n, err
	}
	if wrong := s.in.sized(s.have, ended); wrong != nil {
		return n, wrong
	}
	if ended {
		return n, io.EOF
	}
	return n, nil
}

// saidPlain: the sender, or the name, says that it is plain text.
func saidPlain(in Input) bool {
	declared, _, _ := strings.Cut(in.DeclaredType, ";")
	switch strings.ToLower(path.Ext(in.Name)) {
	case ".txt", ".text", ".log":
		return true
	}
	return strings.EqualFold(strings.TrimSpace(declared), parse.TypePlain)
}

// cutTree: the whole of it may be JSON or XML where its beginning, cut off, is neither.
func cutTree(head string) bool {
	head = strings.TrimLeft(head, " \t\r\n\ufeff")
	return head != "" && strings.Contains("{[<", head[:1])
}

// errNotUTF8: a text cannot be read in windows of its own bytes, because they are not its text.
type errNotUTF8 struct{ sample []byte }

func (errNotUTF8) Error() string { return "the text is not UTF-8 as it stands" }

// errOtherText: a document is not what its beginning said.
var errOtherText = errors.New("the text goes on in another encoding")

// encoded is how a text is read whose bytes are not UTF-8 from some place on.
func (l look) encoded(window int, bad errNotUTF8) (look, bool) {
	encoding, ok := parse.EncodingOf(parse.Input{Content: bad.sample, DeclaredType: l.in.DeclaredType, Name: l.in.Name})
	if !ok {
		return l, false
	}
	l.warnings = append(slices.Clone(l.warnings), encoding.Warnings...)
	if _, rows := l.parts.(tableText); rows {
		l.parts = tableText{l.in, window, l.kind, encoding, nil, true}
	} else {
		l.parts = encodedText{l.in, window, encoding}
	}
	return l, true
}

// utf8Only is a text in UTF-8, and errNotUTF8 where it is not.
type utf8Only struct {
	r    io.Reader
	head []byte
	rest []byte // of a character that is cut
	seen []byte // as accents gives it
}

// mostAccents is how many bytes of the characters that show a text to be UTF-8 are kept.
const mostAccents = 64 << 10

// accents adds the characters of a text that have several bytes: where they are many, few bytes that are not UTF-8 are damage, and no
// other charset.
func accents(seen, text []byte) []byte {
	for i := 0; i < len(text) && len(seen) < mostAccents; i++ {
		if text[i] >= utf8.RuneSelf {
			_, n := utf8.DecodeRune(text[i:])
			seen = append(seen, text[i:i+n]...)
			i += n - 1
		}
	}
	return seen
}

func (u *utf8Only) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	text := append(u.rest, p[:n]...)
	u.rest = nil
	for i := max(0, len(text)-utf8.UTFMax+1); i < len(text) && err == nil; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			text, u.rest = text[:i], bytes.Clone(text[i:])
		}
	}
	if !utf8.Valid(text) {
		more, err := io.ReadAll(io.LimitReader(u.r, headBytes)) // a few letters tell no charset
		if err != nil {
			return 0, err
		}
		return 0, errNotUTF8{slices.Concat(u.head, u.seen, text, more)}
	}
	u.seen = accents(u.seen, text)
	return n, err
}
