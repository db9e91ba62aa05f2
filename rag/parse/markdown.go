package parse

import (
	"bufio"
	"bytes"
	"context"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	renderer "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdown reads a Markdown document (CommonMark with tables, strikethrough, task lists, footnotes and definition
// lists): its text without the marks. Structure becomes the tags of HTML, so that both formats give the same text.
func (p *Parser) markdown(ctx context.Context, source string) (Text, error) {
	title, source := frontMatter(source)
	if tangled(source) {
		return Text{
			Title: title, Body: source, Blocks: paragraphs(source),
			Warnings: []string{"The Markdown has more marks in one paragraph, or in all, than a document for readers; it was read as plain text."},
		}, nil
	}
	m := &markdownWalk{ctx: ctx, source: []byte(source), out: &htmlWriter{writer: newWriter(p.limits.Text)}}
	if err := ast.Walk(newMarkdown().Parse(text.NewReader(m.source)), m.visit); err != nil {
		return Text{}, err
	}
	if m.out.full() {
		return Text{}, errTextLimit(p.limits.Text)
	}
	t := Text{Title: title}
	t.Body, t.Blocks = m.out.result()
	if t.Title == "" {
		t.Title = oneLine(firstHeading(extracted{body: t.Body, blocks: t.Blocks}))
	}
	return t, nil
}

func newMarkdown() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(
		extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote, extension.DefinitionList,
	)).Parser()
}

// maxFrontMatter bounds the front matter that is looked for, in bytes.
const maxFrontMatter = 64 << 10

// frontMatter cuts YAML front matter off a document, and returns the title that it names.
func frontMatter(source string) (title, rest string) {
	first, body, _ := strings.Cut(source[:min(len(source), maxFrontMatter)], "\n")
	if strings.TrimRight(first, " \r") != "---" {
		return "", source
	}
	size := len(first) + 1
	for line := range strings.Lines(body) {
		size += len(line)
		trimmed := strings.TrimRight(line, " \r\n")
		if trimmed == "---" || trimmed == "..." {
			return title, source[size:]
		}
		key, value, found := strings.Cut(trimmed, ":")
		switch {
		case found && key == "title":
			title = oneLine(strings.Trim(strings.TrimSpace(value), `"'`))
		case found, trimmed == "", strings.HasPrefix(trimmed, " "), strings.HasPrefix(trimmed, "-"), strings.HasPrefix(trimmed, "#"):
		default:
			return "", source // a line between rules
		}
	}
	return "", source
}

// markdownWalk writes the text of a Markdown tree.
type markdownWalk struct {
	ctx    context.Context
	source []byte
	out    *htmlWriter
	steps  int
}

func (m *markdownWalk) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if m.steps++; m.steps%1024 == 0 && m.ctx.Err() != nil {
		return ast.WalkStop, m.ctx.Err()
	}
	if tag, attr := tagOf(n); tag != 0 {
		if entering {
			m.out.begin(tag, attr, tag == atom.Table)
		} else {
			m.out.finish(tag)
		}
		return ast.WalkContinue, nil
	}
	if !entering {
		return ast.WalkContinue, nil
	}
	return m.leaf(n)
}

// tagOf is the element of HTML that a node is, 0 if it is none or holds its text itself.
func tagOf(n ast.Node) (atom.Atom, []html.Attribute) {
	switch n := n.(type) {
	case *ast.Heading:
		return [...]atom.Atom{1: atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}[n.Level], nil
	case *ast.Paragraph, *ast.TextBlock:
		return atom.P, nil
	case *ast.Blockquote:
		return atom.Blockquote, nil
	case *ast.ThematicBreak:
		return atom.Hr, nil
	case *ast.List:
		if n.IsOrdered() {
			return atom.Ol, []html.Attribute{{Key: "start", Val: strconv.Itoa(n.Start)}}
		}
		return atom.Ul, nil
	case *extast.FootnoteList:
		return atom.Ol, nil
	case *ast.ListItem, *extast.Footnote:
		return atom.Li, nil
	case *extast.DefinitionList:
		return atom.Dl, nil
	case *extast.DefinitionTerm:
		return atom.Dt, nil
	case *extast.DefinitionDescription:
		return atom.Dd, nil
	case *extast.Table:
		return atom.Table, nil
	case *extast.TableHeader, *extast.TableRow:
		return atom.Tr, nil
	case *extast.TableCell:
		return atom.Td, nil
	case *ast.Link:
		return atom.A, nil
	}
	return 0, nil
}

// leaf writes a node that holds its text itself.
func (m *markdownWalk) leaf(n ast.Node) (ast.WalkStatus, error) {
	switch n := n.(type) {
	case *ast.Text:
		m.text(n)
	case *ast.String:
		m.out.text(plain(n.Value))
	case *ast.CodeSpan:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				m.out.text(string(t.Value(m.source)))
			}
		}
		return ast.WalkSkipChildren, nil
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		m.out.begin(atom.Pre, nil, false)
		m.out.content(m.lines(n.Lines()))
		m.out.finish(atom.Pre)
	case *ast.HTMLBlock:
		source := m.lines(n.Lines())
		if n.HasClosure() {
			source += string(n.ClosureLine.Value(m.source))
		}
		_, err := writeTokens(m.ctx, m.out, source)
		return ast.WalkSkipChildren, err
	case *ast.RawHTML:
		if strings.HasPrefix(strings.ToLower(m.lines(n.Segments)), "<br") {
			m.out.lineBreak()
		}
	case *ast.AutoLink:
		m.out.text(string(n.Label(m.source)))
	case *extast.TaskCheckBox:
		if n.IsChecked {
			m.out.text("[x] ")
		} else {
			m.out.text("[ ] ")
		}
	case *ast.Image, *extast.FootnoteBacklink:
		return ast.WalkSkipChildren, nil
	}
	return ast.WalkContinue, nil
}

func (m *markdownWalk) text(n *ast.Text) {
	value := n.Value(m.source)
	if n.IsRaw() {
		m.out.text(string(value))
	} else {
		m.out.text(plain(value))
	}
	switch {
	case n.HardLineBreak():
		m.out.lineBreak()
	case n.SoftLineBreak():
		m.out.text(" ")
	}
}

func (m *markdownWalk) lines(segments *text.Segments) string {
	var b strings.Builder
	for _, s := range segments.Sliced(0, segments.Len()) {
		b.Write(s.Value(m.source))
	}
	return b.String()
}

// plain resolves backslash escapes and character references.
func plain(markdown []byte) string {
	if !bytes.ContainsAny(markdown, `\&`) {
		return string(markdown)
	}
	var b bytes.Buffer
	w := bufio.NewWriter(&b)
	renderer.DefaultWriter.Write(w, markdown)
	if err := w.Flush(); err != nil {
		return string(markdown)
	}
	return html.UnescapeString(b.String())
}
