package parse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// htmlTokens reads an HTML document tag by tag, without a tree: of any depth, with less structure.
func (p *Parser) htmlTokens(ctx context.Context, source string) (Text, error) {
	text := Text{
		Warnings: []string{"The page is too large or nested too deeply for its main part to be told from the rest; all of it was taken."},
	}
	w := newWriter(p.limits.Text)
	title, err := writeTokens(ctx, &htmlWriter{writer: w}, source)
	if err != nil {
		return Text{}, err
	}
	if w.full() {
		return Text{}, errTextLimit(p.limits.Text)
	}
	text.Title = title
	text.Body, text.Blocks = w.result()
	return text, nil
}

// maxNodes bounds the tree of a page: about 50 MB.
const maxNodes = 300_000

// treeSize is how many nodes the tree of a page has at most, nearly. Elements of formatting that are not closed are
// opened again in every block behind them: a few bytes can make hundreds of nodes.
func treeSize(ctx context.Context, source string) (int, error) {
	z := html.NewTokenizer(strings.NewReader(source))
	size, open := 0, 0
	for size <= maxNodes {
		if size%1024 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			return size, nil
		case html.StartTagToken:
			name, _ := z.TagName()
			if formatting[atom.Lookup(name)] {
				open = min(open+1, 512) // no tree is deeper
			}
			size += open
		case html.EndTagToken:
			name, _ := z.TagName()
			if formatting[atom.Lookup(name)] {
				open = max(open-1, 0)
			}
		}
		size++
	}
	return size, nil
}

// formatting elements go on in the next block when they are not closed.
var formatting = map[atom.Atom]bool{
	atom.A: true, atom.B: true, atom.Big: true, atom.Code: true, atom.Em: true, atom.Font: true, atom.I: true, atom.Nobr: true,
	atom.S: true, atom.Small: true, atom.Strike: true, atom.Strong: true, atom.Tt: true, atom.U: true,
}

// writeTokens writes the text of HTML that need not be well-formed, and returns its title.
func writeTokens(ctx context.Context, out *htmlWriter, source string) (title string, err error) {
	z := html.NewTokenizer(strings.NewReader(source))
	var raw atom.Atom // the element whose text follows undivided: script, style, title
	for steps := 1; ; steps++ {
		if steps%1024 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		switch z.Next() {
		case html.ErrorToken:
			if errors.Is(z.Err(), io.EOF) {
				return title, nil
			}
			return "", fmt.Errorf("parse: html tokens: %w", z.Err())
		case html.TextToken:
			switch {
			case raw == atom.Title && title == "":
				title = oneLine(string(z.Text()))
			case !skippedTags[raw]:
				out.content(string(z.Text()))
			}
		case html.StartTagToken, html.SelfClosingTagToken:
			t := z.Token()
			raw = 0
			if skippedTags[t.DataAtom] && isRaw(t.DataAtom) {
				raw = t.DataAtom
				continue
			}
			out.begin(t.DataAtom, t.Attr, false)
		case html.EndTagToken:
			name, _ := z.TagName()
			raw = 0
			out.finish(atom.Lookup(name))
		}
	}
}

// isRaw reports whether the text of an element is one token.
func isRaw(tag atom.Atom) bool {
	switch tag {
	case atom.Iframe, atom.Noscript, atom.Script, atom.Style, atom.Textarea, atom.Title:
		return true
	}
	return false
}
