package language

import (
	"strings"
	"unicode"
)

// scriptOf is whichever of Latin and Cyrillic most words of the texts are written in, and whether they have words in the other too;
// nil if most words are in neither.
func scriptOf(texts []string) (script *unicode.RangeTable, mixed bool) {
	latin, cyrillic, other := 0, 0, 0
	for _, text := range texts {
		for word := range strings.FieldsSeq(text) {
			switch {
			case isIn(word, unicode.Cyrillic):
				cyrillic++
			case isIn(word, unicode.Latin):
				latin++
			default:
				other++
			}
		}
	}
	switch {
	case other > latin+cyrillic:
		return nil, false
	case cyrillic >= latin && cyrillic > 0: // Latin names and terms stand in Russian texts, seldom the other way round
		return unicode.Cyrillic, latin > 0
	case latin > 0:
		return unicode.Latin, cyrillic > 0
	}
	return nil, false
}

// isIn reports whether the first letter of a word is in a script. Words of two scripts are rare, and say nothing.
func isIn(word string, script *unicode.RangeTable) bool {
	for _, r := range word {
		if unicode.IsLetter(r) {
			return unicode.Is(script, r)
		}
	}
	return false
}

// inScript is what of a text is written in a script.
func inScript(text string, script *unicode.RangeTable) string {
	var b strings.Builder
	for word := range strings.FieldsSeq(text) {
		if isIn(word, script) {
			b.WriteString(word)
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// Least length of a text in Cyrillic letters that is told by them.
const (
	fewestLetters = 12
	fewestWords   = 3
)

// byCyrillicLetters tells Russian, Ukrainian, Belarusian and Bulgarian by the letters that one alphabet has and another lacks, and by
// their endings, which are there in a single sentence. It says nothing about texts with letters of other alphabets.
func byCyrillicLetters(texts []string) string {
	var c cyrillic
	for _, text := range texts {
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			if isIn(word, unicode.Cyrillic) {
				c.add(word)
			}
		}
	}
	switch {
	case c.letters < fewestLetters, c.words < fewestWords, c.others*100 > c.letters:
		return ""
	case c.belarusian > 0 && c.belarusian*8 >= c.russian:
		return "be"
	case c.ukrainian > c.russian:
		return "uk"
	case c.eastern > 0 && (c.bulgarian > c.russian || c.russian == 0 && c.articles > 1 && c.articles*3 >= c.words):
		return "bg"
	case c.russian+c.eastern > 0:
		return "ru"
	}
	return ""
}

// cyrillic counts what tells languages apart.
type cyrillic struct {
	letters, words int
	russian        int // ы, э, ё, and a soft sign that Bulgarian does not have; Belarusian has them too
	eastern        int // й, ю, я, щ, ъ: neither Serbian nor Macedonian has them
	ukrainian      int // Belarusian has one of them too
	belarusian     int
	bulgarian      int // words, and a hard sign that is a vowel
	articles       int // endings of Bulgarian nouns, which words of others may have
	others         int // of other alphabets
}

func (c *cyrillic) add(word string) {
	c.words++
	letters := []rune(word)
	for i, r := range letters {
		next := rune(0)
		if i+1 < len(letters) {
			next = letters[i+1]
		}
		c.letters++
		switch {
		case strings.ContainsRune("ыэё", r), r == 'ь' && next != 'о':
			c.russian++
		case strings.ContainsRune("йюящъ", r):
			c.eastern++
			if r == 'ъ' && !strings.ContainsRune("еёюя", next) {
				c.bulgarian++
			}
		case strings.ContainsRune("їєґі", r):
			c.ukrainian++
		case r == 'ў':
			c.belarusian++
		case !strings.ContainsRune("абвгдежзийклмнопрстуфхцчшщъьюя'’-", r):
			c.others++
		}
	}
	switch {
	case bulgarianWords[word]:
		c.bulgarian++
	case len(letters) >= 5 && (strings.HasSuffix(word, "та") || strings.HasSuffix(word, "то") || strings.HasSuffix(word, "ят")):
		c.articles++
	}
}

// bulgarianWords are frequent, and no words of Russian.
var bulgarianWords = map[string]bool{"се": true, "са": true, "ще": true, "че": true, "като": true, "със": true, "във": true, "към": true, "който": true, "която": true, "това": true}
