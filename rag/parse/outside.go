package parse

import (
	"context"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/external"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// orOutside reads a document in which no reader here has found text with an external program, if there is one for it;
// otherwise it returns why there is none.
func (p *Parser) orOutside(ctx context.Context, in Input, d detected, depth int, why error) (Text, error) {
	switch flow.ReasonOf(why) {
	case rag.ReasonUnsupportedType, rag.ReasonScanWithoutText, rag.ReasonNoText:
	default:
		return Text{}, why
	}
	x := p.outside.For(d.kind, external.NoText)
	if x == nil {
		return Text{}, why
	}
	text, err := p.readOutside(ctx, x, in, d, depth)
	if flow.ReasonOf(err) == rag.ReasonNoText {
		return Text{}, reject(flow.ReasonOf(why), "%v; the external parser finds none either", why)
	}
	return text, err
}

// readOutside reads a document with an external program. What it answers is read as the format that it names, page by page.
func (p *Parser) readOutside(ctx context.Context, x *external.Parser, in Input, d detected, depth int) (Text, error) {
	got, err := x.Read(ctx, external.Input{Content: in.Content, Type: d.kind, Name: in.Name})
	if err != nil {
		return Text{}, err
	}
	text, err := p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
		title, warnings := got.Title, got.Warnings
		for _, page := range got.Pages {
			part, err := p.readers[got.Format](ctx, source{text: page.Text, depth: depth + 1})
			if err != nil {
				return "", nil, err
			}
			if title == "" {
				title = part.Title
			}
			warnings = append(warnings, part.Warnings...)
			w.insertOn(page.Number, part, 0)
		}
		return title, warnings, nil
	})
	text.Type, text.Warnings = d.kind, append(d.warnings, text.Warnings...)
	return p.checked(ctx, text, err)
}
