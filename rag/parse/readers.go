package parse

import (
	"context"

	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/parse/office"
	"github.com/waymarkhq/waymark/rag/parse/rtf"
)

// allReaders are the readers of all types. What they share is that they write no text beyond the limits, end with their
// context, and blame the document with an *Error.
func (p *Parser) allReaders() map[string]reader {
	text := func(read func(context.Context, string) (Text, error)) reader {
		return func(ctx context.Context, s source) (Text, error) { return read(ctx, s.text) }
	}
	flowing := func(read func(context.Context, []byte, flow.Writer) (string, []string, error)) reader {
		return func(ctx context.Context, s source) (Text, error) {
			return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) { return read(ctx, s.content, w) })
		}
	}
	return map[string]reader{
		TypePlain: func(_ context.Context, s source) (Text, error) {
			return Text{Body: s.text, Blocks: paragraphs(s.text)}, nil
		},
		TypeMarkdown:  text(p.markdown),
		TypeHTML:      text(p.html),
		TypeJSON:      text(p.json),
		TypeJSONLines: text(p.jsonLines),
		TypePDF:       p.pdfDocument,
		TypeDOCX:      flowing(office.Word),
		TypePPTX:      flowing(office.Slides),
		TypeXLSX:      flowing(office.Workbook),
		TypeCSV:       p.csv(0),
		TypeTSV:       p.csv('\t'),
		TypeXML:       p.xml,
		TypeMail:      p.mail,
		TypeRTF:       flowing(rtf.Read),
		TypeEPUB:      p.epub,
		TypeSource:    p.source,
	}
}
