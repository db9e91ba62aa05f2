package ingest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/console"
	"github.com/waymarkhq/waymark/rag"
)

// Statuses beside those of the pipeline: why a document did not even get into it.
const (
	// StatusRefused: the API did not take it.
	StatusRefused rag.Status = "refused"
	// StatusUnreadable: it could not be read here.
	StatusUnreadable rag.Status = "unreadable"
)

// Outcome is what became of one document.
type Outcome struct {
	DocumentID string     `json:"document_id"`
	MessageID  string     `json:"message_id,omitempty"`
	Status     rag.Status `json:"status"`
	Chunks     int        `json:"chunks"`
	Error      *Failure   `json:"error,omitempty"`

	// Place is the file, with the line where it has several documents; only where the id does not say it.
	Place string `json:"place,omitempty"`
}

// Failure says why.
type Failure struct {
	Stage   string `json:"stage,omitempty"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Failed reports whether the outcome is worth a line: the document is dead or did not get into the pipeline.
func (o Outcome) Failed() bool {
	return o.Status == rag.StatusDead || o.Status == StatusRefused || o.Status == StatusUnreadable
}

// String is the outcome as one line: "docs/a.pdf: dead (no_text): The PDF has no text."
func (o Outcome) String() string {
	name := o.DocumentID
	if o.Place != "" {
		name = o.Place
	}
	line := console.Clean(name) + ": " + string(o.Status)
	if o.Error != nil {
		line += fmt.Sprintf(" (%s): %s", o.Error.Reason, console.Clean(o.Error.Message))
	}
	return line
}

func finalOutcome(f client.FinalMessage) Outcome {
	o := Outcome{DocumentID: f.DocumentID, MessageID: f.MessageID, Status: f.Status, Chunks: f.Chunks}
	if f.Error != nil {
		o.Error = &Failure{Stage: f.Error.Stage, Reason: f.Error.Reason, Message: f.Error.Message}
	}
	return o
}

func unreadable(id, place string, err error) Outcome {
	return Outcome{DocumentID: id, Place: place, Status: StatusUnreadable, Error: &Failure{Reason: "cannot_read", Message: err.Error()}}
}

func refused(id, place string, err *client.Error) Outcome {
	reason := err.Reason
	if reason == "" {
		reason = strings.ReplaceAll(err.Kind(), "-", "_")
	}
	if reason == "" {
		reason = fmt.Sprintf("http_%d", err.Status)
	}
	return Outcome{DocumentID: id, Place: place, Status: StatusRefused, Error: &Failure{Reason: reason, Message: sentence(err)}}
}

// sentence says what is wrong without the title, which the reason tells already.
func sentence(err *client.Error) string {
	if err.Detail == "" {
		return err.Title
	}
	if err.Field != "" && err.Field != err.In {
		return err.Field + ": " + err.Detail
	}
	return err.Detail
}

// refusal is the problem of one document; nil means that the error concerns more than it.
func refusal(err error) *client.Error {
	var e *client.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Status {
	case 401, 403, 404, 405, 429, 502, 503, 504:
		return nil
	}
	return e
}

// Summary counts outcomes.
type Summary struct {
	Documents int `json:"documents"`
	// Statuses counts documents by what became of them; accepted are those without a final status (yet).
	Statuses map[rag.Status]int `json:"statuses"`
	// Chunks of the documents that were indexed.
	Chunks  int     `json:"chunks"`
	Seconds float64 `json:"seconds"`
	Skipped Skipped `json:"-"`
}

// Failed counts the documents that are dead or did not get into the pipeline.
func (s Summary) Failed() int {
	return s.Statuses[rag.StatusDead] + s.Statuses[StatusRefused] + s.Statuses[StatusUnreadable]
}

// String is the summary as one line: "63 documents: 60 indexed, 3 dead (12.3 s, 1,024 chunks)".
func (s Summary) String() string {
	var parts []string
	for _, status := range []rag.Status{
		rag.StatusIndexed, rag.StatusUnchanged, rag.StatusSuperseded, rag.StatusDeleted, rag.StatusDead,
		StatusRefused, StatusUnreadable, rag.StatusAccepted,
	} {
		if n := s.Statuses[status]; n > 0 {
			parts = append(parts, console.Count(n)+" "+string(status))
		}
	}
	line := console.Count(s.Documents) + " documents"
	if s.Documents == 1 {
		line = "1 document"
	}
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	line += " (" + formatSeconds(time.Duration(s.Seconds*float64(time.Second)))
	switch {
	case s.Chunks == 1:
		line += ", 1 chunk"
	case s.Chunks > 1:
		line += ", " + console.Count(s.Chunks) + " chunks"
	}
	return line + ")"
}

func formatSeconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
