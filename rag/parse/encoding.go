package parse

import (
	"io"
	"slices"

	"golang.org/x/text/encoding"
	"golang.org/x/text/runes"
	"golang.org/x/text/transform"
)

// Encoding is how the bytes of a text are read. It is for texts that are too large to be decoded as a whole; its beginning tells it.
type Encoding struct {
	// Text is what was decoded of the bytes that it was told by.
	Text string
	// Warnings are what a reader of the whole should be told, but for characters that were replaced.
	Warnings []string
	charset  encoding.Encoding
	name     string
	skip     int
	replaced int
}

// EncodingOf tells the encoding by the beginning of a text, as Parse would; false if it is none. Input.Content may end within a
// character.
func EncodingOf(in Input) (Encoding, bool) {
	declared, label := declaredType(in.DeclaredType)
	d, ok := decode(in.Content, label, isTextType(declared))
	if !ok {
		return Encoding{}, false
	}
	e := Encoding{Text: d.text, Warnings: d.warnings, charset: d.charset, name: d.name, skip: d.skip, replaced: d.replaced}
	if d.replaced > 0 {
		e.Warnings = slices.Clone(d.warnings[1:])
	}
	return e, true
}

// UTF8 reports whether the text is in UTF-8.
func (e Encoding) UTF8() bool { return e.charset == nil }

// Reader gives what r gives as valid UTF-8. Characters that are not valid become U+FFFD. Errors of r are returned as they are.
func (e Encoding) Reader(r io.Reader) io.Reader {
	if e.skip > 0 {
		r = &skipping{r, e.skip}
	}
	if e.charset == nil {
		return transform.NewReader(r, runes.ReplaceIllFormed())
	}
	return transform.NewReader(r, e.charset.NewDecoder())
}

// Replaced is the warning about n characters that were replaced, in a text of so many; false if they are so many that the text has
// another encoding.
func (e Encoding) Replaced(n, characters int) (warning string, ok bool) {
	return replacedWarning(n, e.name), n*50 <= characters
}

// ReplacedAtFirst is the warning that Parse gives about the bytes that the encoding was told by; "" if there is none.
func (e Encoding) ReplacedAtFirst() string {
	if e.replaced == 0 {
		return ""
	}
	return replacedWarning(e.replaced, e.name)
}

// skipping leaves out the first n bytes.
type skipping struct {
	r io.Reader
	n int
}

func (s *skipping) Read(p []byte) (int, error) {
	for s.n > 0 {
		n, err := s.r.Read(p[:min(len(p), s.n)])
		s.n -= n
		if err != nil || len(p) == 0 {
			return 0, err
		}
	}
	return s.r.Read(p)
}
