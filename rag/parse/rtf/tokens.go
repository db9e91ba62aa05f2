// Package rtf reads the text of documents in the Rich Text Format.
package rtf

import "strconv"

// tokenKind says what a token is.
type tokenKind int

const (
	tokenEnd   tokenKind = iota
	tokenOpen            // {
	tokenClose           // }
	tokenWord            // \word with a parameter
	tokenSign            // \ and a sign, such as \~ and \*
	tokenByte            // \'hh or a byte of text
)

type token struct {
	kind     tokenKind
	word     string
	value    int
	hasValue bool
	b        byte
}

// scanner splits a document into tokens.
type scanner struct {
	in  []byte
	pos int
}

func (s *scanner) next() token {
	for s.pos < len(s.in) {
		c := s.in[s.pos]
		s.pos++
		switch c {
		case '{':
			return token{kind: tokenOpen}
		case '}':
			return token{kind: tokenClose}
		case '\r', '\n', 0:
			continue
		case '\\':
			return s.control()
		}
		return token{kind: tokenByte, b: c}
	}
	return token{kind: tokenEnd}
}

// maxWord bounds the name of a control word; longer ones are none of the format's.
const maxWord = 32

func (s *scanner) control() token {
	if s.pos == len(s.in) {
		return token{kind: tokenEnd}
	}
	c := s.in[s.pos]
	if !letter(c) {
		s.pos++
		switch {
		case c == '\'':
			return s.hex()
		case c == '\r' || c == '\n':
			return token{kind: tokenWord, word: "par"}
		}
		return token{kind: tokenSign, b: c}
	}
	start := s.pos
	for s.pos < len(s.in) && letter(s.in[s.pos]) && s.pos-start < maxWord {
		s.pos++
	}
	t := token{kind: tokenWord, word: string(s.in[start:s.pos])}
	start = s.pos
	if s.pos < len(s.in) && s.in[s.pos] == '-' {
		s.pos++
	}
	for s.pos < len(s.in) && s.in[s.pos] >= '0' && s.in[s.pos] <= '9' && s.pos-start < 11 {
		s.pos++
	}
	if n, err := strconv.Atoi(string(s.in[start:s.pos])); err == nil {
		t.value, t.hasValue = n, true
	}
	if s.pos < len(s.in) && s.in[s.pos] == ' ' {
		s.pos++
	}
	return t
}

func (s *scanner) hex() token {
	if s.pos+2 > len(s.in) {
		s.pos = len(s.in)
		return token{kind: tokenEnd}
	}
	n, err := strconv.ParseUint(string(s.in[s.pos:s.pos+2]), 16, 8)
	if err != nil {
		return token{kind: tokenSign, b: '\''}
	}
	s.pos += 2
	return token{kind: tokenByte, b: byte(n)}
}

// skip passes over n bytes of binary data.
func (s *scanner) skip(n int) { s.pos = min(len(s.in), s.pos+max(n, 0)) }

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
