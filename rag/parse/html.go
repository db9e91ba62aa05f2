package parse

import (
	"context"
	"net/url"
	"strings"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/waymarkhq/waymark/rag"
)

// Bounds of the pages whose main part is looked for: the search takes time that grows faster than the page, and what is
// larger is a book or a dump rather than an article on a page.
const (
	maxArticle  = 2 << 20 // bytes
	maxElements = 30_000
)

// html reads an HTML document: its main part if that can be told without losing text, else the whole body. A page whose
// tree would be too large or too deep is read tag by tag.
func (p *Parser) html(ctx context.Context, source string) (Text, error) {
	if size, err := treeSize(ctx, source); err != nil {
		return Text{}, err
	} else if size > maxNodes {
		return p.htmlTokens(ctx, source)
	}
	doc, err := parseTree(source)
	if err != nil { // nested too deeply
		return p.htmlTokens(ctx, source)
	}
	text := Text{Title: titleOf(doc)}
	prune(doc, false)
	whole, err := p.extract(ctx, newWriter(p.limits.Text), doc)
	if err != nil {
		return Text{}, err
	}
	if whole.body == "" { // all of it may be in what usually surrounds the text
		if doc, err = parseTree(source); err == nil {
			whole, err = p.extract(ctx, newWriter(p.limits.Text), doc)
		}
		if err != nil {
			return Text{}, err
		}
	}
	text.Body, text.Blocks = whole.body, whole.blocks
	if len(source) > maxArticle {
		return text, nil
	}
	article, err := p.article(ctx, doc, whole)
	if err != nil {
		return Text{}, err
	}
	// Heuristics for main parts drop definition lists, letters, short paragraphs; links are what they drop rightly.
	if article.plain*10 >= whole.plain*9 && article.body != "" {
		text.Body, text.Blocks = article.body, article.blocks
	}
	return text, nil
}

func parseTree(source string) (*html.Node, error) {
	return html.ParseWithOptions(strings.NewReader(source), html.ParseOptionEnableScripting(false))
}

// prune removes the navigation and whatever else surrounds the text of a page.
func prune(n *html.Node, inArticle bool) {
	inArticle = inArticle || n.DataAtom == atom.Article || n.DataAtom == atom.Main
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if surrounding(c, inArticle) {
			n.RemoveChild(c)
		} else {
			prune(c, inArticle)
		}
		c = next
	}
}

// surrounding reports whether an element holds what surrounds the text of a page.
func surrounding(n *html.Node, inArticle bool) bool {
	switch n.DataAtom {
	case atom.Nav:
		return true
	case atom.Footer, atom.Aside:
		return !inArticle
	}
	switch attribute(n.Attr, "role") {
	case "navigation", "banner", "contentinfo", "search":
		return !inArticle
	}
	return false
}

// extracted is the text of a part of a page.
type extracted struct {
	body   string
	blocks []rag.Block
	plain  int // bytes of text outside links
}

// article extracts the main part of a page; nothing if there is none. It may change doc.
func (p *Parser) article(ctx context.Context, doc *html.Node, whole extracted) (extracted, error) {
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	parser.MaxElemsToParse = maxElements
	found, err := parser.ParseDocument(doc, &url.URL{})
	if err != nil || found.Node == nil {
		return extracted{}, nil // it found no main part, which is no fault of the document
	}
	w := newWriter(p.limits.Text)
	if first := firstHeading(whole); first != "" && !strings.Contains(textOf(found.Node), first) {
		w.open(rag.BlockHeading, 1) // the title on the page is not counted as its main part
		w.text(first)
		w.end()
	}
	return p.extract(ctx, w, found.Node)
}

// firstHeading is the text of the heading that a page begins with, "" if it does not begin with a main heading.
func firstHeading(e extracted) string {
	for _, b := range e.blocks {
		if b.Level == 1 {
			return e.body[b.Start:b.End]
		}
	}
	return ""
}

// extract writes the text below n.
func (p *Parser) extract(ctx context.Context, w *writer, n *html.Node) (extracted, error) {
	walk := &htmlWalk{ctx: ctx, out: &htmlWriter{writer: w}}
	if err := walk.node(n); err != nil {
		return extracted{}, err
	}
	if w.full() {
		return extracted{}, errTextLimit(p.limits.Text)
	}
	body, blocks := w.result()
	return extracted{body: body, blocks: blocks, plain: w.plain}, nil
}

// htmlWalk writes the text of a tree. The parser has bounded its depth.
type htmlWalk struct {
	ctx   context.Context
	out   *htmlWriter
	steps int
}

func (w *htmlWalk) node(n *html.Node) error {
	if w.steps++; w.steps%1024 == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	switch n.Type {
	case html.TextNode:
		w.out.content(n.Data)
		return nil
	case html.ElementNode:
		if skippedTags[n.DataAtom] || isHidden(n.Attr) {
			return nil
		}
	case html.DocumentNode:
	default:
		return nil
	}
	w.out.begin(n.DataAtom, n.Attr, n.DataAtom == atom.Table && !w.out.inCell() && hasData(n))
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if err := w.node(c); err != nil {
			return err
		}
	}
	w.out.finish(n.DataAtom)
	return nil
}

func isHidden(attr []html.Attribute) bool {
	for _, a := range attr {
		switch a.Key {
		case "hidden":
			return a.Val != "until-found"
		case "style":
			if strings.Contains(strings.ReplaceAll(strings.ToLower(a.Val), " ", ""), "display:none") {
				return true
			}
		}
	}
	return false
}

func attribute(attr []html.Attribute, key string) string {
	for _, a := range attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// hasData tells a table of data from one that only arranges blocks: its cells hold no blocks and no tables, and a row
// has several of them.
func hasData(table *html.Node) bool {
	several := false
	for n := range table.Descendants() {
		switch {
		case n == table || n.Type != html.ElementNode:
		case n.DataAtom == atom.Table, n.DataAtom == atom.Ul, n.DataAtom == atom.Ol, n.DataAtom == atom.Pre, headingLevel(n.DataAtom) > 0:
			return false
		case n.DataAtom == atom.P || n.DataAtom == atom.Div:
			if elementBefore(n) {
				return false
			}
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			several = several || elementBefore(n)
		}
	}
	return several
}

// elementBefore reports whether an element stands before n, with at most one text between.
func elementBefore(n *html.Node) bool {
	p := n.PrevSibling
	if p != nil && p.Type == html.TextNode {
		p = p.PrevSibling
	}
	return p != nil && p.Type == html.ElementNode
}

// titleOf is the title of a document: the one in its head, else its first main heading.
func titleOf(doc *html.Node) string {
	heading := ""
	for n := range doc.Descendants() {
		switch n.DataAtom {
		case atom.Title:
			if n.Namespace == "" {
				if t := oneLine(textOf(n)); t != "" {
					return t
				}
			}
		case atom.H1:
			if heading == "" {
				heading = oneLine(textOf(n))
			}
		}
	}
	return heading
}

// textOf is all text below n, as it stands.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// maxTitle bounds a title, in bytes.
const maxTitle = 500

// oneLine makes a title of s: visible, on one line, of bounded length.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if hidden(r) && r != '\n' && r != '\t' && r != '\r' {
			return -1
		}
		return r
	}, s)
	return clip(strings.Join(strings.Fields(s), " "), maxTitle)
}
