package parse

import (
	"strings"
	"testing"
)

func parseMarkdown(t testing.TB, source string) Text {
	t.Helper()
	return mustParse(t, Input{Content: []byte(source), DeclaredType: "text/markdown; charset=utf-8"})
}

func TestMarkdownBlocks(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"headings", "# One\n\ntext\n\nTwo\n---\n\nmore", "h1: One\nparagraph: text\nh2: Two\nparagraph: more\n"},
		{"inline", "**a** _b_ ~~c~~ `d` [e](http://x \"t\") <http://f> ![g](h.png) \\*i\\* &amp; &copy;", "paragraph: a b c d e http://f *i* & ©\n"},
		{"lines", "one\ntwo  \nthree\\\nfour<br>five", "paragraph: one two\nthree\nfour\nfive\n"},
		{"lists", "- one\n- two\n\n  more\n  - deep\n\n3. a\n4. b", "list: - one\n- two\nmore\n  - deep\nlist: 3. a\n4. b\n"},
		{"tasks", "- [x] done\n- [ ] open", "list: - [x] done\n- [ ] open\n"},
		{"code", "```go\n  a := `*b*`\n\n  c\n```\n\n    indented *d*", "code:   a := `*b*`\n\n  c\ncode: indented *d*\n"},
		{"code in a list", "- one\n\n  ```\n  a\n    b\n  ```", "list: - one\na\n  b\n"},
		{"table", "| a | b |\n|---|:-:|\n| 1 | `2` |\n| 3 | |", "table: a | b\n1 | 2\n3 |\n"},
		{"quote", "> one\n> two\n>\n> three", "paragraph: one two\nparagraph: three\n"},
		{"definition", "Term\n: Meaning", "list: Term\n  Meaning\n"},
		{"footnote", "Text[^1].\n\n[^1]: The note.", "paragraph: Text.\nlist: 1. The note.\n"},
		{"HTML", "<div align=center>\n<b>one</b> <script>two()</script>\n</div>\n\nthree <span>four</span>", "paragraph: one\nparagraph: three four\n"},
		{"references", "[one][a] and [b]\n\n[a]: http://x\n[b]: http://y", "paragraph: one and b\n"},
		{"no marks", "1 * 2 * 3 < 4 & a_b_c", "paragraph: 1 * 2 * 3 < 4 & a_b_c\n"},
		{"CRLF", "# One\r\n\r\ntwo\r\nthree\r\n", "h1: One\nparagraph: two three\n"},
		{"mark of the charset", "\ufeff# One\n\ntwo", "h1: One\nparagraph: two\n"},
	} {
		if got := outline(parseMarkdown(t, c.source)); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestMarkdownTitles(t *testing.T) {
	for source, want := range map[string]string{
		"---\ntitle: \"One: two\"\ntags:\n  - a\n---\n# Three\n\ntext": "One: two",
		"---\nlang: en\n---\n# Three *four*\n\ntext":                   "Three four",
		"## Two\n\n# One\n\ntext":                                      "One",
		"text":                                                         "",
		"---\n# One\n":                                                 "One",
	} {
		if got := parseMarkdown(t, source); got.Title != want || strings.Contains(got.Body, "lang") || strings.Contains(got.Body, "tags") {
			t.Errorf("%q: title %q, text %q", source, got.Title, got.Body)
		}
	}
}

func TestRulesAreNotFrontMatter(t *testing.T) {
	for _, source := range []string{"---\none line between rules\n---\ntext", "---\ntitle: never closed\n\ntext", "--- \n\n---"} {
		got := outlineOrReason(t, source)
		if strings.Contains(source, "one line") && !strings.Contains(got, "one line") || strings.Contains(source, "never") && !strings.Contains(got, "never closed") {
			t.Errorf("%q: %q", source, got)
		}
	}
}

func outlineOrReason(t *testing.T, source string) string {
	t.Helper()
	text, err := newParser(t).Parse(t.Context(), Input{Content: []byte(source), DeclaredType: TypeMarkdown})
	checkOutcome(t, text, err)
	return outline(text)
}

func TestTangledMarkdownIsReadAsPlainText(t *testing.T) {
	for name, source := range map[string]string{
		"marks":     strings.Repeat("_a*", 2001),
		"links":     strings.Repeat("[a](", 1001),
		"quotes":    strings.Repeat("> ", 300) + "a",
		"lists":     strings.Repeat("- ", 300) + "a",
		"numbers":   strings.Repeat("1. ", 300) + "a",
		"indent":    strings.Repeat(" ", 300) + "- a",
		"footnotes": strings.Repeat("[^1]\n\n", 2001),
		"lines":     strings.Repeat("a\n", maxPieces+1),
	} {
		text := parseMarkdown(t, source)
		if text.Body != source || len(text.Warnings) != 1 || text.Type != TypeMarkdown {
			t.Errorf("%s: %.40q, warnings %q", name, text.Body, text.Warnings)
		}
	}
	for name, source := range map[string]string{
		"a rule":         strings.Repeat("-", 1000) + "\n\n*a*",
		"many links":     strings.Repeat("- [a](b)\n", 900),
		"paragraphs":     strings.Repeat("Some *marks* in [each](x).\n\n", 5000),
		"a long heading": "a\n" + strings.Repeat("=", 2000),
	} {
		if text := parseMarkdown(t, source); len(text.Warnings) != 0 {
			t.Errorf("%s: warnings %q", name, text.Warnings)
		}
	}
}
