package external

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Formats of texts.
const (
	formatPlain    = "text/plain"
	formatMarkdown = "text/markdown"
	formatHTML     = "text/html"
)

var formats = []string{formatPlain, formatMarkdown, formatHTML}

// reply is an answer in JSON.
type reply struct {
	Title    string      `json:"title"`
	Format   string      `json:"format"` // of the texts; "" means plain
	Text     string      `json:"text"`
	Pages    []replyPage `json:"pages"`
	Warnings []string    `json:"warnings"`
	Error    *replyError `json:"error"`
}

type replyPage struct {
	Number int    `json:"number"` // 0: the one behind the page before it
	Text   string `json:"text"`
}

type replyError struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// reasons are those that a program may give; others count as a broken file.
var reasons = []string{rag.ReasonEncrypted, rag.ReasonScanWithoutText, rag.ReasonNoText, rag.ReasonTooLarge, rag.ReasonBrokenFile,
	rag.ReasonUnsupportedType, rag.ReasonArchiveBomb}

// Bounds of what a program may say beside the text.
const (
	maxWarnings = 20
	maxSentence = 500
)

// understand reads an answer in JSON.
func understand(content []byte) (Result, error) {
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	var r reply
	if err := d.Decode(&r); err != nil {
		return Result{}, failed("the parser's reply is not the JSON of the protocol: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Result{}, failed("the parser's reply is not the JSON of the protocol: there is something behind it")
	}
	if r.Error != nil {
		return Result{}, r.Error.reject()
	}
	if r.Format == "" {
		r.Format = formatPlain
	}
	if !slices.Contains(formats, r.Format) {
		return Result{}, failed("the parser's reply has the format %q, which is none of %s", r.Format, strings.Join(formats, ", "))
	}
	if r.Text != "" && len(r.Pages) > 0 {
		return Result{}, failed("the parser's reply has both text and pages")
	}
	result := Result{Title: r.Title, Format: r.Format}
	for _, w := range r.Warnings[:min(len(r.Warnings), maxWarnings)] {
		result.Warnings = append(result.Warnings, sentence(w))
	}
	if r.Text != "" {
		result.Pages = []Page{{Text: r.Text}}
	}
	number := 0
	for i, p := range r.Pages {
		if number++; p.Number != 0 {
			number = p.Number
		}
		if number < 1 || i > 0 && number <= result.Pages[i-1].Number {
			return Result{}, failed("the parser's reply has page %d out of order", p.Number)
		}
		result.Pages = append(result.Pages, Page{number, p.Text})
	}
	return result, nil
}

func (e *replyError) reject() error {
	reason, message := e.Reason, sentence(e.Message)
	if !slices.Contains(reasons, reason) {
		reason = rag.ReasonBrokenFile
	}
	if message == "" {
		message = "the parser cannot read the document"
	}
	return flow.Reject(reason, "%s", message)
}

// plain is a text of a format; form feeds part plain text into pages.
func plain(content []byte, format string) Result {
	r := Result{Format: format}
	text := string(content)
	if valid := strings.ToValidUTF8(text, "\ufffd"); valid != text {
		text = valid
		r.Warnings = append(r.Warnings, "The parser's text is not valid UTF-8; what is not was replaced.")
	}
	if format != formatPlain || !strings.Contains(text, "\f") {
		r.Pages = []Page{{Text: text}}
		return r
	}
	for i, page := range strings.Split(strings.TrimSuffix(text, "\f"), "\f") {
		r.Pages = append(r.Pages, Page{i + 1, page})
	}
	return r
}

// sentence makes something that can be shown of what a program says.
func sentence(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	if len(s) > maxSentence {
		s = strings.ToValidUTF8(s[:maxSentence], "") + "…"
	}
	return s
}

func errTooMuch(limit int) error {
	return flow.Reject(rag.ReasonTooLarge, "the parser's reply has more bytes than the limit of %d", limit)
}

func describe(said string) string {
	if said = sentence(said); said == "" {
		return ""
	}
	return fmt.Sprintf(": %s", said)
}
