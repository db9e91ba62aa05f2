// Package terms cuts text into the folded terms that full-text indexes hold and are asked for, the same way on both
// sides, so that scripts without spaces, ligatures, soft hyphens, accents and capital letters do not hide a word.
package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

const (
	// maxTermBytes cuts endless words (encoded data, say), which nobody asks for.
	maxTermBytes = 64
	// maxQueryTerms bounds the work of one question.
	maxQueryTerms = 64
)

// Index returns the terms of text, in order, joined by single spaces. A word with punctuation inside it ("example.com")
// gives the whole and its parts. In scripts that are written without spaces, and in Hangul, every character and every
// pair of neighbours is a term.
func Index(text string) string {
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	cut(Fold(text), func(term string, kind kind) {
		if kind == kindLone {
			return
		}
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(term)
	})
	return b.String()
}

// Query returns the distinct terms to ask for, at most 64: whole words, and pairs of neighbours in scripts without
// spaces. Stop words are dropped unless the question has nothing else.
func Query(text string) []string {
	seen := make(map[string]bool)
	var out, stops []string
	cut(Fold(text), func(term string, kind kind) {
		if kind == kindPart || kind == kindChar || seen[term] {
			return
		}
		seen[term] = true
		switch {
		case stopWords[term]:
			if len(stops) < maxQueryTerms {
				stops = append(stops, term)
			}
		case len(out) < maxQueryTerms:
			out = append(out, term)
		}
	})
	if len(out) == 0 {
		return stops
	}
	return out
}

// kind says for which side a term is.
type kind int

const (
	kindWord kind = iota // both
	kindPart             // index only: a part of a word with punctuation inside
	kindChar             // index only: a character of a run that has pairs
	kindLone             // query only: the character of a run that has no neighbour
)

// cut calls emit for every term of folded text; its kind says which side takes it.
func cut(text string, emit func(string, kind)) {
	var run []rune // the current run of characters of scripts without spaces
	flush := func() {
		for i, r := range run {
			emit(string(r), kindChar)
			if i > 0 {
				emit(string(run[i-1:i+1]), kindWord)
			}
		}
		if len(run) == 1 {
			emit(string(run), kindLone)
		}
		run = run[:0]
	}
	for it := words.FromString(text); it.Next(); {
		w := it.Value()
		if c := w[0]; len(w) == 1 && !isASCIIAlphanumeric(c) {
			flush()
			continue
		}
		first, _ := utf8.DecodeRuneInString(w)
		if unspaced(first) {
			run = append(run, []rune(w)...)
			continue
		}
		flush()
		emitWord(w, emit)
	}
	flush()
}

// emitWord emits a word of a script with spaces, and its parts if there is punctuation inside.
func emitWord(w string, emit func(string, kind)) {
	plain, searchable := true, false
	for _, r := range w {
		switch {
		case r < utf8.RuneSelf && isASCIIAlphanumeric(byte(r)), r >= utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsNumber(r)):
			searchable = true
		case unicode.IsMark(r):
		case r >= utf8.RuneSelf && unicode.Is(unicode.So, r): // emoji and other symbols can be asked for
			searchable = true
		default:
			plain = false
		}
	}
	if !searchable {
		return
	}
	if plain {
		emit(truncate(w), kindWord)
		return
	}
	// Apostrophes are dropped from the whole, so that "dont" finds "don't".
	emit(truncate(strings.Map(dropQuotes, w)), kindWord)
	for part := range strings.FieldsFuncSeq(w, isSeparator) {
		emit(truncate(part), kindPart)
	}
}

func isSeparator(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && !unicode.Is(unicode.So, r)
}

func dropQuotes(r rune) rune {
	switch r {
	case '\'', '’', '‘', '"', '״', '׳':
		return -1
	}
	return r
}

// unspaced tells whether words of the rune's script are not (or, in Hangul, not always) parted by spaces.
func unspaced(r rune) bool {
	if r < 0x0E00 {
		return false
	}
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
		unicode.Khmer, unicode.Myanmar) || r == 'ー'
}

func isASCIIAlphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
}

func truncate(s string) string {
	if len(s) <= maxTermBytes {
		return s
	}
	n := maxTermBytes
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
