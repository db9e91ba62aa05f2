package parse

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// Bounds of telling a language.
const (
	languageSample  = 6 << 10 // bytes that are looked at, from the middle of the text
	languageLetters = 40      // letters in it, at least, of scripts that several languages write
)

// noLanguage are types whose texts are written for machines.
var noLanguage = map[string]bool{TypeSource: true, TypeJSON: true, TypeJSONLines: true, TypeCSV: true, TypeTSV: true, TypeXML: true}

// languageOf tells the language that most of a text is written in, as an ISO 639-1 code; "" where that is not clear.
func languageOf(body string) string {
	sample := middle(body, languageSample)
	letters, kana, han := 0, 0, 0
	for _, r := range sample {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Han, r):
			han++
		}
		if unicode.IsLetter(r) {
			letters++
		}
	}
	switch {
	case kana*20 > letters: // Chinese has none
		return "ja"
	case han*2 > letters:
		return "zh"
	case letters < languageLetters:
		return ""
	}
	if code := cyrillic(sample); code != "" {
		return code
	}
	info := whatlanggo.Detect(sample)
	if !info.IsReliable() {
		return ""
	}
	return info.Lang.Iso6391()
}

// cyrillic tells the East Slavic languages by the letters that only one of them has: their words resemble each other too much. It
// is silent about other languages.
func cyrillic(s string) string {
	s = strings.ToLower(s)
	switch {
	case strings.ContainsAny(s, "әғқңөұүһҡҙҫӑӗҳҷӣӯјљњћђџќѓѕ"): // of languages further away
	case strings.Contains(s, "ў"):
		return "be"
	case strings.ContainsAny(s, "їєґ"):
		return "uk"
	case strings.ContainsAny(s, "ыэё") && !strings.Contains(s, "і"):
		return "ru"
	}
	return ""
}

// middle is a part of a text around its middle, of at most n bytes: the beginning is often a title page or a licence.
func middle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	start := (len(s) - n) / 2
	for !utf8.RuneStart(s[start]) {
		start++
	}
	return strings.ToValidUTF8(s[start:start+n], "")
}
