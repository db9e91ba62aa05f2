package parse

import (
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/waymarkhq/waymark/rag/parse/flow"
)

// separators are those that are looked for in CSV files, in the order of preference.
const separators = ",;\t|"

// csv reads a table with a separator; 0 means that it is looked for.
func (p *Parser) csv(separator rune) reader {
	return func(ctx context.Context, s source) (Text, error) {
		return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
			text, sep := s.text, separator
			if rest, found := strings.CutPrefix(text, "sep="); found && len(rest) > 1 { // a line for Excel
				sep = rune(rest[0])
				_, text, _ = strings.Cut(rest, "\n")
			}
			if sep == 0 || sep > 0x7f || sep == '"' || sep == '\r' || sep == '\n' {
				sep = separatorOf(text)
			}
			return "", nil, writeRows(ctx, text, sep, w)
		})
	}
}

// writeRows writes the rows of a table. The first is the header if it looks like one.
func writeRows(ctx context.Context, text string, separator rune, w flow.Writer) error {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = separator, true, -1, true
	rows := &flow.Rows{W: w}
	defer rows.Finish()
	first := true
	for n := 1; !w.Full(); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		cells, err := r.Read()
		var broken *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &broken) && len(cells) == 0:
			continue
		}
		if first && flow.LooksLikeHeader(cells) {
			rows.Header(cells)
		} else {
			rows.Row(cells)
		}
		first = false
	}
	return nil
}

// separatorOf is the separator that the first lines have the same number of, and most of.
func separatorOf(text string) rune {
	const sample = 20
	best, most := ',', 0
	for _, sep := range separators {
		r := csv.NewReader(strings.NewReader(text[:min(len(text), 64<<10)]))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = sep, true, -1, true
		width, same := 0, 0
		for range sample {
			cells, err := r.Read()
			if err != nil {
				break
			}
			if width == 0 {
				width = len(cells)
			}
			if len(cells) == width {
				same++
			}
		}
		if score := (width - 1) * same; score > most {
			best, most = sep, score
		}
	}
	return best
}
