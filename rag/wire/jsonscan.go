package wire

import (
	"fmt"
	"unicode/utf8"
)

// scanJSON finds what the standard decoder would accept, repair in silence or recurse into: nesting deeper than maxDepth, bytes
// that are not UTF-8, and escapes of half a surrogate pair. It is one loop over the bytes and leaves the grammar to
// the decoder. It returns the fault, or "".
func scanJSON(b []byte, maxDepth int) string {
	if !utf8.Valid(b) {
		return "the JSON is not valid UTF-8"
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > maxDepth {
				return fmt.Sprintf("the JSON is nested deeper than %d, at byte %d", maxDepth, i)
			}
		case '}', ']':
			depth--
		case '"':
			end, ok := scanString(b, i+1)
			if !ok {
				return fmt.Sprintf("the string at byte %d has half of a surrogate pair", i)
			}
			i = end
		}
	}
	return ""
}

// scanString returns the index of the quote that ends the string, len(b) if none does.
func scanString(b []byte, i int) (end int, ok bool) {
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i, true
		case '\\':
			switch u := escaped(b[i:]); {
			case u >= 0xD800 && u < 0xDC00:
				if low := escaped(b[i+6:]); low < 0xDC00 || low > 0xDFFF {
					return 0, false
				}
				i += 11
			case u >= 0xDC00 && u <= 0xDFFF:
				return 0, false
			default:
				i++ // the escaped character, which may be a quote
			}
		}
	}
	return len(b), true
}

// escaped is the value of a \uXXXX at the beginning of b, -1 if there is none.
func escaped(b []byte) int {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n := 0
	for _, c := range b[2:6] {
		switch {
		case c >= '0' && c <= '9':
			n = n<<4 | int(c-'0')
		case c >= 'a' && c <= 'f':
			n = n<<4 | int(c-'a'+10)
		case c >= 'A' && c <= 'F':
			n = n<<4 | int(c-'A'+10)
		default:
			return -1
		}
	}
	return n
}
