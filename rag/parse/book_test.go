package parse

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

// epub packs a book of two chapters; files of the same name replace its own.
func epub(more ...parsetest.File) []byte {
	opf := `<package><metadata><dc:title>On rivers</dc:title></metadata><manifest><item id="n" href="nav.xhtml" properties="nav"/><item id="b" href="text/two%20b.xhtml"/>` +
		`<item id="a" href="text/one.xhtml"/><item id="c" href="missing.xhtml"/></manifest><spine><itemref idref="n"/><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/></spine></package>`
	files := []parsetest.File{
		{Name: "mimetype", Content: "application/epub+zip"},
		{Name: "META-INF/container.xml", Content: `<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>`},
		{Name: "OEBPS/book.opf", Content: opf},
		{Name: "OEBPS/nav.xhtml", Content: "<html><body><nav><ol><li>One</li></ol></nav></body></html>"},
		{Name: "OEBPS/text/two b.xhtml", Content: "<html><body><h2>Two</h2><p>Second text.</p></body></html>"},
		{Name: "OEBPS/text/one.xhtml", Content: `<?xml version="1.0"?><html><head><title>x</title></head><body><h1>One</h1><p>First <i>text</i>.</p></body></html>`},
	}
	for _, m := range more {
		files = slices.DeleteFunc(files, func(f parsetest.File) bool { return f.Name == m.Name })
	}
	return parsetest.Zip(append(files, more...)...)
}

func TestBooksAreReadInTheirOrder(t *testing.T) {
	text := mustParse(t, Input{Content: epub()})
	want := "h1: One\nparagraph: First text.\nh2: Two\nparagraph: Second text.\n"
	if got := outline(text); got != want || text.Title != "On rivers" || text.Type != TypeEPUB {
		t.Errorf("%q %s", text.Title, got)
	}
	if len(text.Warnings) != 1 || !strings.Contains(text.Warnings[0], "missing.xhtml") {
		t.Errorf("%q", text.Warnings)
	}
	encrypted := parsetest.File{Name: "META-INF/encryption.xml", Content: `<encryption><CipherReference URI="OEBPS/text/one.xhtml"/></encryption>`}
	if reason, _ := reasonOf(t, Input{Content: epub(encrypted)}); reason != rag.ReasonEncrypted {
		t.Errorf("encrypted: %s", reason)
	}
}

func TestRTF(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"paragraphs", `{\rtf1\ansi One\par Two {\b three}\line four\par}`, "paragraph: One\nparagraph: Two three\nfour\n"},
		{"charsets", `{\rtf1\ansi\ansicpg1251{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset161 B;}}\'cf\'f0\'e8 \f1\'e1\par}`, "paragraph: При α\n"},
		{"unicode", `{\rtf1\ansi\uc1 a\u1076?b\u-10179?\u-8704?c {\uc2\u8364xyz}\par}`, "paragraph: aдb😀c €z\n"},
		{"Shift JIS", `{\rtf1\ansi\ansicpg932 \'93\'fa\'96\'7b}`, "paragraph: 日本\n"},
		{"nothing to read", `{\rtf1{\*\generator x;}{\info{\author y}}{\pict\bin3 }}}}{\header z}a{\v b}{\deleted c}\par}`, "paragraph: a\n"},
		{"headings", `{\rtf1\pard\outlinelevel0 One\par\pard Text\par\pard\outlinelevel1 Two\par}`, "h1: One\nparagraph: Text\nh2: Two\n"},
		{"lists", `{\rtf1\pard{\listtext\'b7\tab}one\par{\listtext\'b7\tab}two\par\pard{\pntext 1.\tab}three\par}`, "list: - one\n- two\n1. three\n"},
		{"tables", `{\rtf1 x\par\trowd\pard\intbl a\cell b1\par b2\cell\row\trowd\pard\intbl\cell d\cell\row\pard y\par}`, "paragraph: x\ntable: a | b1 b2\n | d\nparagraph: y\n"},
		{"fields and notes", `{\rtf1 see {\field{\*\fldinst HYPERLINK "x"}{\fldrslt this}}{\footnote A note.\par}.\par}`, "paragraph: see this [A note. ].\n"},
		{"signs", `{\rtf1 \{a\}\~\emdash\\\tab b\_c\par}`, "paragraph: {a} —\\ b-c\n"},
	} {
		text := mustParse(t, Input{Content: []byte(c.content)})
		if got := outline(text); got != c.want || text.Type != TypeRTF {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
	if text := mustParse(t, Input{Content: []byte(`{\rtf1{\info{\title On rivers}}a`)}); text.Title != "On rivers" || len(text.Warnings) != 1 {
		t.Errorf("%+v", text)
	}
	if reason, _ := reasonOf(t, Input{Content: []byte(`{\rtf1` + strings.Repeat("{", 2000))}); reason != rag.ReasonTooLarge {
		t.Errorf("deep: %s", reason)
	}
}

func TestBooksAndTextsOfOtherPrograms(t *testing.T) {
	for _, name := range []string{"rivers.epub", "rivers.rtf"} {
		content, err := os.ReadFile("testdata/files/" + name)
		if err != nil {
			t.Fatal(err)
		}
		text := mustParse(t, Input{Content: content})
		for _, want := range []string{"The Rhine rises in the Alps", "Danube", "2,850", "mills", "In Switzerland", "Реки текут"} {
			if !strings.Contains(text.Body, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, outline(text))
			}
		}
	}
}
