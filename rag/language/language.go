// Package language tells the language of a text: by the script that most of it is written in, by its frequent words, else by the
// frequency of its trigrams.
package language

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// Version of the rules. A change that gives any text another language changes it: the language is in every chunk.
const Version = "language/2"

const (
	samples    = 3   // places of a long text that are looked at
	sampleSize = 300 // runes of each; the library loses its way in longer ones
	scanned    = 8 << 10
	minRunes   = 24 // of a script that languages share; below, nothing is said
	longWord   = 30 // runes; longer ones are data
	certain    = .3 // of the samples' confidence that the language must have
)

// Detect names the language of a text by its code of ISO 639-1, or 639-3 where it has no such; "" where it cannot tell, as in a
// few words, numbers or data. It knows some eighty. Close ones (Bosnian, Croatian and Serbian in Latin letters; Danish and
// Norwegian) are taken for each other. Of a text in Latin and Cyrillic letters it is that of the letters that most words have. The same text gives the same answer everywhere.
func Detect(text string) string {
	n := 1
	if len(text) > samples*sampleSize {
		n = samples
	}
	var said []string
	for i := range n {
		if s := sample(text, len(text)/n*i); s != "" {
			said = append(said, s)
		}
	}
	script, mixed := scriptOf(said)
	if mixed {
		for i, s := range said { // one language that lends words to another must not speak for both
			said[i] = inScript(s, script)
		}
	}
	if code := byCommonWords(said); code != "" {
		return code
	}
	if script == unicode.Cyrillic { // of which trigrams take short texts in one language for another
		if code := byCyrillicLetters(said); code != "" {
			return code
		}
	}
	return byTrigrams(said)
}

// byTrigrams lets the samples vote.
func byTrigrams(texts []string) string {
	votes, best := map[string]float64{}, ""
	for _, s := range texts {
		code, confidence := detect(s)
		if code == "" {
			continue
		}
		votes[code] += confidence
		if best == "" || votes[code] > votes[best] {
			best = code
		}
	}
	if best == "" || votes[best] < certain*float64(len(texts)) {
		return ""
	}
	return best
}

// detect tells the language of a sample, and how sure that is: 0 to 1.
func detect(sample string) (code string, confidence float64) {
	if sample == "" {
		return "", 0
	}
	info := whatlanggo.Detect(sample)
	if info.Lang < 0 || info.Confidence <= 0 {
		return "", 0
	}
	shared := info.Script == unicode.Latin || info.Script == unicode.Cyrillic || info.Script == unicode.Arabic ||
		info.Script == unicode.Devanagari || info.Script == unicode.Hebrew || info.Script == unicode.Ethiopic
	if shared && utf8.RuneCountInString(sample) < minRunes {
		return "", 0
	}
	if code = info.Lang.Iso6391(); code == "" {
		code = info.Lang.Iso6393()
	}
	return code, min(1, info.Confidence)
}

// sample gathers the words of the text behind from: runs of letters between white space or punctuation. Data — long runs, mixed
// with digits or signs — are left out.
func sample(text string, from int) string {
	end := min(len(text), from+scanned)
	for from > 0 && from < end && !unicode.IsSpace(rune(text[from])) {
		from++
	}
	for end < len(text) && !utf8.RuneStart(text[end]) {
		end--
	}
	if from >= end { // no white space: any place is as good
		for from = max(0, end-scanned); from < end && !utf8.RuneStart(text[from]); from++ {
		}
	}
	var b strings.Builder
	runes := 0
	for field := range strings.FieldsSeq(text[from:end]) {
		if runes >= sampleSize {
			break
		}
		word := strings.TrimFunc(field, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) })
		n, ok := readable(word)
		if !ok {
			continue
		}
		if runes+n > sampleSize {
			word, n = head(word, sampleSize-runes), sampleSize-runes
		}
		b.WriteString(word)
		b.WriteByte(' ')
		runes += n + 1
	}
	return b.String()
}

// readable counts the runes of a word, and reports whether it is one: of letters, with an apostrophe or a hyphen, or of a
// script that is written without spaces.
func readable(word string) (runes int, ok bool) {
	upper, narrow := 0, true
	for _, r := range word {
		runes++
		switch {
		case unicode.IsUpper(r):
			upper++
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
			narrow = false
		case unicode.IsLetter(r), unicode.IsMark(r), r == '\'', r == '’', r == '-', r == '\u200c', r == '\u200d':
		case narrow: // a sign inside a word
			return runes, false
		}
	}
	if !narrow {
		return runes, true
	}
	return runes, runes > 0 && runes <= longWord && (upper <= 1 || upper == runes)
}

// head is the first n runes of s.
func head(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
