package parse

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/parse/mail"
)

// mailHead bounds the headers that are looked at to tell a message, in bytes.
const mailHead = 16 << 10

// isMail reports whether content is an e-mail message: it was called one and begins with a header, or begins with headers that
// only mail programs write.
func isMail(content []byte, declared, name string) bool {
	head := string(content[:min(len(content), mailHead)])
	if strings.HasPrefix(head, "From ") { // the first line of a message in a mailbox
		_, head, _ = strings.Cut(head, "\n")
	}
	seen := map[string]bool{}
	for line := range strings.SplitSeq(head, "\n") {
		line = strings.TrimRight(line, "\r")
		if line == "" {
			break
		}
		if line[0] == ' ' || line[0] == '\t' {
			if len(seen) == 0 {
				return false
			}
			continue
		}
		key, _, found := strings.Cut(line, ":")
		if !found || !isHeaderName(key) {
			return false
		}
		seen[strings.ToLower(key)] = true
	}
	if len(seen) == 0 {
		return false
	}
	if declared == TypeMail || readable[declared] == TypeMail || declared == "" && strings.EqualFold(path.Ext(name), ".eml") {
		return seen["from"] || seen["subject"] || seen["date"] || seen["content-type"] || seen["received"] || seen["to"]
	}
	return (seen["from"] || seen["received"]) && (seen["message-id"] || seen["mime-version"] || seen["received"]) &&
		(seen["date"] || seen["subject"] || seen["to"])
}

func isHeaderName(s string) bool {
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return s != ""
}

// maxMailDepth bounds how deep messages lie in each other.
const maxMailDepth = 4

// mail reads an e-mail message: its subject and headers, its text, and the text of its attachments, each under a heading with
// its name. An attachment that cannot be read is left out with a warning.
func (p *Parser) mail(ctx context.Context, s source) (Text, error) {
	m, err := mail.Read(s.content)
	if err != nil {
		return Text{}, err
	}
	if s.depth >= maxMailDepth {
		return Text{}, reject(rag.ReasonTooLarge, "messages lie in each other more than %d deep", maxMailDepth)
	}
	return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
		warnings := m.Warnings
		if m.Subject != "" {
			w.Heading(1)
			w.Text(m.Subject)
		}
		w.Paragraph()
		for _, h := range m.Headers {
			w.Text(h.Name + ": " + h.Value)
			w.Break()
		}
		for _, b := range m.Bodies {
			text, err := p.bestVersion(ctx, b, s.depth)
			if err != nil {
				if fatal(ctx, err) {
					return "", nil, err
				}
				warnings = append(warnings, fmt.Sprintf("A text of the message was left out: %v.", err))
				continue
			}
			warnings = append(warnings, text.Warnings...)
			w.insert(text, 1)
		}
		for _, a := range m.Attachments {
			more, err := p.attachment(ctx, w, a, s.depth)
			if err != nil {
				return "", nil, err
			}
			warnings = append(warnings, more...)
		}
		return m.Subject, warnings, nil
	})
}

// fatal reports whether an error in a part ends the reading of the whole.
func fatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || !flow.IsReject(err) || flow.ReasonOf(err) == rag.ReasonTimeout
}

// bestVersion reads the versions of a text and takes the one in HTML, because it has structure, unless another says much more.
func (p *Parser) bestVersion(ctx context.Context, versions mail.Body, depth int) (Text, error) {
	var best Text
	var failed error
	for _, v := range versions {
		text, err := p.read(ctx, Input{Content: v.Content, DeclaredType: v.Type}, depth+1)
		if err != nil {
			if fatal(ctx, err) {
				return Text{}, err
			}
			failed = err
			continue
		}
		much, little := len(text.Body), len(best.Body)
		if text.Type == TypeHTML {
			much *= 2
		}
		if best.Type == TypeHTML {
			little *= 2
		}
		if much > little {
			best = text
		}
	}
	if best.Body == "" && failed != nil {
		return Text{}, failed
	}
	return best, nil
}

// attachment writes the text of an attachment, or says why it was left out.
func (p *Parser) attachment(ctx context.Context, w *flowWriter, a mail.Part, depth int) ([]string, error) {
	name := a.Name
	if name == "" {
		name, _ = declaredType(a.Type)
	}
	text, err := p.read(ctx, Input{Content: a.Content, DeclaredType: a.Type, Name: a.Name}, depth+1)
	if err != nil {
		var failed *external.Error // an external program may fail on one for good; many that wait for no answer would take too long
		leave := ctx.Err() == nil && errors.As(err, &failed) && failed.Class == rag.ClassTransient && !errors.Is(err, external.ErrNoAnswer)
		if fatal(ctx, err) && !leave {
			return nil, err
		}
		return []string{fmt.Sprintf("The attachment %s was left out: %v.", clip(oneLine(name), maxCrumb), err)}, nil
	}
	w.Heading(2)
	w.Text("Attachment: " + name)
	w.insert(text, 2)
	var warnings []string
	for _, warning := range text.Warnings {
		warnings = append(warnings, fmt.Sprintf("The attachment %s: %s", clip(oneLine(name), maxCrumb), warning))
	}
	return warnings, nil
}
