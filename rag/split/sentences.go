package split

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/sentences"
)

// sentences yields the sentences of text[start:end], as UAX #29 finds them, with two corrections: a single line break is
// a space (mail and books break lines anywhere), and a full stop after an abbreviation, an initial or an item's number
// ends nothing.
func (s *segmenter) sentences(start, end int, yield func(start, end int) error) error {
	s.scratch = unwrap(s.scratch[:0], s.text[start:end])
	from, borders := start, clusterBorders{text: s.text[start:end]}
	for it := sentences.FromBytes(s.scratch); it.Next(); {
		stop := start + it.End()
		// The bound keeps a text of nothing but initials from becoming one sentence.
		if stop < end && stop-from < s.limit*maxBytesPerToken/4 && endsInAbbreviation(s.text[from:stop], s.text[stop:end]) {
			continue
		}
		if !borders.at(it.End()) {
			continue
		}
		if err := yield(from, stop); err != nil {
			return err
		}
		from = stop
	}
	if from == end {
		return nil
	}
	return yield(from, end)
}

// maxCloseRun bounds runs of spaces and closing marks: after each one behind a full stop the sentence finder looks ahead
// for a small letter, which is quadratic in the length of the run.
const maxCloseRun = 32

// separators that end a sentence, by their length in bytes.
var separators = [...]string{1: "\n", 2: "\u0085", 3: "\u2029"}

// unwrap appends text to buf, length kept, but every single line break a space, and long runs of spaces and closing marks
// cut by separators.
func unwrap(buf []byte, text string) []byte {
	buf = append(buf, text...)
	run := 0
	for i, n := 0, 0; i < len(text); i += n {
		var r rune
		r, n = rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case r == '\n' && !blankAround(text, i):
			buf[i] = ' '
			if i > 0 && text[i-1] == '\r' {
				buf[i-1] = ' '
			}
			run++
		case delaying(r):
			run++
		default:
			run = 0
		}
		if run > maxCloseRun && n < len(separators) {
			copy(buf[i:], separators[n])
			run = 0
		}
	}
	return buf
}

// delaying reports whether the sentence finder waits for what comes after r.
func delaying(r rune) bool {
	if r < utf8.RuneSelf {
		switch r {
		case ' ', '\t', '\v', '\f', '"', '\'', '(', ')', '[', ']', '{', '}':
			return true
		}
		return false
	}
	return unicode.In(r, unicode.Zs, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf, unicode.M, unicode.Cf)
}

// blankAround reports whether the line before or after the line break at i is blank.
func blankAround(text string, i int) bool {
	for j := i + 1; j < len(text); j++ {
		if text[j] == '\n' {
			return true
		}
		if !blank(text[j]) {
			break
		}
	}
	for j := i - 1; j >= 0; j-- {
		if text[j] == '\n' {
			return true
		}
		if !blank(text[j]) {
			break
		}
	}
	return false
}

func blank(b byte) bool { return b == ' ' || b == '\t' || b == '\r' }
