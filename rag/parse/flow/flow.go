// Package flow is what the readers of formats write a document to: its structure, in reading order.
package flow

import (
	"errors"
	"fmt"
	"strings"
)

// Writer takes a document in reading order. What was begun ends where the next block begins; a block without text leaves no
// trace. A Writer is for one document and one goroutine.
type Writer interface {
	// Page says that what follows stands on page n, from 1.
	Page(n int)
	// Heading begins a heading of a level, 1 to 6; others are taken for the nearest.
	Heading(level int)
	// Paragraph begins a paragraph; within a cell it only parts words.
	Paragraph()
	// Item begins an item of a list at a depth from 0, with its marker ("-", "3.").
	Item(depth int, marker string)
	// Code begins a block of code.
	Code()
	// Table begins a table; Row and Cell begin their parts, EndTable ends it. A table in a cell is words of that cell.
	Table()
	Row()
	Cell()
	EndTable()
	// Text writes running text: runs of white space become one space.
	Text(s string)
	// Verbatim writes text whose white space means something.
	Verbatim(s string)
	// Break ends a line.
	Break()
	// Full reports that the text has outgrown its limit: what follows is dropped, and the reader may stop.
	Full() bool
}

// Error says why a document cannot be read, ever.
type Error struct {
	Reason  string // one of the rag.Reason constants
	Message string // one sentence for people
}

func (e *Error) Error() string { return e.Message }

// Reject returns an *Error. The message may quote what is not UTF-8.
func Reject(reason, format string, args ...any) error {
	return &Error{Reason: reason, Message: strings.ToValidUTF8(fmt.Sprintf(format, args...), "\ufffd")}
}

// IsReject reports whether err blames the document.
func IsReject(err error) bool { return ReasonOf(err) != "" }

// ReasonOf is the reason of an error that blames the document; "" for others.
func ReasonOf(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return ""
	}
	return e.Reason
}
