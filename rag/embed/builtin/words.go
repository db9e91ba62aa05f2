package builtin

import (
	"unicode"
	"unicode/utf8"
)

// maxWordBytes is above what is ever looked up: no word of a vocabulary is longer, and of an unknown word only the first
// maxWordRunes count. A longer word is cut just above it, which changes no vector and bounds the memory of a word.
const maxWordBytes = maxWordRunes * utf8.UTFMax

// kind of a rune in a text.
type kind uint8

const (
	kindSpace kind = iota // ends a word and is part of none
	kindLetter
	kindDigit
	kindSkip // part of no word, and ends none
)

// splitWords calls f with each word of s: a run of letters or of decimal digits, lower-cased, without accents. Bytes
// that are no UTF-8 end a word. f must not keep its argument.
func splitWords(s string, f func(word []byte)) {
	var buffer [maxWordBytes + utf8.UTFMax]byte
	word, last := buffer[:0], kindSpace
	for _, c := range s {
		k, c := classify(c)
		if k == kindSkip {
			if c == combiningBreve {
				word = composeShortI(word)
			}
			continue
		}
		if k != last && len(word) > 0 {
			f(word)
			word = word[:0]
		}
		if k != kindSpace && len(word) <= maxWordBytes {
			word = utf8.AppendRune(word, c)
		}
		last = k
	}
	if len(word) > 0 {
		f(word)
	}
}

const (
	softHyphen     = '\u00ad'
	combiningBreve = '\u0306'
)

// classify returns the kind of c, and c as it stands in the vocabulary.
func classify(c rune) (kind, rune) {
	switch {
	case 'a' <= c && c <= 'z', 'а' <= c && c <= 'я':
		return kindLetter, c
	case 'A' <= c && c <= 'Z', 'А' <= c && c <= 'Я':
		return kindLetter, c + 32
	case '0' <= c && c <= '9':
		return kindDigit, c
	case c < utf8.RuneSelf:
		return kindSpace, c
	case c == softHyphen, 0x300 <= c && c < 0x370: // combining marks
		return kindSkip, c
	case unicode.IsLetter(c):
		return kindLetter, withoutAccent(unicode.ToLower(c))
	case unicode.Is(unicode.Nd, c):
		return kindDigit, c
	}
	return kindSpace, c
}

// composeShortI makes the letter й of и and a combining breve: of all accents only this one tells letters apart in the
// vocabulary.
func composeShortI(word []byte) []byte {
	const i, shortI = "и", "й"
	if n := len(word) - len(i); n >= 0 && string(word[n:]) == i {
		return append(word[:n], shortI...)
	}
	return word
}

// withoutAccent maps a lower-case letter to the one that the vocabulary was made with.
func withoutAccent(c rune) rune {
	if c == 'ё' {
		return 'е'
	}
	if c < 'à' || c > 'ž' {
		return c
	}
	switch c {
	case 'à', 'á', 'â', 'ã', 'ä', 'å', 'ā', 'ă', 'ą':
		return 'a'
	case 'ç', 'ć', 'č':
		return 'c'
	case 'ď', 'đ':
		return 'd'
	case 'è', 'é', 'ê', 'ë', 'ē', 'ė', 'ę', 'ě':
		return 'e'
	case 'ğ':
		return 'g'
	case 'ì', 'í', 'î', 'ï', 'ī':
		return 'i'
	case 'ł':
		return 'l'
	case 'ñ', 'ń', 'ň':
		return 'n'
	case 'ò', 'ó', 'ô', 'õ', 'ö', 'ø', 'ō', 'ő':
		return 'o'
	case 'ř':
		return 'r'
	case 'ś', 'š', 'ş':
		return 's'
	case 'ť', 'ţ':
		return 't'
	case 'ù', 'ú', 'û', 'ü', 'ū', 'ů', 'ű':
		return 'u'
	case 'ý', 'ÿ':
		return 'y'
	case 'ź', 'ż', 'ž':
		return 'z'
	}
	return c
}
