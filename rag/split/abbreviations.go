package split

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// endsInAbbreviation reports whether the full stop at the end of sentence belongs to an abbreviation, an initial ("J.")
// or the number of an item ("3.", "b."), so that the sentence goes on in rest. Where both readings are possible it says
// yes: a sentence that is too long costs less than one that is cut.
func endsInAbbreviation(sentence, rest string) bool {
	s := strings.TrimRightFunc(sentence, unicode.IsSpace)
	if !strings.HasSuffix(s, ".") || strings.HasSuffix(s, "..") {
		return false
	}
	s = s[:len(s)-1]
	word := s[lastWord(s):]
	if word == "" {
		return false
	}
	r, n := utf8.DecodeRuneInString(word)
	switch {
	case n == len(word) && unicode.IsUpper(r):
		return true // an initial
	case len(word) == len(strings.TrimLeftFunc(s, unicode.IsSpace)) && len(word) <= 3 && enumerates(word):
		return true // all of the sentence is the number of an item
	case strings.IndexByte(word, '.') > 0 && dotted(word):
		return true // e.g. U.S. a.m. Ph.D.
	}
	word = strings.ToLower(word)
	if abbreviations[word] {
		return true
	}
	next, _ := utf8.DecodeRuneInString(rest)
	return numbered[word] && unicode.IsDigit(next)
}

// lastWord is where the last word of s begins: letters, digits and full stops, at most 16 bytes of them.
func lastWord(s string) int {
	i := len(s)
	for i > 0 && len(s)-i <= 16 {
		r, n := utf8.DecodeLastRuneInString(s[:i])
		if r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		i -= n
	}
	return i
}

// enumerates reports whether word numbers an item: digits or one letter.
func enumerates(word string) bool {
	if strings.Trim(word, "0123456789") == "" {
		return true
	}
	r, n := utf8.DecodeRuneInString(word)
	return n == len(word) && unicode.IsLetter(r)
}

// dotted reports whether the parts of word between its full stops are letters, at most three each.
func dotted(word string) bool {
	for part := range strings.SplitSeq(word, ".") {
		if part == "" || utf8.RuneCountInString(part) > 3 || strings.ContainsFunc(part, unicode.IsDigit) {
			return false
		}
	}
	return true
}

// abbreviations that are followed by more of their sentence nearly always.
var abbreviations = set(
	// English
	"mr mrs ms messrs dr prof rev hon sr jr st mt ft gen col capt lt maj sgt cmdr adm gov sen rep pres supt atty vs cf viz " +
		"al approx dept est inc ltd co corp bros assn univ etc eds trans e.g i.e " +
		// German, French, Spanish, Italian, Polish, Russian
		"bzw usw ca evtl ggf vgl bspw str hr fr mme mlle mm sra srta dott sig np tzw prof ul г гг ул им пл пр просп пер обл акад проф тов гр см т.е т.д т.п")

// numbered abbreviations are followed by a number; without one they are words or end their sentence.
var numbered = set("no nos nr vol vols p pp pg fig figs art sec sect ch chap eq ex par para ed op cit " +
	"jan feb mar apr jun jul aug sep sept oct nov dec abs s n стр рис ст гл табл п пп ч т д кв корп")

func set(words string) map[string]bool {
	m := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}
