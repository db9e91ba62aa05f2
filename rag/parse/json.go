package parse

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// Bounds of what a JSON document adds to its text.
const (
	maxDepth    = 64  // of nested objects and arrays
	maxPath     = 200 // bytes of a path that stand before a value
	shortString = 80  // bytes of a string that may share its line with other elements of an array
)

// jsonSpace are the characters that JSON takes for white space, unlike Unicode.
const jsonSpace = " \t\r\n"

// json reads a JSON document: a line for each value, its path before it ("author.name: Ann").
func (p *Parser) json(ctx context.Context, source string) (Text, error) {
	if err := checkJSON(source); err != nil {
		line, column := position(source, err.offset)
		return Text{}, reject(rag.ReasonBrokenJSON, "the JSON is broken at line %d, column %d: %v", line, column, err)
	}
	w := &jsonWriter{writer: newWriter(p.limits.Text)}
	err := w.values(ctx, source, func() {})
	return w.finish(p.limits.Text, err)
}

// jsonLines reads a document of one JSON value a line: every value begins a block, which has the number of its line as
// heading.
func (p *Parser) jsonLines(ctx context.Context, source string) (Text, error) {
	if err := checkLines(ctx, source); err != nil {
		return Text{}, err
	}
	w := &jsonWriter{writer: newWriter(p.limits.Text)}
	n, rest := 0, source
	next := func() {
		w.end()
		for line := ""; line == "" && rest != ""; n++ {
			line, rest, _ = strings.Cut(rest, "\n")
			line = strings.Trim(line, jsonSpace)
		}
		w.crumb = "line " + strconv.Itoa(n)
	}
	next()
	err := w.values(ctx, source, next)
	w.title = "" // of a record, not of the document
	return w.finish(p.limits.Text, err)
}

// checkLines checks that every line is JSON or blank.
func checkLines(ctx context.Context, source string) error {
	n := 0
	for line := range strings.Lines(source) {
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if line = strings.Trim(line, jsonSpace); line == "" {
			continue
		}
		if err := checkJSON(line); err != nil {
			_, column := position(line, err.offset)
			return reject(rag.ReasonBrokenJSON, "line %d is not JSON, it is broken at column %d: %v", n, column, err)
		}
	}
	return nil
}

// brokenJSON says where and why a text is not JSON.
type brokenJSON struct {
	offset int // of the first byte that cannot be
	cause  error
}

func (e *brokenJSON) Error() string { return e.cause.Error() }

// checkJSON returns a *brokenJSON if source is not one JSON value.
func checkJSON(source string) *brokenJSON {
	if json.Valid([]byte(source)) {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(source))
	var raw json.RawMessage
	err := d.Decode(&raw)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		rest := strings.TrimLeft(source[d.InputOffset():], jsonSpace)
		return &brokenJSON{len(source) - len(rest), errors.New("more follows behind the value")}
	case errors.As(err, &syntax):
		return &brokenJSON{min(max(int(syntax.Offset)-1, 0), len(source)), err}
	}
	return &brokenJSON{len(source), errors.New("it ends too early")}
}

// position is the line and column, in characters from 1, of an offset.
func position(source string, offset int) (line, column int) {
	before := source[:offset]
	start := strings.LastIndexByte(before, '\n') + 1
	return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[start:]) + 1
}

// jsonWriter writes the values of JSON documents.
type jsonWriter struct {
	*writer
	frames []jsonFrame // the objects and arrays around the place
	path   []byte      // to the place
	title  string
}

type jsonFrame struct {
	array   bool
	path    int  // length of the path to it
	index   int  // of the next element
	key     bool // a key was read, its value follows
	running bool // the line in hand is a list of elements of this array
}

// values writes valid JSON values, and calls behind after each.
func (w *jsonWriter) values(ctx context.Context, source string, behind func()) error {
	d := json.NewDecoder(strings.NewReader(source))
	d.UseNumber()
	w.part()
	for steps := 1; !w.full(); steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("parse: json: %w", err)
		}
		if err := w.token(token); err != nil {
			return err
		}
		if len(w.frames) == 0 {
			w.path = w.path[:0]
			behind()
			w.part()
		}
	}
	return nil
}

func (w *jsonWriter) finish(limit int, err error) (Text, error) {
	if err != nil {
		return Text{}, err
	}
	if w.full() {
		return Text{}, errTextLimit(limit)
	}
	text := Text{Title: w.title}
	text.Body, text.Blocks = w.result()
	return text, nil
}

func (w *jsonWriter) token(token json.Token) error {
	switch t := token.(type) {
	case json.Delim:
		if t == '}' || t == ']' {
			w.leave()
			return nil
		}
		return w.enterValue(t == '[')
	case string:
		if f := w.frame(); f != nil && !f.array && !f.key {
			f.key = true
			w.pushKey(t)
			return nil
		}
		w.value(t)
	case json.Number:
		w.value(t.String())
	case bool:
		w.value(strconv.FormatBool(t))
	case nil:
		w.value("")
	}
	return nil
}

func (w *jsonWriter) frame() *jsonFrame {
	if len(w.frames) == 0 {
		return nil
	}
	return &w.frames[len(w.frames)-1]
}

// enterValue begins an object or array. Below the top each is a block of its own with all that is in it.
func (w *jsonWriter) enterValue(array bool) error {
	if len(w.frames) == maxDepth {
		return reject(rag.ReasonTooLarge, "the JSON is nested more than %d deep", maxDepth)
	}
	w.stopRun()
	if len(w.frames) == 1 {
		w.part()
	}
	w.pushIndex()
	w.frames = append(w.frames, jsonFrame{array: array, path: len(w.path)})
	return nil
}

// leave ends an object or array.
func (w *jsonWriter) leave() {
	w.stopRun()
	w.frames = w.frames[:len(w.frames)-1]
	if len(w.frames) == 1 {
		w.part()
	}
	w.next()
}

// part begins a new block.
func (w *jsonWriter) part() {
	w.open(rag.BlockList, 0)
}

// next goes on behind a value: the path leads to what is around it again.
func (w *jsonWriter) next() {
	f := w.frame()
	if f == nil {
		return
	}
	f.index++
	f.key = false
	w.path = w.path[:f.path]
}

// value writes a value that is neither object nor array. One that is empty says nothing.
func (w *jsonWriter) value(s string) {
	defer w.next()
	f := w.frame()
	if f != nil && !f.array && len(w.frames) == 1 && string(w.path) == "title" && w.title == "" {
		w.title = oneLine(s)
	}
	if !visible(s) {
		return
	}
	if f != nil && f.array && len(s) <= shortString && !strings.Contains(s, "\n") {
		if f.running {
			w.mark(", ")
		} else {
			w.lead()
			f.running = true
		}
		w.verbatim(s)
		return
	}
	w.stopRun()
	w.pushIndex()
	w.lead()
	w.verbatim(s)
	w.line()
}

// stopRun ends a list of elements on one line.
func (w *jsonWriter) stopRun() {
	if f := w.frame(); f != nil && f.running {
		f.running = false
		w.line()
	}
}

// lead writes the path before a value, of a long one the end.
func (w *jsonWriter) lead() {
	path := w.path
	if len(path) == 0 {
		return
	}
	if cut := len(path) - maxPath; cut > 0 {
		for !utf8.RuneStart(path[cut]) {
			cut++
		}
		path = path[cut:]
		w.mark("…")
	}
	w.mark(string(path))
	w.mark(": ")
}

func (w *jsonWriter) pushKey(key string) {
	if len(w.path) > 0 {
		w.path = append(w.path, '.')
	}
	w.path = append(w.path, clip(oneLine(key), maxPath)...)
}

// pushIndex appends the index of the place, if it is in an array.
func (w *jsonWriter) pushIndex() {
	if f := w.frame(); f != nil && f.array {
		w.path = append(w.path, '[')
		w.path = strconv.AppendInt(w.path, int64(f.index), 10)
		w.path = append(w.path, ']')
	}
}
