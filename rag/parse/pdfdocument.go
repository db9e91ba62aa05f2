package parse

import (
	"context"

	"github.com/waymarkhq/waymark/rag/parse/mail"
)

// pdfDocument reads a PDF document: its pages, then the text of its attachments, each under a heading with its name. An
// attachment that cannot be read is left out with a warning.
func (p *Parser) pdfDocument(ctx context.Context, s source) (Text, error) {
	return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
		d, err := p.pdf.Read(ctx, s.content, w)
		if err != nil {
			return "", nil, err
		}
		warnings := d.Warnings
		w.Page(0)
		for _, f := range d.Attachments {
			if s.depth >= maxMailDepth {
				warnings = append(warnings, "The attachments of the PDF document were left out: documents lie in each other too deeply.")
				break
			}
			more, err := p.attachment(ctx, w, mail.Part{Name: f.Name, Content: f.Content}, s.depth)
			if err != nil {
				return "", nil, err
			}
			warnings = append(warnings, more...)
		}
		if d.NoText != nil && w.empty() {
			return "", nil, d.NoText
		}
		return d.Title, warnings, nil
	})
}
