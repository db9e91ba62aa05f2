package parse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/flow"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

// outline shows a text block by block: kind, level of a heading, text.
func outline(text Text) string {
	var b strings.Builder
	for _, k := range text.Blocks {
		kind := string(k.Kind)
		if k.Level > 0 {
			kind = fmt.Sprintf("h%d", k.Level)
		}
		fmt.Fprintf(&b, "%s: %s\n", kind, text.Body[k.Start:k.End])
	}
	return b.String()
}

func parseHTML(t testing.TB, source string) Text {
	t.Helper()
	return mustParse(t, Input{Content: []byte(source), DeclaredType: "text/html; charset=utf-8"})
}

func TestHTMLBlocks(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"paragraphs", "<p>One\n  two</p><p>three<br>four", "paragraph: One two\nparagraph: three\nfour\n"},
		{"inline", "<p>a<b>b</b> <i>c</i>&nbsp;<a href=x>d</a>&amp;<code> e </code></p>", "paragraph: ab c d& e\n"},
		{"headings", "<h1>One</h1>text<h2>Two</h2>more", "h1: One\nparagraph: text\nh2: Two\nparagraph: more\n"},
		{"lists", "<ul><li>one<li><p>two</p><p>more</p><ol start=3><li>deep<li>deeper</ol></ul>after", "list: - one\n- two\nmore\n  3. deep\n  4. deeper\nparagraph: after\n"},
		{"empty items", "<ul><li></li><li>one</li><li> </li></ul>", "list: - one\n"},
		{"definitions", "<dl><dt>Term<dd>Meaning<dt>Other<dd>Sense</dl>", "list: Term\n  Meaning\nOther\n  Sense\n"},
		{"table", "<table><tr><th>a</th>\n<th>b</th></tr><tr><td>1</td><td></td></tr><tr><td></td><td>\n</td></tr></table>x", "table: a | b\n1 |\nparagraph: x\n"},
		{"cells on lines", "<table><tr><td>a<br>b</td><td><p>c</p></td></tr></table>", "table: a b | c\n"},
		{"table that arranges", "<table><tr><td><h2>One</h2><p>x</p></td><td><p>y</p><p>z</p></td></tr></table>", "h2: One\nparagraph: x\nparagraph: y\nparagraph: z\n"},
		{"table of one column", "<table><tr><td>a</td></tr><tr><td>b</td></tr></table>", "paragraph: a\nparagraph: b\n"},
		{"code", "<pre>\n  if x {\n\n  }\n</pre>", "code:   if x {\n\n  }\n"},
		{"heading in a list", "<ul><li><h3>One</h3>x</li><li>y</li></ul>", "h3: One\nlist: x\n- y\n"},
		{"nothing to read", "<p>a<script>b()</script><style>c{}</style><svg><text>d</text></svg><select><option>e</select><img alt=f><template>g</template></p>", "paragraph: a\n"},
		{"hidden", "<p>a</p><p hidden>b</p><p style='color: red; display : NONE'>c</p><input value=d><noscript>e</noscript>", "paragraph: a\n"},
		{"navigation", "<nav>a</nav><div role=navigation>b</div><main><p>c</p><aside>d</aside></main><aside>e</aside><footer>f</footer>", "paragraph: c\nparagraph: d\n"},
		{"nothing but navigation", "<nav><ul><li><a href=x>a</a></ul></nav>", "list: - a\n"},
		{"characters", "<p>a\x00b\u00adc\ufeffd &#0; &#x1f; \u200b</p>", "paragraph: abcd \ufffd \u200b\n"},
	} {
		if got := outline(parseHTML(t, c.source)); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestHTMLTitles(t *testing.T) {
	for source, want := range map[string]string{
		"<title> One\n two </title><h1>Three</h1>x":  "One two",
		"<title></title><h1>Three <i>four</i></h1>x": "Three four",
		"<p>x":                                  "",
		"<svg><title>Picture</title></svg><p>x": "",
		"<title>" + strings.Repeat("ü", 900) + "</title><p>x": strings.Repeat("ü", 248) + "…",
	} {
		if got := parseHTML(t, source).Title; got != want {
			t.Errorf("%.40s: %q", source, got)
		}
	}
}

func TestBreadcrumbsFollowTheHeadings(t *testing.T) {
	text := parseHTML(t, "<p>a<h1>One</h1><p>b<h3>Two</h3><p>c<h2>Three</h2><p>d<h1>"+strings.Repeat("long ", 60)+"</h1><p>e")
	var got []string
	for _, b := range text.Blocks {
		got = append(got, b.Heading)
	}
	long := strings.TrimSpace(strings.Repeat("long ", 60))[:117] + "…"
	want := []string{"", "One", "One", "One > Two", "One > Two", "One > Three", "One > Three", long, long}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("got %q", got)
	}
}

// article is a page whose main part can be told: long paragraphs amid lists of links.
func article(main string) string {
	links := strings.Repeat(`<li><a href="/x">Some other page of this site</a></li>`, 40)
	return `<html><head><title>Rivers</title></head><body><div class="menu"><ul>` + links + `</ul></div><div class="content"><h1>Rivers</h1>` +
		main + `</div><div class="sidebar"><ul>` + links + `</ul></div></body></html>`
}

func TestTheMainPartIsTakenWhereNothingIsLost(t *testing.T) {
	paragraph := "<p>" + strings.Repeat("The Rhine rises in the Alps, flows north, and ends in the sea. ", 6) + "</p>"
	text := parseHTML(t, article(strings.Repeat(paragraph, 8)))
	if strings.Contains(text.Body, "other page") {
		t.Error("lists of links were taken for the text")
	}
	if !strings.HasPrefix(text.Body, "Rivers\n\n") || strings.Count(text.Body, "Rhine") != 48 || text.Title != "Rivers" {
		t.Errorf("the text is not complete: %.80q", text.Body)
	}
}

func TestTheWholePageIsTakenWhereTheMainPartWouldLoseText(t *testing.T) {
	definitions := "<dl>"
	for i := range 40 {
		definitions += fmt.Sprintf("<dt>River %d</dt><dd>It flows.</dd>", i)
	}
	letter := ""
	for i := range 41 {
		letter += fmt.Sprintf("<div>Line %d, to you.</div>", i)
	}
	for name, source := range map[string]string{
		"definitions": article("<p>Some rivers, with what they do, in the order of their length.</p>" + definitions + "</dl>"),
		"letter":      "<body><div>" + letter + "</div><p>" + strings.Repeat("Yours, as ever, and always, and so on. ", 20) + "</p></body>",
	} {
		text := parseHTML(t, source)
		for _, want := range []string{"River 0", "River 39"} {
			if name == "definitions" && !strings.Contains(text.Body, want) {
				t.Errorf("%s: %s is lost", name, want)
			}
		}
		for i := range 41 {
			if want := fmt.Sprintf("Line %d,", i); name == "letter" && !strings.Contains(text.Body, want) {
				t.Errorf("%s: %s is lost", name, want)
			}
		}
	}
}

func TestAPageWithoutTextHasItsReason(t *testing.T) {
	for _, source := range []string{
		"<html><head><title>Pictures</title></head><body><img src=a.png alt=''><script>let a = 1</script></body></html>",
		"<!doctype html>", "<html><body>&nbsp;<br>\u200b</body></html>", strings.Repeat("<div>", 600) + "<script>x</script>",
	} {
		if reason, message := reasonOf(t, Input{Content: []byte(source), DeclaredType: "text/html"}); reason != rag.ReasonNoText || !strings.Contains(message, TypeHTML) {
			t.Errorf("%.60s: %s %s", source, reason, message)
		}
	}
}

func TestDeepPagesAreReadTagByTag(t *testing.T) {
	source := "<title>Deep</title>" + strings.Repeat("<div>", 600) + "<h1>One</h1><ul><li>two<li>three</ul><script>x</script><p>four<table><tr><td>5<td>6</table>"
	text := parseHTML(t, source)
	if got, want := outline(text), "h1: One\nlist: - two\n- three\nparagraph: four\nparagraph: 5\nparagraph: 6\n"; got != want {
		t.Errorf("got %q", got)
	}
	if text.Title != "Deep" || len(text.Warnings) != 1 {
		t.Errorf("title %q, warnings %q", text.Title, text.Warnings)
	}
}

func TestPagesThatMakeLargeTreesAreReadTagByTag(t *testing.T) {
	var open strings.Builder
	for i := range 400 {
		fmt.Fprintf(&open, "<b id=%d>", i) // each is opened again in every paragraph
	}
	text := parseHTML(t, open.String()+strings.Repeat("<p>x", 10_000))
	if len(text.Blocks) != 10_000 || len(text.Warnings) != 1 {
		t.Errorf("%d blocks, warnings %q", len(text.Blocks), text.Warnings)
	}
}

func TestHTMLEndsWithItsContextAndItsLimits(t *testing.T) {
	source := []byte("<body>" + strings.Repeat("<p>Text &amp; more.", 5000))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	p, err := New(Limits{Text: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.html(ctx, string(source)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	for _, kind := range []string{"text/html", "text/markdown", TypeJSON, TypeJSONLines} {
		content := source
		if strings.Contains(kind, "json") {
			content = []byte(`["` + strings.Repeat("long ", 1000) + `"]`)
		}
		_, err := p.Parse(context.Background(), Input{Content: content, DeclaredType: kind})
		if flow.ReasonOf(err) != rag.ReasonTooLarge {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A table that no chunk holds stays readable: each of its blocks has the header.
func TestHeadersOfLargeTablesAreRepeated(t *testing.T) {
	var page, document, markdown strings.Builder
	page.WriteString("<table><caption>Lengths</caption><tr><th>River<th>Length</tr>")
	markdown.WriteString("| River | Length |\n|---|---|\n")
	cell := func(s string) string { return "<w:tc>" + parsetest.WordParagraph("", s) + "</w:tc>" }
	document.WriteString("<w:tbl><w:tr>" + cell("River") + cell("Length") + "</w:tr>")
	for i := range 100 {
		name := fmt.Sprint("River number ", i)
		fmt.Fprintf(&page, "<tr><td>%s<td>%d km</tr>", name, i)
		fmt.Fprintf(&markdown, "| %s | %d km |\n", name, i)
		document.WriteString("<w:tr>" + cell(name) + cell(fmt.Sprint(i, " km")) + "</w:tr>")
	}
	for name, in := range map[string]Input{
		"page": {Content: []byte(page.String() + "</table>"), DeclaredType: TypeHTML}, "Markdown": {Content: []byte(markdown.String()), DeclaredType: TypeMarkdown},
		"document": {Content: parsetest.Word(document.String() + "</w:tbl>")},
	} {
		text := mustParse(t, in)
		rows := 0
		for i, b := range text.Blocks {
			lines := strings.Split(text.Body[b.Start:b.End], "\n")
			if i == 0 && name == "page" && lines[0] == "Lengths" {
				lines = lines[1:]
			}
			if b.Kind != rag.BlockTable || lines[0] != "River | Length" || b.End-b.Start > 700 {
				t.Errorf("%s: block %d is %+v: %.100q", name, i, b, text.Body[b.Start:b.End])
			}
			rows += len(lines) - 1
		}
		if len(text.Blocks) < 4 || rows != 100 {
			t.Errorf("%s: %d blocks, %d rows", name, len(text.Blocks), rows)
		}
	}
	small := parseHTML(t, "<table><tr><td>1<td>2</tr>"+strings.Repeat("<tr><td>3<td>4</tr>", 300)+"</table>")
	if len(small.Blocks) != 1 {
		t.Errorf("a table without a header: %d blocks", len(small.Blocks))
	}
}
