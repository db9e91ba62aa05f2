package processors

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/stage"
)

// maxSentence bounds what a failure says: it travels in rows, events and letters.
const maxSentence = 1 << 10

// sentence is what an error says to people, without the reason in front of it and without a stack.
func sentence(err error) string {
	var e *stage.Error
	text := err.Error()
	if errors.As(err, &e) && e.Err != nil {
		text = e.Err.Error()
	}
	text = strings.TrimSpace(text)
	if i := strings.IndexAny(text, "\r\n"); i >= 0 {
		text = text[:i]
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	return clip(text, maxSentence)
}

// clip shortens valid UTF-8 to about so many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	cut := most
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + " …"
}
