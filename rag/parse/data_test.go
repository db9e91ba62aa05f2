package parse

import (
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

func TestTables(t *testing.T) {
	for _, c := range []struct{ name, content, declared, file, want, kind string }{
		{"comma", "Name,km\nRhine,1233\n\"Danube, the\",2850\n", "text/csv", "", "table: Name | km\nRhine | 1233\nDanube, the | 2850\n", TypeCSV},
		{"semicolon", "Name;km\nRhein;1.233,5\nDonau;2.850,1\n", "", "a.csv", "table: Name | km\nRhein | 1.233,5\nDonau | 2.850,1\n", TypeCSV},
		{"line for Excel", "sep=|\na|b,c\n", "text/csv", "", "table: a | b,c\n", TypeCSV},
		{"tab", "Name\tnote\nRhine\t\"a, b\"\n", "", "a.tsv", "table: Name | note\nRhine | a, b\n", TypeTSV},
		{"line break in a cell", "a,b\n\"one\ntwo\",3\n", "text/csv", "", "table: a | b\none two | 3\n", TypeCSV},
		{"no header", "1,2\n3,4\n", "text/csv", "", "table: 1 | 2\n3 | 4\n", TypeCSV},
		{"header alone", "a,b\n", "text/csv", "", "table: a | b\n", TypeCSV},
		{"ragged", "a,b\n1\n2,3,4\n", "text/csv", "", "table: a | b\n1\n2 | 3 | 4\n", TypeCSV},
		{"quotes within", "a,b\n1,say \"x\" now\n", "text/csv", "", "table: a | b\n1 | say \"x\" now\n", TypeCSV},
	} {
		text := mustParse(t, Input{Content: []byte(c.content), DeclaredType: c.declared, Name: c.file})
		if got := outline(text); got != c.want || text.Type != c.kind {
			t.Errorf("%s (%s):\n got %q\nwant %q", c.name, text.Type, got, c.want)
		}
	}
}

func TestHeadersAreRepeatedWithEachGroupOfRows(t *testing.T) {
	text := mustParse(t, Input{Content: []byte("Name,Length\n" + strings.Repeat("Rhine and Main,1233\n", 200)), DeclaredType: "text/csv"})
	for _, b := range text.Blocks {
		if s := text.Body[b.Start:b.End]; b.Kind != rag.BlockTable || !strings.HasPrefix(s, "Name | Length\n") || len(s) > 700 {
			t.Fatalf("%q", s)
		}
	}
	if len(text.Blocks) < 5 || strings.Count(text.Body, "Rhine") != 200 {
		t.Errorf("%d blocks", len(text.Blocks))
	}
}

func TestXML(t *testing.T) {
	for _, c := range []struct{ name, content, want string }{
		{"mixed", "<a><p>One <b>two</b> three</p><p><i>Four</i> five</p></a>", "paragraph: One two three\nparagraph: Four five\n"},
		{"titles", "<book><title>Rivers</title><chapter><title>The Rhine</title><para>It flows.</para></chapter></book>", "h1: Rivers\nh2: The Rhine\nparagraph: It flows.\n"},
		{"values", "<people><person><name>Ann</name><year>1980</year></person><person><name>Bob</name></person></people>", "list: name: Ann\nyear: 1980\nname: Bob\n"},
		{"feed", "<?xml version='1.0'?><rss><channel><item><title>News</title><description><![CDATA[<p>One</p><p>Two &amp; three</p>]]></description></item></channel></rss>", "h3: News\nparagraph: One\nparagraph: Two & three\n"},
		{"names with spaces", "<a xmlns:x='y'><x:p>One</x:p></a>", "paragraph: One\n"},
		{"charset in the declaration", "<?xml version='1.0' encoding='windows-1251'?><a><p>\xcf\xf0\xe8\xe2\xe5\xf2</p></a>", "paragraph: Привет\n"},
		{"own entities", "<!DOCTYPE a [<!ENTITY b 'c'>]><a><p>x &b; y</p></a>", "paragraph: x &b; y\n"},
		{"comments", "<a><!-- no --><p>One<!-- no --> two</p></a>", "paragraph: One two\n"},
	} {
		text := mustParse(t, Input{Content: []byte(c.content), DeclaredType: "application/xml"})
		if got := outline(text); got != c.want || text.Type != TypeXML {
			t.Errorf("%s (%s):\n got %q\nwant %q", c.name, text.Type, got, c.want)
		}
	}
	for content, want := range map[string]string{"<a><b": rag.ReasonBrokenFile, "<a b='c'/>": rag.ReasonNoText, strings.Repeat("<a>", 2000): rag.ReasonTooLarge} {
		if reason, message := reasonOf(t, Input{Content: []byte(content), DeclaredType: "text/xml"}); reason != want {
			t.Errorf("%.20s: %s: %s", content, reason, message)
		}
	}
}
