package parse

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
)

const (
	// separators are those that are looked for in CSV files, in the order of preference.
	separators = ",;\t|"
	// separatorSample is how much of a table tells its separator.
	separatorSample = 64 << 10
	// maxRecord bounds a row of a table that is read in parts: a quote that is never closed makes one of all that follows.
	maxRecord = DefaultInput
)

// csv reads a table with a separator; 0 means that it is looked for.
func (p *Parser) csv(separator rune) reader {
	return func(ctx context.Context, s source) (Text, error) {
		return p.flowText(ctx, func(ctx context.Context, w *flowWriter) (string, []string, error) {
			t := newTable(strings.NewReader(s.text), separator)
			t.rows.W = w
			defer t.rows.Finish()
			for n := 1; !w.full(); n++ {
				if n%256 == 0 && ctx.Err() != nil {
					return "", nil, ctx.Err()
				}
				if err := t.next(); err == io.EOF { //nolint:errorlint // next's own
					break
				} else if err != nil {
					return "", nil, err
				}
			}
			return "", nil, nil
		})
	}
}

// TableParts reads a table of any size, of TypeCSV or TypeTSV in valid UTF-8, and gives its text in parts of about size bytes, as
// Parse gives it as a whole but for where the header is repeated: each part begins with it. Between parts are TablePartGap bytes. One
// row may have 12 MiB and a million cells; a larger one is an *Error. Errors of r and of yield are returned as they are.
func TableParts(r io.Reader, kind string, size int, yield func(Text) error) error {
	separator := rune(0)
	if kind == TypeTSV {
		separator = '\t'
	}
	guard := &recordGuard{r: r}
	t := newTable(guard, separator)
	guard.separator = byte(t.csv.Comma)
	for ended := false; !ended; {
		w := newFlowWriter(size + 2*maxRecord) // a part may have one more row, and the header
		t.rows.W = w
		for w.body.Len()+len(w.cur) < size && !ended {
			guard.read, guard.cells = 0, 0
			switch err := t.next(); {
			case err == io.EOF: //nolint:errorlint // next's own
				t.rows.Finish()
				ended = true
			case err != nil:
				return err
			}
		}
		t.rows.End()
		if w.full() {
			return reject(rag.ReasonTooLarge, "a row of the table gives more text than the limit of %d bytes", 2*maxRecord)
		}
		part := Text{Type: kind}
		if part.Body, part.Blocks = w.result(); part.Body == "" {
			continue
		}
		if err := yield(part); err != nil {
			return err
		}
	}
	return nil
}

// TablePartGap is how many bytes of a table's text are between two of its parts.
const TablePartGap = len("\n\n")

// table are the rows of a text. The first is the header if it looks like one.
type table struct {
	csv   *csv.Reader
	rows  flow.Rows
	begun bool
}

func newTable(r io.Reader, separator rune) *table {
	b := bufio.NewReaderSize(r, separatorSample)
	head, _ := b.Peek(separatorSample) // an error comes again
	sep, skip := separatorAt(string(head), separator)
	_, _ = b.Discard(skip)
	t := &table{csv: csv.NewReader(b)}
	t.csv.Comma, t.csv.LazyQuotes, t.csv.FieldsPerRecord, t.csv.ReuseRecord = sep, true, -1, true
	return t
}

// separatorAt is the separator of a table that begins so, and how many bytes stand before its rows.
func separatorAt(head string, separator rune) (sep rune, skip int) {
	text := trimMark(head)
	skip, sep = len(head)-len(text), separator
	if rest, found := strings.CutPrefix(text, "sep="); found && len(rest) > 1 { // a line for Excel
		sep = rune(rest[0])
		_, rows, _ := strings.Cut(rest, "\n")
		skip, text = len(head)-len(rows), rows
	}
	if sep == 0 || sep > 0x7f || sep == '"' || sep == '\r' || sep == '\n' {
		sep = separatorOf(text)
	}
	return sep, skip
}

// next writes the next row; io.EOF if there is none.
func (t *table) next() error {
	for {
		cells, err := t.csv.Read()
		var broken *csv.ParseError
		switch {
		case errors.As(err, &broken) && len(cells) == 0:
			continue
		case err != nil && broken == nil:
			return err
		}
		if !t.begun && flow.LooksLikeHeader(cells) {
			t.rows.Header(cells)
		} else {
			t.rows.Row(cells)
		}
		t.begun = true
		return nil
	}
}

// maxCells of a row: each takes some 30 bytes beside its text.
const maxCells = 1_000_000

// recordGuard ends a row that is too large.
type recordGuard struct {
	r         io.Reader
	separator byte
	read      int // since the row began, and of what is behind it
	cells     int // as many as there can be
}

func (g *recordGuard) Read(p []byte) (int, error) {
	if g.read > maxRecord {
		return 0, reject(rag.ReasonTooLarge, "a row of the table has more bytes than the limit of %d; a quote that is not closed makes one of all that follows", maxRecord)
	}
	if g.cells > maxCells {
		return 0, reject(rag.ReasonTooLarge, "a row of the table may have more cells than the limit of %d", maxCells)
	}
	n, err := g.r.Read(p)
	g.read += n
	g.cells += bytes.Count(p[:n], []byte{g.separator})
	return n, err
}

// separatorOf is the separator that the first lines have the same number of, and most of.
func separatorOf(text string) rune {
	const sample = 20
	best, most := ',', 0
	for _, sep := range separators {
		r := csv.NewReader(strings.NewReader(text[:min(len(text), separatorSample)]))
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
