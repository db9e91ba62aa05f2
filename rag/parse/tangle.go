package parse

import "strings"

// Bounds of the Markdown that is parsed. The parser takes quadratic time for marks within a paragraph, for footnotes, and
// for quotes and lists nested in one line, cannot be interrupted, and takes hundreds of bytes for each element.
const (
	maxPieces = 400_000 // lines and marks in all
	maxNotes  = 2_000   // footnotes and references to them
	maxMarks  = 4_000   // between blank lines
	maxLinks  = 1_000   // opening brackets between blank lines
	maxIndent = 200     // bytes of white space before a line
	maxPrefix = 400     // bytes of quote, list and number marks before a line
)

// tangled reports whether source exceeds these bounds. It knows no Markdown beyond blank lines, so it may take a large
// table or a page of code for tangled.
func tangled(source string) bool {
	if strings.Count(source, "[^") > maxNotes {
		return true
	}
	pieces, marks, links := 0, 0, 0
	for line := range strings.Lines(source) {
		text := strings.TrimLeft(line, " \t")
		if strings.TrimSpace(text) == "" {
			marks, links = 0, 0
		}
		pieces++
		for i := range len(text) {
			switch text[i] {
			case '[':
				links++
				marks++
				pieces++
			case '*', '_', '!', '<', '`', '~':
				marks++
				pieces++
			case '&', '\\', '|': // these delay nothing, but become elements
				pieces++
			}
		}
		if pieces > maxPieces || marks > maxMarks || links > maxLinks ||
			len(line)-len(text) > maxIndent || prefix(text) > maxPrefix {
			return true
		}
	}
	return false
}

// prefix is how many bytes before the text of a line may be marks of quotes and lists. A rule has none.
func prefix(line string) int {
	rest := strings.TrimLeft(line, " \t>*+-.)0123456789")
	bare := strings.TrimRight(line, " \r\n")
	if bare != "" && bare[0] != '>' && strings.Trim(bare, bare[:1]) == "" {
		return 0
	}
	return len(line) - len(rest)
}
