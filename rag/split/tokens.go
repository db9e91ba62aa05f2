package split

import (
	"math"
	"unicode"
	"unicode/utf8"
)

// EstimateTokens says about how many tokens an embedding model sees in s: one pass, without a vocabulary. Measured
// against the vocabulary o200k_base it is within a tenth for English, and between two thirds and five thirds for other
// languages, source code and random letters; testdata/tokens.json has the texts and their counts. What the splitter
// needs of it: it is deterministic, and no token stands for more than maxBytesPerToken bytes.
func EstimateTokens(s string) int {
	var c counter
	c.add(s)
	return c.tokens()
}

// maxBytesPerToken bounds how many bytes of text one estimated token can stand for: it makes the token limit of a
// piece a limit in bytes. The worst case is a word of shortWord letters and freeSpace-1 bytes of white space.
const maxBytesPerToken = 16

const (
	shortWord = 8 // letters of a Latin word that costs one token
	longWord  = 20
	freeSpace = 8 // bytes of white space that cost nothing beside a word
)

// runKind says how a run of neighbouring runes is charged.
type runKind uint8

const (
	runNone runKind = iota
	runSpace
	runLatin      // words: one token, more for long ones
	runCapital    // a capital: begins a word after a small letter, belongs to the word after another capital
	runDigit      // three digits a token
	runPunct      // two characters of ASCII punctuation a token
	runAlphabetic // other alphabets: three letters a token
	runDense      // Han, Kana, Hangul: one token a rune
	runComplex    // scripts without spaces between words, and their marks: two runes a token
	runSymbol     // emoji, pictographs, controls, private use: two tokens a rune
)

// counter counts tokens incrementally; it can be copied to count on from the same state.
type counter struct {
	done int // tokens of the runs that have ended
	run  int // length of the run in hand: runes, for white space bytes
	kind runKind
}

func (c *counter) tokens() int { return c.done + cost(c.kind, c.run) }

func cost(k runKind, n int) int {
	if n == 0 {
		return 0
	}
	switch k {
	case runSpace:
		return n / freeSpace
	case runLatin, runCapital:
		switch {
		case n <= shortWord:
			return 1
		case n <= longWord:
			return 1 + (n-shortWord+2)/3
		}
		return 5 + (n-longWord+1)/2
	case runDigit, runAlphabetic:
		return (n + 2) / 3
	case runPunct, runComplex:
		return (n + 1) / 2
	case runSymbol:
		return 2 * n
	}
	return n
}

func (c *counter) add(s string) { c.addUpTo(s, math.MaxInt) }

// addUpTo counts s on, and reports whether the count is at most limit. It may stop early when it is not.
func (c *counter) addUpTo(s string, limit int) bool {
	for i := 0; i < len(s) && c.done <= limit; {
		if b := s[i]; b < utf8.RuneSelf {
			c.step(asciiKinds[b], 1)
			i++
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		k := kindOf(r, c.kind)
		switch {
		case k == runSpace:
			c.step(k, n)
		case k == runLatin: // letters with accents make a word dearer
			c.step(k, 3)
		default:
			c.step(k, 1)
		}
		i += n
	}
	return c.tokens() <= limit
}

func (c *counter) step(k runKind, n int) {
	if k == c.kind || k == runLatin && c.kind == runCapital {
		c.run += n
		c.kind = k
		return
	}
	c.done += cost(c.kind, c.run)
	c.kind, c.run = k, n
}

// asciiKinds of the ASCII characters.
var asciiKinds = func() (t [utf8.RuneSelf]runKind) {
	for b := range t {
		switch {
		case b >= 'a' && b <= 'z':
			t[b] = runLatin
		case b >= 'A' && b <= 'Z':
			t[b] = runCapital
		case b >= '0' && b <= '9':
			t[b] = runDigit
		case b == ' ' || b >= '\t' && b <= '\r':
			t[b] = runSpace
		case b < ' ' || b == 0x7f:
			t[b] = runSymbol
		default:
			t[b] = runPunct
		}
	}
	return t
}()

// kindOf a rune outside ASCII. A mark on a Latin letter belongs to its word.
func kindOf(r rune, last runKind) runKind {
	switch {
	case r < 0x250: // Latin-1, Latin Extended A and B
		switch {
		case r == 0x85 || r == 0xa0:
			return runSpace
		case r < 0xa0:
			return runSymbol
		case r < 0xc0 || r == 0xd7 || r == 0xf7:
			return runPunct
		}
		return runLatin
	case r < 0x590: // IPA, marks, Greek, Cyrillic, Armenian
		if unicode.Is(unicode.Mn, r) && (last == runLatin || last == runCapital) {
			return runLatin
		}
		return runAlphabetic
	case r < 0x900: // Hebrew, Arabic, Syriac, Thaana, N'Ko
		return runAlphabetic
	case r < 0x1100: // Indic scripts, Thai, Lao, Tibetan, Myanmar, Georgian
		return runComplex
	case r >= 0x2000 && r < 0x2070: // general punctuation
		if unicode.IsSpace(r) {
			return runSpace
		}
		return runPunct
	case r >= 0x3000 && r < 0x3040:
		if r == 0x3000 {
			return runSpace
		}
		return runPunct
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul),
		r >= 0xff00 && r < 0xfff0:
		return runDense
	case unicode.IsSpace(r):
		return runSpace
	case unicode.IsLetter(r), unicode.IsMark(r):
		return runComplex
	}
	return runSymbol
}
