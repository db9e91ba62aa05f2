package terms

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Fold maps text to the form in which terms are compared: compatibility-composed (NFKC), case-folded, without
// characters that nobody sees (soft hyphens, joiners, variation selectors) and without the accents of Latin and
// Greek letters. Cyrillic ё becomes е. Invalid UTF-8 becomes U+FFFD.
func Fold(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(dropInvisible, s)
	s = cases.Fold().String(norm.NFKC.String(s))
	return stripAccents(s)
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func dropInvisible(r rune) rune {
	switch {
	case r < 0xAD:
		return r
	case r == 0x00AD, r == 0x034F, r == 0x2060, r == 0xFEFF: // soft hyphen, grapheme joiner, word joiner, byte-order mark
		return -1
	case r == 0x200B: // zero-width space parts words in scripts without spaces
		return ' '
	case r == 0x200C, r == 0x200D, r >= 0xFE00 && r <= 0xFE0F, r >= 0x200E && r <= 0x200F, r >= 0x202A && r <= 0x202E:
		return -1
	}
	return r
}

// stripAccents takes the marks off Latin and Greek letters; elsewhere marks are letters of their own (й, が, vowels).
func stripAccents(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	var buf [utf8.UTFMax]byte
	onLetter := false // the last base was a Latin or Greek letter
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			onLetter = 'a' <= r && r <= 'z'
			b.WriteByte(byte(r))
			continue
		case r == 'ё':
			r = 'е'
		case unicode.Is(unicode.Mn, r):
			if onLetter {
				continue
			}
		default:
			onLetter = unicode.In(r, unicode.Latin, unicode.Greek)
			if onLetter {
				d := norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).Decomposition()
				if len(d) > 0 {
					r, _ = utf8.DecodeRune(d)
				}
			}
		}
		b.WriteRune(r)
	}
	return b.String()
}
