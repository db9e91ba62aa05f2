package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/waymarkhq/waymark/rag"
)

// limitBody is the name of the body limit in problems.
const limitBody = "body_bytes"

func (s *Server) bodyTooLarge() *Problem {
	return problem(kindTooLarge, "the body is above the limit of %d bytes", s.cfg.MaxBodyBytes).
		at("body", "body").over(limitBody, s.cfg.MaxBodyBytes)
}

// limitDocument is the name of the limit of a document's own bytes in problems; it is that of the setting.
const limitDocument = "limits.document_bytes"

func (s *Server) documentTooLarge() *Problem {
	return problem(kindTooLarge, "the document is above the limit of %d bytes", s.cfg.MaxDocumentBytes).
		at("body", "body").because(rag.ReasonTooLarge).over(limitDocument, s.cfg.MaxDocumentBytes)
}

// readContent reads a document's own bytes. Large ones go to the blob store as they come in, where there is one; of those no
// more than rag.InlineBytes is held.
func (s *Server) readContent(ctx context.Context, l *lease) ([]byte, *rag.Blob, *Problem) {
	body, size := exchangeOf(ctx).req.Body, exchangeOf(ctx).req.ContentLength
	switch {
	case s.deps.Blobs == nil && size > s.cfg.MaxBodyBytes:
		return nil, nil, problem(kindTooLarge, "the document is above the limit of %d bytes; larger ones need a blob store, see the setting blobs.url", s.cfg.MaxBodyBytes).
			at("body", "body").over(limitBody, s.cfg.MaxBodyBytes)
	case s.deps.Blobs != nil && size > s.cfg.MaxDocumentBytes:
		return nil, nil, s.documentTooLarge()
	case s.deps.Blobs == nil || size >= 0 && size <= rag.InlineBytes:
		content, p := s.readBody(ctx, l)
		return content, nil, p
	}
	if p := s.uploads.enter(ctx, 1); p != nil {
		return nil, nil, p
	}
	defer s.uploads.leave(1)
	if p := l.grow(ctx, rag.InlineBytes+1); p != nil {
		return nil, nil, p
	}
	rest := &upload{body: body, left: s.cfg.MaxDocumentBytes, over: s.documentTooLarge}
	head := make([]byte, rag.InlineBytes+1)
	n, err := io.ReadFull(rest, head)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) { // the upload's own errors are problems
		return head[:n], nil, nil
	}
	if err == nil {
		var b rag.Blob
		if b, err = s.deps.Blobs.Write(ctx, io.MultiReader(bytes.NewReader(head), rest)); err == nil {
			return nil, &b, nil
		}
	}
	var p *Problem
	if !errors.As(err, &p) {
		p = s.publishProblem(err)
	}
	return nil, nil, p
}

// upload is a body on its way to the blob store. Its errors are problems.
type upload struct {
	body io.Reader
	left int64
	over func() *Problem
}

func (u *upload) Read(p []byte) (int, error) {
	n, err := u.body.Read(p)
	u.left -= int64(n)
	switch {
	case u.left < 0:
		return 0, u.over()
	case err != nil && !errors.Is(err, io.EOF):
		return n, bodyProblem(err)
	}
	return n, err
}

// readBody reads the whole body of a request. It never holds more than the limit, and counts what it holds against the
// budget: the caller releases the lease when the bytes are no longer used, also when there is a problem.
func (s *Server) readBody(ctx context.Context, l *lease) ([]byte, *Problem) {
	x := exchangeOf(ctx)
	limit := s.cfg.MaxBodyBytes
	if x.req.ContentLength > limit {
		return nil, s.bodyTooLarge()
	}
	most := limit
	if x.req.ContentLength >= 0 {
		most = x.req.ContentLength
	}
	var buf []byte
	var one [1]byte
	for {
		if int64(len(buf)) == most { // full: only the end may follow
			n, err := x.req.Body.Read(one[:])
			if n > 0 {
				return nil, s.bodyTooLarge()
			}
			if errors.Is(err, io.EOF) {
				return buf, nil
			}
			if err != nil {
				return nil, bodyProblem(err)
			}
			continue
		}
		if len(buf) == cap(buf) {
			size := min(max(32<<10, 4*int64(cap(buf))), most)
			if p := l.grow(ctx, size); p != nil {
				return nil, p
			}
			grown := make([]byte, len(buf), size)
			copy(grown, buf)
			buf = grown
		}
		n, err := x.req.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			return buf, nil
		}
		if err != nil {
			return nil, bodyProblem(err)
		}
	}
}

// mediaType checks the type of a request's body against those that a call takes. None at all is taken as the first.
func mediaType(h http.Header, accepted ...string) *Problem {
	if p := identityEncoding(h); p != nil {
		return p
	}
	header := h.Get("Content-Type")
	if header == "" {
		return nil
	}
	refuse := func(format string, args ...any) *Problem {
		return problem(kindUnsupportedType, format, args...).at("header", "Content-Type").
			with("Accept-Post", strings.Join(accepted, ", "))
	}
	mt, params, err := mime.ParseMediaType(header)
	if err != nil {
		return refuse("the Content-Type %q cannot be read; this call takes %s", header, strings.Join(accepted, ", "))
	}
	if !slices.Contains(accepted, mt) {
		return refuse("the Content-Type is %s; this call takes %s", mt, strings.Join(accepted, ", "))
	}
	if c := params["charset"]; c != "" && !strings.EqualFold(c, "utf-8") && !strings.EqualFold(c, "us-ascii") {
		return refuse("the charset is %s; this call takes UTF-8", c)
	}
	return nil
}

// identityEncoding refuses compressed bodies: their size could not be judged before they are unpacked.
func identityEncoding(h http.Header) *Problem {
	if e := h.Get("Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return problem(kindUnsupportedType, "the Content-Encoding %s is not taken: send the body uncompressed", e).
			at("header", "Content-Encoding").with("Accept-Encoding", "identity")
	}
	return nil
}

// readJSON reads and decodes a small JSON body strictly: fields names are exact, each at most once, none unknown.
func (s *Server) readJSON(ctx context.Context, into any, fields ...string) *Problem {
	if p := mediaType(exchangeOf(ctx).req.Header, "application/json"); p != nil {
		return p
	}
	l := &lease{gate: s.bytes}
	defer l.release()
	b, p := s.readBody(ctx, l)
	if p != nil {
		return p
	}
	return decodeStrict(b, into, fields...)
}

// decodeStrict decodes one JSON object. fields are the names that its own level may have.
func decodeStrict(b []byte, into any, fields ...string) *Problem {
	if p := checkJSON(b, fields); p != nil {
		return p
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			name := wrong.Field
			if first, rest, ok := strings.Cut(name, "."); ok && !slices.Contains(fields, first) {
				name = rest // the decoder names the embedded struct too
			}
			return problem(kindInvalidField, "a %s cannot be used here", wrong.Value).at("body", name)
		}
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return problem(kindInvalidField, "the field is unknown").at("body", strings.Trim(name, `"`)).because("unknown_field")
		}
		return problem(kindMalformedJSON, "%v", err).at("body", "body")
	}
	return nil
}

// checkJSON walks through the tokens: it finds what encoding/json forgives (doubled names, names in other case, text
// after the value) and bounds the depth.
func checkJSON(b []byte, fields []string) *Problem {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.UseNumber()
	var open []map[string]bool // names seen, per level; nil for an array
	name := true               // whether the next string of an object is a name
	for {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) && len(open) == 0 {
			return problem(kindMalformedJSON, "the body is empty").at("body", "body")
		}
		if err != nil {
			return problem(kindMalformedJSON, "%v", jsonFault(err)).at("body", "body")
		}
		switch d := t.(type) {
		case json.Delim:
			switch d {
			case '{':
				open = append(open, map[string]bool{})
			case '[':
				open = append(open, nil)
			default:
				open = open[:len(open)-1]
			}
			name = true
		case string:
			if top := len(open) - 1; top >= 0 && open[top] != nil && name {
				if open[top][d] {
					return problem(kindInvalidField, "the field is there twice").at("body", d).because("doubled_field")
				}
				if top == 0 && !slices.Contains(fields, d) {
					return problem(kindInvalidField, "the field is unknown").at("body", d).because("unknown_field")
				}
				open[top][d] = true
				name = false
				continue
			}
			name = true
		default:
			name = true
		}
		if len(open) > MaxJSONDepth {
			return problem(kindMalformedJSON, "it is nested deeper than %d", MaxJSONDepth).at("body", "body").over("json_depth", MaxJSONDepth)
		}
		if len(open) == 0 && t != json.Delim('}') || len(open) == 1 && open[0] == nil {
			return problem(kindMalformedJSON, "the body must be an object").at("body", "body")
		}
		if len(open) == 0 {
			break
		}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problem(kindMalformedJSON, "something follows after the JSON value").at("body", "body")
	}
	return nil
}

func jsonFault(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("it ends in the middle")
	}
	return err
}
