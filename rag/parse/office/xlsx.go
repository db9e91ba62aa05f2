package office

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xuri/excelize/v2"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/archive"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// Workbook reads an Excel workbook: each sheet is a heading with its rows, the values of formulas and dates as a reader sees
// them. Rows are tables of a bounded size, each with the header of the sheet. Hidden sheets, and sheets that are damaged,
// are left out with a warning. A document that cannot be read is a *flow.Error.
func Workbook(ctx context.Context, content []byte, w flow.Writer) (title string, warnings []string, err error) {
	a, err := archive.Open(content)
	if err != nil {
		return "", nil, err
	}
	f, err := excelize.OpenReader(bytes.NewReader(content), excelize.Options{
		UnzipSizeLimit: archive.MaxSize, UnzipXMLSizeLimit: archive.MaxSize, // equal, so that nothing goes to temporary files
	})
	switch {
	case errors.Is(err, excelize.ErrWorkbookPassword), errors.Is(err, excelize.ErrWorkbookFileFormat) && bytes.HasPrefix(content, []byte("\xd0\xcf")):
		return "", nil, flow.Reject(rag.ReasonEncrypted, "the workbook is encrypted; a password is needed to read it")
	case err != nil:
		return "", nil, flow.Reject(rag.ReasonBrokenFile, "the workbook is damaged: %.200s", err.Error())
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := &workbook{ctx: ctx, file: f, w: w}
	var hidden, failed []string
	for _, name := range f.GetSheetList() {
		if visible, err := f.GetSheetVisible(name); err == nil && !visible {
			hidden = append(hidden, name)
			continue
		}
		if err := b.sheet(name); err != nil {
			if ctx.Err() != nil {
				return "", nil, ctx.Err()
			}
			failed = append(failed, name)
		}
		if w.Full() {
			break
		}
	}
	if len(failed) > 0 {
		warnings = append(warnings, fmt.Sprintf("Damaged and left out, in part or as a whole: sheet %s.", strings.Join(failed, ", ")))
	}
	if len(hidden) > 0 {
		warnings = append(warnings, fmt.Sprintf("Hidden and left out: sheet %s.", strings.Join(hidden, ", ")))
	}
	if len(failed) > 0 && len(failed)+len(hidden) == len(f.GetSheetList()) {
		return "", nil, flow.Reject(rag.ReasonBrokenFile, "none of the workbook's sheets can be read")
	}
	return coreTitle(a), warnings, nil
}

type workbook struct {
	ctx  context.Context
	file *excelize.File
	w    flow.Writer
}

// sheet writes the rows of a sheet. Rows of a single cell are paragraphs: titles and notes.
func (b *workbook) sheet(name string) error {
	rows, err := b.file.Rows(name)
	if err != nil {
		return fmt.Errorf("sheet %s: %w", name, err)
	}
	out := &flow.Rows{W: b.w}
	region, named, n := false, false, 0
	for rows.Next() {
		if n++; n%256 == 0 && b.ctx.Err() != nil || b.w.Full() {
			break
		}
		cells, err := rows.Columns()
		if err != nil {
			out.Finish()
			return errors.Join(fmt.Errorf("sheet %s, row %d: %w", name, n, err), rows.Close())
		}
		first, filled := filledCells(cells)
		if filled > 0 && !named { // an empty sheet leaves no trace
			named = true
			b.w.Heading(1)
			b.w.Text(name)
		}
		switch {
		case filled == 0:
			out.Finish()
			region = false
		case filled == 1 && !region:
			out.Finish()
			b.w.Paragraph()
			b.w.Text(first)
		case !region && flow.LooksLikeHeader(cells):
			out.Header(cells)
			region = true
		default:
			out.Row(cells)
			region = true
		}
	}
	out.Finish()
	if err := errors.Join(rows.Error(), rows.Close()); err != nil {
		return fmt.Errorf("sheet %s: %w", name, err)
	}
	return b.ctx.Err()
}

// filledCells is the first cell with something in it, and how many there are.
func filledCells(cells []string) (first string, filled int) {
	for _, c := range cells {
		if strings.TrimSpace(c) == "" {
			continue
		}
		if filled == 0 {
			first = c
		}
		filled++
	}
	return first, filled
}
