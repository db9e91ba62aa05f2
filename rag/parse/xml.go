package parse

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"

	"github.com/waymarkhq/waymark/rag"
)

// maxXMLDepth bounds the nesting of an XML document.
const maxXMLDepth = 1000

// maxValue bounds a value that stands on a line with the name of its element, in bytes.
const maxValue = 100

// proseTags are elements whose names say nothing that a reader wants to read.
var proseTags = words("p para paragraph text body description summary content abstract note li item line l s seg span value string div section quote verse v speech dd dt entry desc td th cell")

// headingTags are elements that are headings of what they stand in.
var headingTags = words("title heading head header caption headline name-of-section")

// xml reads an XML document: elements that mix text and others are paragraphs, titles are headings by their depth, short
// values stand on lines behind the names of their elements. Attributes are left out.
func (p *Parser) xml(ctx context.Context, s source) (Text, error) {
	mixed, err := mixedElements(ctx, s.text)
	if err != nil {
		return Text{}, err
	}
	return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
		x := &xmlWalk{ctx: ctx, w: w, mixed: mixed}
		return "", nil, walkXML(ctx, s.text, x.token)
	})
}

// walkXML calls visit for each token of an XML document. Entities that the document defines are not expanded.
func walkXML(ctx context.Context, source string, visit func(xml.Token) error) error {
	d := xml.NewDecoder(strings.NewReader(source))
	d.Strict = false
	d.Entity = xml.HTMLEntity
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil } // it is decoded already
	depth := 0
	for n := 1; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		t, err := d.RawToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			line, column := d.InputPos()
			return reject(rag.ReasonBrokenFile, "the XML is broken at line %d, column %d: %.100s", line, column, strings.ToValidUTF8(err.Error(), "?"))
		}
		switch t.(type) {
		case xml.StartElement:
			if depth++; depth > maxXMLDepth {
				return reject(rag.ReasonTooLarge, "the XML is nested more than %d deep", maxXMLDepth)
			}
		case xml.EndElement:
			depth = max(0, depth-1)
		}
		if err := visit(t); err != nil {
			return err
		}
	}
}

// mixedElements says for each element, in their order, whether it holds both text and elements.
func mixedElements(ctx context.Context, source string) ([]bool, error) {
	type open struct {
		index          int
		text, children bool
	}
	var mixed []bool
	var stack []open
	return mixed, walkXML(ctx, source, func(t xml.Token) error {
		n := len(stack)
		switch t := t.(type) {
		case xml.StartElement:
			if n > 0 {
				stack[n-1].children = true
			}
			stack = append(stack, open{index: len(mixed)})
			mixed = append(mixed, false)
		case xml.EndElement:
			if n > 0 {
				mixed[stack[n-1].index] = stack[n-1].text && stack[n-1].children
				stack = stack[:n-1]
			}
		case xml.CharData:
			if n > 0 && visible(string(t)) {
				stack[n-1].text = true
			}
		}
		return nil
	})
}

// xmlWalk writes the text of an XML document.
type xmlWalk struct {
	ctx    context.Context
	w      *flowWriter
	mixed  []bool
	index  int // of the next element
	stack  []string
	inside int // elements around the place, from a mixed one on
	value  strings.Builder
	leaf   bool // no element has begun since the last one did
}

func (x *xmlWalk) token(t xml.Token) error {
	switch t := t.(type) {
	case xml.StartElement:
		mixed := x.index < len(x.mixed) && x.mixed[x.index]
		x.index++
		x.stack = append(x.stack, strings.ToLower(t.Name.Local))
		switch {
		case x.inside > 0:
			x.inside++
		case mixed:
			x.inside = 1
			x.begin()
		}
		x.leaf = true
		x.value.Reset()
	case xml.EndElement:
		return x.end()
	case xml.CharData:
		if x.inside > 0 {
			x.w.Text(string(t))
		} else if len(x.stack) > 0 && !x.w.Full() {
			x.value.Write(t)
		}
	}
	return nil
}

// begin begins a block for the element in hand.
func (x *xmlWalk) begin() {
	if n := len(x.stack); headingTags[x.stack[n-1]] {
		x.w.Heading(max(1, n-1))
		return
	}
	x.w.Paragraph()
}

func (x *xmlWalk) end() error {
	n := len(x.stack)
	if n == 0 {
		return nil
	}
	var err error
	switch {
	case x.inside > 0:
		x.inside--
	case x.leaf:
		err = x.leafValue(x.stack[n-1], x.value.String())
	}
	x.value.Reset()
	x.leaf = false
	x.stack = x.stack[:n-1]
	return err
}

// leafValue writes the text of an element that holds nothing else.
func (x *xmlWalk) leafValue(name, value string) error {
	switch {
	case !visible(value):
	case strings.Contains(value, "</") && strings.Contains(value, ">"): // a page in a feed
		x.w.Paragraph()
		if _, err := writeTokens(x.ctx, x.w.htmlWriter, value); err != nil {
			return err
		}
		x.w.Paragraph()
	case headingTags[name] && len(value) <= maxHeadingValue:
		x.begin()
		x.w.Text(value)
	case proseTags[name] || len(value) > maxValue || strings.Contains(strings.TrimSpace(value), "\n"):
		x.w.Paragraph()
		x.w.Text(value)
	default:
		x.w.Item(0, name+":")
		x.w.Text(value)
	}
	return nil
}

// maxHeadingValue bounds a heading, in bytes.
const maxHeadingValue = 300
