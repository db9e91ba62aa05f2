package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// textType is the content type of what came as "text".
const textType = "text/plain; charset=utf-8"

// jsonFields are the fields of a document's JSON.
var jsonFields = [...]string{"id", "message_id", "text", "content", "content_type", "title", "source", "metadata"}

// ParseDocumentJSON reads a document's JSON: an object with the fields id, message_id, text or content (base64) with
// content_type, title, source and metadata. It is strict: unknown and doubled fields, other types, null, invalid UTF-8 and
// anything behind the object are refused. A missing id or message_id is "": the caller decides. Scalars of the metadata become
// strings as they are written; a text becomes the content with the type "text/plain; charset=utf-8".
//
// The error is a *FieldError, for the first fault. The document that comes with it holds ID and MessageID as far as they
// could be read and may be used, so that a dead letter can name them, and nothing else.
func ParseDocumentJSON(b []byte, lim Limits) (rag.Document, error) {
	return parseDocumentJSON(b, lim, nil)
}

// parseDocumentJSON reads the JSON of a document whose content is in a blob, if there is one: then it has neither text nor content.
func parseDocumentJSON(b []byte, lim Limits, blob *rag.Blob) (rag.Document, error) {
	lim = lim.orDefault()
	if len(b) > lim.Bytes {
		return rag.Document{}, &FieldError{Reason: rag.ReasonTooLarge, Message: fmt.Sprintf("has %d bytes, more than the limit of %d", len(b), lim.Bytes)}
	}
	if fault := scanJSON(b, lim.Depth); fault != "" {
		return rag.Document{}, broken(fault)
	}
	p := documentParser{lim: lim, blob: blob, dec: json.NewDecoder(bytes.NewReader(b))}
	p.dec.UseNumber()
	if err := p.object(); err != nil {
		return rag.Document{}, broken(syntaxFault(err, p.dec.InputOffset()))
	}
	if _, err := p.dec.Token(); err != io.EOF {
		return rag.Document{}, broken(fmt.Sprintf("the JSON has something behind its object, at byte %d", p.dec.InputOffset()))
	}
	doc := p.finish()
	if p.err != nil {
		return rag.Document{ID: doc.ID, MessageID: doc.MessageID}, p.err
	}
	return doc, nil
}

func broken(message string) *FieldError {
	return &FieldError{Reason: rag.ReasonBrokenJSON, Message: message}
}

var errNoObject = errors.New("it is not an object")

func syntaxFault(err error, offset int64) string {
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the JSON ends too early"
	}
	return fmt.Sprintf("not the JSON of a document, at byte %d: %v", offset, err)
}

// documentParser reads on behind a fault, so that the ids of a document that dies are known whatever their place is.
type documentParser struct {
	lim      Limits
	blob     *rag.Blob
	dec      *json.Decoder
	err      *FieldError
	seen     [len(jsonFields)]bool
	values   [len(jsonFields)]string
	metadata map[string]string
}

func (p *documentParser) fail(reason, field, format string, args ...any) {
	if p.err == nil {
		p.err = &FieldError{Reason: reason, Field: brief(field), Message: fmt.Sprintf(format, args...)}
	}
}

// brief keeps a name that the sender has chosen from filling the log.
func brief(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

func (p *documentParser) object() error {
	if t, err := p.dec.Token(); err != nil || t != json.Delim('{') {
		if err == nil {
			err = errNoObject
		}
		return err
	}
	for p.dec.More() {
		name, err := p.name()
		if err != nil {
			return err
		}
		if err := p.field(name); err != nil {
			return err
		}
	}
	_, err := p.dec.Token()
	return err
}

// name reads the name of a field; the decoder accepts nothing but a string there.
func (p *documentParser) name() (string, error) {
	t, err := p.dec.Token()
	if err != nil {
		return "", err
	}
	name, _ := t.(string)
	return name, nil
}

func (p *documentParser) field(name string) error {
	t, err := p.dec.Token()
	if err != nil {
		return err
	}
	i := fieldIndex(name)
	switch {
	case i < 0:
		p.fail(rag.ReasonUnknownField, name, "is not a field of a document")
		return p.skip(t)
	case p.seen[i]:
		p.fail(rag.ReasonInvalidField, name, "stands there twice")
		return p.skip(t)
	}
	p.seen[i] = true
	if name == "metadata" {
		return p.metadataObject(t)
	}
	s, ok := t.(string)
	if !ok {
		p.fail(rag.ReasonInvalidField, name, "must be a string")
		return p.skip(t)
	}
	p.values[i] = s
	return nil
}

func fieldIndex(name string) int {
	for i, f := range jsonFields {
		if f == name {
			return i
		}
	}
	return -1
}

func (p *documentParser) metadataObject(t json.Token) error {
	if t != json.Delim('{') {
		p.fail(rag.ReasonInvalidField, "metadata", "must be an object")
		return p.skip(t)
	}
	p.metadata = map[string]string{}
	for p.dec.More() {
		key, err := p.name()
		if err != nil {
			return err
		}
		value, err := p.dec.Token()
		if err != nil {
			return err
		}
		s, ok := scalar(value)
		if !ok {
			p.fail(rag.ReasonInvalidField, "metadata."+key, "must be a string, a number, true or false")
			if err := p.skip(value); err != nil {
				return err
			}
			continue
		}
		p.entry(key, s)
	}
	_, err := p.dec.Token()
	return err
}

// scalar is a value as it is written; false for null and for what is nested.
func scalar(t json.Token) (string, bool) {
	switch v := t.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	}
	return "", false
}

func (p *documentParser) entry(key, value string) {
	field := "metadata." + key
	switch _, doubled := p.metadata[key]; {
	case doubled:
		p.fail(rag.ReasonInvalidField, field, "stands there twice")
	case key == "" || strings.ContainsRune(key, '='):
		p.fail(rag.ReasonInvalidField, field, "a key must not be empty and must not contain '='")
	case textFault(key, len(key), true) != "":
		p.fail(rag.ReasonInvalidField, field, "a key must not have control characters")
	case len(key)+1+len(value) > p.lim.MetadataBytes:
		p.fail(rag.ReasonInvalidField, field, "has %d bytes as key=value, more than the limit of %d", len(key)+1+len(value), p.lim.MetadataBytes)
	case len(p.metadata) == p.lim.Metadata:
		p.fail(rag.ReasonInvalidField, "metadata", "has more than %d entries", p.lim.Metadata)
	default:
		p.metadata[key] = value
	}
}

// skip reads to the end of a value whose first token is t.
func (p *documentParser) skip(t json.Token) error {
	for depth := nesting(t); depth > 0; {
		t, err := p.dec.Token()
		if err != nil {
			return err
		}
		depth += nesting(t)
	}
	return nil
}

func nesting(t json.Token) int {
	switch t {
	case json.Delim('{'), json.Delim('['):
		return 1
	case json.Delim('}'), json.Delim(']'):
		return -1
	}
	return 0
}

// value is a field that was there, and whether it was.
func (p *documentParser) value(name string) (string, bool) {
	i := fieldIndex(name)
	return p.values[i], p.seen[i]
}

// finish judges the fields together.
func (p *documentParser) finish() rag.Document {
	d := rag.Document{
		ID:        p.id("id", CheckDocumentID),
		MessageID: p.id("message_id", CheckMessageID),
		Title:     p.short("title", p.lim.TitleBytes, false),
		Source:    p.short("source", p.lim.SourceBytes, false),
		Metadata:  rag.NewMetadata(p.metadata),
	}
	contentType := p.short("content_type", maxContentTypeBytes, true)
	text, hasText := p.value("text")
	content, hasContent := p.value("content")
	_, hasType := p.value("content_type")
	switch {
	case p.blob != nil && (hasText || hasContent):
		p.fail(rag.ReasonInvalidField, "content", "cannot stand beside a reference to it")
	case p.blob != nil:
		d.Blob, d.ContentType = p.blob, contentType
	case hasText && hasContent:
		p.fail(rag.ReasonInvalidField, "content", "cannot stand beside text")
	case hasText && hasType:
		p.fail(rag.ReasonInvalidField, "content_type", "belongs to content; a text is plain text")
	case hasText && text == "":
		p.fail(rag.ReasonEmptyText, "text", "is empty")
	case hasText:
		d.Content, d.ContentType = []byte(text), textType
	case hasContent:
		b, err := base64.StdEncoding.Strict().DecodeString(content)
		if err != nil {
			p.fail(rag.ReasonInvalidField, "content", "is not base64: %v", err)
		}
		d.Content, d.ContentType = b, contentType
	default:
		p.fail(rag.ReasonInvalidField, "text", "is missing, and so is content")
	}
	return d
}

// id is "" where it is missing or must not be used.
func (p *documentParser) id(name string, check func(string) error) string {
	s, ok := p.value(name)
	if !ok {
		return ""
	}
	var f *FieldError
	if errors.As(check(s), &f) {
		p.fail(f.Reason, f.Field, "%s", f.Message)
		return ""
	}
	return s
}

func (p *documentParser) short(name string, most int, refuseControls bool) string {
	s, _ := p.value(name)
	if fault := textFault(s, most, refuseControls); fault != "" {
		p.fail(rag.ReasonInvalidField, name, "%s", fault)
	}
	return s
}

// jsonDocument is what EncodeDocumentJSON writes.
type jsonDocument struct {
	ID          string            `json:"id,omitempty"`
	MessageID   string            `json:"message_id,omitempty"`
	Title       string            `json:"title,omitempty"`
	Source      string            `json:"source,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	Text        *string           `json:"text,omitempty"`
	ContentType string            `json:"content_type,omitempty"`
	Content     *[]byte           `json:"content,omitempty"`
}

// EncodeDocumentJSON writes the JSON that ParseDocumentJSON reads back as the same document, for documents that keep its
// limits; it has no content where that is in a blob. A text of the type "text/plain; charset=utf-8" travels as text, everything else as base64. A delete has no JSON: it is
// nil, a null value.
func EncodeDocumentJSON(d rag.Document) []byte {
	if d.Delete {
		return nil
	}
	j := jsonDocument{ID: d.ID, MessageID: d.MessageID, Title: d.Title, Source: d.Source}
	if d.Blob != nil {
		j.ContentType = d.ContentType
	} else if len(d.Content) > 0 && d.ContentType == textType && utf8.Valid(d.Content) {
		text := string(d.Content)
		j.Text = &text
	} else {
		content := append([]byte{}, d.Content...)
		j.Content, j.ContentType = &content, d.ContentType
	}
	for i, m := range d.Metadata {
		if i == 0 {
			j.Metadata = make(map[string]string, len(d.Metadata))
		}
		k, v, _ := strings.Cut(m, "=")
		j.Metadata[k] = v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // "<" would be six bytes, and HTML is full of it
	if err := enc.Encode(j); err != nil {
		panic(fmt.Sprintf("wire: strings and bytes have no JSON: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
