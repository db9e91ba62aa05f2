// Package mail takes e-mail messages apart: headers, bodies, attachments.
package mail

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	netmail "net/mail"
	"net/textproto"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Limits of a message. Parts beyond them are left out with a warning.
const (
	MaxParts = 1000
	MaxDepth = 20
)

// Message is a message taken apart.
type Message struct {
	Subject string
	// Headers are those that a reader wants to see, in this order: From, To, Cc, Date. Missing ones are missing.
	Headers []Header
	// Bodies are the texts of the message, in their order, each in one or more versions that say the same.
	Bodies      []Body
	Attachments []Part
	Warnings    []string
	parts       int
}

// Header is a header, decoded.
type Header struct{ Name, Value string }

// Body is one text in several versions.
type Body []Part

// Part is a part of a message, decoded from its transfer encoding.
type Part struct {
	Type    string // with its parameters
	Name    string // of the file; "" if it has none
	Content []byte
}

// Read takes a message apart. One without headers is a *flow.Error; a part that is damaged is taken as far as it goes, with a
// warning.
func Read(content []byte) (*Message, error) {
	if bytes.HasPrefix(content, []byte("From ")) {
		if i := bytes.IndexByte(content, '\n'); i >= 0 {
			content = content[i+1:]
		}
	}
	header, body, err := split(content)
	if err != nil {
		return nil, flow.Reject(rag.ReasonBrokenFile, "the message is damaged: its headers cannot be read")
	}
	m := &Message{Subject: decodeHeader(header.Get("Subject"))}
	for _, name := range []string{"From", "To", "Cc", "Date"} {
		if v := decodeHeader(header.Get(name)); v != "" {
			m.Headers = append(m.Headers, Header{name, v})
		}
	}
	m.part(header, body, 0, nil)
	return m, nil
}

// split parts headers from the body. Lines that are no headers are passed over.
func split(content []byte) (textproto.MIMEHeader, []byte, error) {
	m, err := netmail.ReadMessage(bytes.NewReader(content))
	if err == nil {
		body, err := io.ReadAll(m.Body)
		return textproto.MIMEHeader(m.Header), body, err
	}
	head, body, found := bytes.Cut(content, []byte("\n\n"))
	if h, b, ok := bytes.Cut(content, []byte("\r\n\r\n")); ok && len(h) < len(head) {
		head, body, found = h, b, true
	}
	if !found {
		body = nil
	}
	var good bytes.Buffer
	for line := range bytes.Lines(head) {
		key, _, ok := bytes.Cut(line, []byte(":"))
		if ok && !bytes.ContainsAny(key, " \t\r\n") || good.Len() > 0 && (line[0] == ' ' || line[0] == '\t') {
			good.Write(line)
		}
	}
	good.WriteString("\r\n\r\n")
	header, err := textproto.NewReader(bufio.NewReader(&good)).ReadMIMEHeader()
	if err != nil && !errors.Is(err, io.EOF) || len(header) == 0 {
		return nil, nil, fmt.Errorf("headers: %w", errors.Join(err, io.ErrUnexpectedEOF))
	}
	return header, body, nil
}

// decodeHeader decodes the words of a header that are not ASCII.
func decodeHeader(s string) string {
	d := mime.WordDecoder{CharsetReader: func(label string, r io.Reader) (io.Reader, error) { return charset.NewReaderLabel(label, r) }}
	if decoded, err := d.DecodeHeader(s); err == nil {
		s = decoded
	}
	s = strings.ToValidUTF8(s, "\ufffd")
	return strings.Join(strings.Fields(s), " ")
}

// part adds a part, or the parts in it. A body is added to alternatives where the part is one of several versions.
func (m *Message) part(header textproto.MIMEHeader, raw []byte, depth int, alternatives *Body) {
	if m.parts++; m.parts > MaxParts || depth > MaxDepth {
		if m.parts == MaxParts+1 || depth == MaxDepth+1 {
			m.warn("The message has more than %d parts, or parts nested more than %d deep; the rest was left out.", MaxParts, MaxDepth)
		}
		return
	}
	declared := header.Get("Content-Type")
	kind, params, err := mime.ParseMediaType(declared)
	if kind == "" || err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		kind, params = "text/plain", map[string]string{}
		if declared != "" { // damaged
			kind, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(declared)), ";")
		}
	}
	disposition, dispositionParams, err := mime.ParseMediaType(header.Get("Content-Disposition"))
	if err != nil && dispositionParams == nil {
		dispositionParams = map[string]string{}
	}
	name := decodeHeader(dispositionParams["filename"])
	if name == "" {
		name = decodeHeader(params["name"])
	}
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		m.multipart(kind, params["boundary"], raw, depth, alternatives)
		return
	}
	content, err := decode(header.Get("Content-Transfer-Encoding"), raw)
	if err != nil {
		label := name
		if label == "" {
			label = kind
		}
		m.warn("The part %s is damaged; it was taken as far as it goes.", label)
	}
	p := Part{Type: declared, Name: name, Content: content}
	switch {
	case len(bytes.TrimSpace(content)) == 0:
	case disposition == "attachment" || name != "" && disposition != "inline" || !strings.HasPrefix(kind, "text/"):
		m.Attachments = append(m.Attachments, p)
	case alternatives != nil:
		*alternatives = append(*alternatives, p)
	default:
		m.Bodies = append(m.Bodies, Body{p})
	}
}

// multipart adds the parts of a part.
func (m *Message) multipart(kind, boundary string, raw []byte, depth int, alternatives *Body) {
	var versions Body
	inner := alternatives
	if kind == "multipart/alternative" && alternatives == nil {
		inner = &versions
	}
	r := multipart.NewReader(bytes.NewReader(raw), boundary)
	for m.parts <= MaxParts {
		p, err := r.NextRawPart()
		if err != nil {
			if !errors.Is(err, io.EOF) && m.parts > 0 {
				m.warn("The message breaks off, or its parts cannot all be told; what was found was taken.")
			}
			break
		}
		body, err := io.ReadAll(p)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			m.warn("A part of the message is damaged; it was taken as far as it goes.")
		}
		m.part(p.Header, body, depth+1, inner)
	}
	if len(versions) > 0 {
		m.Bodies = append(m.Bodies, versions)
	}
}

// maxWarnings bounds the warnings of a message.
const maxWarnings = 20

func (m *Message) warn(format string, args ...any) {
	if w := fmt.Sprintf(format, args...); len(m.Warnings) < maxWarnings {
		m.Warnings = append(m.Warnings, w)
	}
}

// decode undoes a transfer encoding. It returns what could be decoded also with an error.
func decode(encoding string, raw []byte) ([]byte, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "base64":
		clean := make([]byte, 0, len(raw))
		for _, b := range raw {
			if b > ' ' && b < 0x7f && b != '=' {
				clean = append(clean, b)
			}
		}
		if len(clean)%4 == 1 {
			clean = clean[:len(clean)-1]
		}
		out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
		n, err := base64.RawStdEncoding.Decode(out, clean)
		return out[:n], err
	case "quoted-printable":
		return io.ReadAll(quotedprintable.NewReader(bytes.NewReader(raw)))
	}
	return raw, nil
}
