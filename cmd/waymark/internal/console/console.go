// Package console writes for people: result lines, a status line at the bottom of a terminal that other output never
// tears, wrapped text and tables.
package console

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"
	"golang.org/x/term"
)

// Stream is where output goes. Width returns the columns of the terminal, or 0 where it is not one.
type Stream struct {
	io.Writer
	Width func() int
}

// File is the stream of an open file, which may be a terminal. TERM=dumb counts as none.
func File(f *os.File) Stream {
	fd := int(f.Fd()) //nolint:gosec // file descriptors are small
	return Stream{Writer: f, Width: func() int {
		if os.Getenv("TERM") == "dumb" || !term.IsTerminal(fd) {
			return 0
		}
		width, _, err := term.GetSize(fd)
		if err != nil || width <= 0 {
			return 80
		}
		return width
	}}
}

// Pipe is a stream that is not a terminal.
func Pipe(w io.Writer) Stream { return Stream{Writer: w, Width: func() int { return 0 }} }

// Console is the output of one command: results on out, everything else on err. All methods may be called at once.
type Console struct {
	mu     sync.Mutex
	out    Stream
	err    Stream
	status string
	failed error
}

// New makes a console.
func New(out, err Stream) *Console { return &Console{out: out, err: err} }

// Width of the terminal that results go to; 0 where they go elsewhere.
func (c *Console) Width() int { return c.out.Width() }

// Live reports whether a status line can be shown.
func (c *Console) Live() bool { return c.err.Width() > 0 }

// StatusWidth is the room for a status line: a column less than the terminal has, because some terminals wrap at the
// last one.
func (c *Console) StatusWidth() int { return max(0, c.err.Width()-1) }

// Printf writes to the results.
func (c *Console) Printf(format string, args ...any) {
	c.write(c.out, fmt.Appendf(nil, format, args...))
}

// Out is a writer to the results that respects the status line. Give it whole lines.
func (c *Console) Out() io.Writer { return writer{c, &c.out} }

// Err is a writer to standard error that respects the status line. Give it whole lines.
func (c *Console) Err() io.Writer { return writer{c, &c.err} }

// OutError is the first error of writing results, such as a full disk or a reader that has gone.
func (c *Console) OutError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// SetStatus shows one line at the bottom of the terminal in place of the one before; "" takes it away. Where standard
// error is not a terminal it does nothing.
func (c *Console) SetStatus(line string) {
	if !c.Live() {
		return
	}
	line = ansi.Truncate(line, c.StatusWidth(), "…")
	c.mu.Lock()
	defer c.mu.Unlock()
	if line == c.status {
		return
	}
	c.status = line
	_, _ = io.WriteString(c.err, clearLine+line) // a terminal that is gone needs no status
}

const clearLine = "\r\x1b[K"

func (c *Console) write(to Stream, b []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status != "" {
		_, _ = io.WriteString(c.err, clearLine)
	}
	if _, err := to.Write(b); err != nil && c.failed == nil {
		c.failed = err
	}
	if c.status != "" && bytes.HasSuffix(b, []byte("\n")) {
		_, _ = io.WriteString(c.err, c.status)
	}
}

type writer struct {
	console *Console
	stream  *Stream
}

func (w writer) Write(b []byte) (int, error) {
	w.console.write(*w.stream, b)
	return len(b), nil
}

// Clean makes text from outside fit for one line of a terminal: control and direction characters, which could move the
// cursor or hide text, are replaced, and all white space becomes single blanks.
func Clean(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == '\v' || r == '\f' || r == 0x85 || r == 0x2028 || r == 0x2029:
			return ' '
		case r < ' ' || r >= 0x7f && r < 0xa0, r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r == 0xad:
			return '\ufffd'
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	return strings.Join(strings.Fields(text), " ")
}

// Wrap breaks cleaned text into lines of at most width columns; at most limit lines (0: all of them), the last of which
// ends in an ellipsis where text was left out. A width of 0 means no breaks.
func Wrap(text string, width, limit int) []string {
	text = Clean(text)
	if width <= 0 {
		return []string{text}
	}
	// The library's word wrap puts a hyphen beyond the border where it is the character after it.
	lines := strings.Split(ansi.Hardwrap(ansi.Wrap(text, width, ""), width, false), "\n")
	if limit > 0 && len(lines) > limit {
		lines = lines[:limit]
		last := lines[limit-1]
		if ansi.StringWidth(last) >= width {
			last = ansi.Truncate(last, width-1, "")
			if word := strings.LastIndexByte(last, ' '); word > 0 {
				last = last[:word]
			}
		}
		lines[limit-1] = strings.TrimRight(last, " ") + "…"
	}
	return lines
}

// Table writes rows in columns that are as wide as their widest cell. The first row is the heading. With a width, rows
// are cut there; every cell is cleaned.
func Table(w io.Writer, rows [][]string, width int) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(Clean(cell)))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			cell = Clean(cell)
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-ansi.StringWidth(cell)+3))
			}
		}
		text := strings.TrimRight(line.String(), " ")
		if width > 0 {
			text = ansi.Truncate(text, width, "…")
		}
		if _, err := fmt.Fprintln(w, text); err != nil {
			return err
		}
	}
	return nil
}
