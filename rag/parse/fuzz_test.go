package parse

import (
	"context"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

func fuzzedParser(f *testing.F) *Parser {
	p, err := New(Limits{Text: 1 << 20, Time: time.Minute}, CacheDir(pdfiumCache))
	if err != nil {
		f.Fatal(err)
	}
	// An input that takes ten seconds counts as one that hangs, and on a busy machine PDFium takes as long to be ready.
	if err := p.pdf.Ready(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := p.Close(); err != nil {
			f.Error(err)
		}
	})
	return p
}

// fuzzAs parses arbitrary content as one declared type.
func fuzzAs(f *testing.F, declared string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	p := fuzzedParser(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		text, err := p.Parse(context.Background(), Input{Content: content, DeclaredType: declared})
		checkOutcome(t, text, err)
		again, errAgain := p.Parse(context.Background(), Input{Content: content, DeclaredType: declared})
		if again.Body != text.Body || again.Title != text.Title || len(again.Blocks) != len(text.Blocks) || (err == nil) != (errAgain == nil) {
			t.Fatalf("two readings differ: %+v and %+v", text, again)
		}
		if declared == "text/plain; charset=utf-8" && err == nil && utf8.Valid(content) && text.Body != string(content) {
			t.Fatalf("%q became %q", content, text.Body)
		}
	})
}

func FuzzPlain(f *testing.F) {
	fuzzAs(f, "text/plain; charset=utf-8", "one\n\ntwo", "\xff\xfea\x00", "\xef\xbb\xbfx", "a\x00b", "\x1b$B$9$Y$F\x1b(B")
}

func FuzzUndeclared(f *testing.F) {
	fuzzAs(f, "", "one", "%PDF-1.7", "<html>x", "{\"a\": 1}", "\xc2\xf1\xe5 \xeb\xfe\xe4\xe8", "a\x00b\x00", "PK\x03\x04", "<?xml version='1.0' encoding='big5'?><html>x")
}

func FuzzHTML(f *testing.F) {
	fuzzAs(f, "text/html; charset=utf-8",
		"<title>a</title><h1>b</h1><p>c<ul><li>d<table><tr><td>e<td>f</table></ul>", "<table><b><tr>x<p>y</table>", "<pre>\n a</pre><dl><dt>b<dd>c",
		"<nav>a</nav><svg><desc><p>b", "<!doctype html><plaintext>a", "<a><b></a>c<template>d</template><select><option>e")
}

func FuzzMarkdown(f *testing.F) {
	fuzzAs(f, "text/markdown; charset=utf-8",
		"---\ntitle: a\n---\n# b\n\n- c\n  1. d\n\n| e | f |\n|---|---|\n| g | h |", "> a\n> - b\n\n```\nc\n```", "[a]: b\n[a][] ![c](d) <e@f.g>",
		"a[^1]\n\n[^1]: b", "a\n: b", "<div>\n*a*\n</div>", "\\* &amp; `a` **b** ~~c~~")
}

func FuzzJSON(f *testing.F) {
	fuzzAs(f, TypeJSON, `{"a": {"b": [1, "c", {"d": null}]}}`, `[[[]]]`, `{"a": tru`, `"\ud800"`, `{"title": "t"} x`)
}

func FuzzJSONLines(f *testing.F) {
	fuzzAs(f, TypeJSONLines, "{\"a\": 1}\n\n[2]\n", "1\n2\r\n", "{\n}", "{\"a\": [\"b\"]}\n{")
}

func FuzzCSV(f *testing.F) {
	fuzzAs(f, TypeCSV, "a,b\n1,2\n", "sep=;\na;b\n", "\"a\n", "a\tb\n\"c\"d\"\te\n", ",,\n,")
}

func FuzzXML(f *testing.F) {
	fuzzAs(f, TypeXML, "<a><title>b</title><p>c <i>d</i></p><e>f</e></a>", "<?xml version='1.0'?><a><![CDATA[<p>b</p>]]></a>", "<a></b><c/>d", "<a b='c'>&amp;&#0;")
}

func FuzzSource(f *testing.F) {
	fuzzAs(f, TypeSource, "a\n\nb {\n\n}\n", "\r\n \n\tx", "\x0c\n\u2028a")
}

func FuzzMail(f *testing.F) {
	fuzzAs(f, TypeMail, mailHeaders+"Subject: a\r\n"+multi("mixed", "b", part("Content-Type: text/html", "<p>c"), part("Content-Type: text/plain; name=a.csv", "d,e")),
		"From: a\nContent-Transfer-Encoding: base64\n\nYQ==", "From x\nSubject: =?utf-8?b?YQ?=\nContent-Type: multipart/alternative; boundary=b\n\n--b\n\nc\n--b--")
}

func FuzzRTF(f *testing.F) {
	fuzzAs(f, TypeRTF, `{\rtf1\ansi a\par\u1076?\'e4{\*\x y}}`, `{\rtf1\trowd\intbl a\cell\row\pard{\listtext 1.}b\par{\footnote c}}`, `{\rtf1{\fonttbl{\f0\fcharset128 A;}}\f0\'93\'fa\bin4 {\v x`)
}

func FuzzPDF(f *testing.F) {
	lines, _ := parsetest.Column(60, 760, 11, 80, "• A word.", "And more.")
	fuzzAs(f, TypePDF, string(parsetest.PDF{Title: "a", Pages: []parsetest.PDFPage{{Lines: lines, Field: "b"}, {Image: true, Rotate: 90}}}.Bytes()), "%PDF-1.4\n")
}

// fuzzPacked fuzzes one file of an archive: damage to the packing itself finds nothing but checksums.
func fuzzPacked(f *testing.F, pack func(string) []byte, seeds ...string) {
	for _, s := range seeds {
		f.Add(s)
	}
	p := fuzzedParser(f)
	f.Fuzz(func(t *testing.T, content string) {
		text, err := p.Parse(context.Background(), Input{Content: pack(content)})
		checkOutcome(t, text, err)
	})
}

func FuzzWord(f *testing.F) {
	fuzzPacked(f, func(body string) []byte {
		return parsetest.Word(body, parsetest.File{Name: "word/footnotes.xml", Content: parsetest.WordNotes("footnote", "a")})
	}, parsetest.WordParagraph("Heading1", "a")+parsetest.WordItem(2, 1, "b")+"<w:tbl><w:tr><w:tc><w:p><w:r><w:t>c</w:t><w:footnoteReference w:id='1'/></w:r></w:p></w:tc></w:tr></w:tbl>",
		"<w:p><w:r><w:t>a</w:t><w:txbxContent><w:p><w:r><w:t>b</w:t></w:r></w:p></w:txbxContent></w:r></w:p>", "</w:p></w:tbl></w:txbxContent><w:tbl><w:t>x", "<w:del><w:ins><w:t>a</w:t></w:ins></w:del>")
}

func FuzzSlides(f *testing.F) {
	fuzzPacked(f, func(shapes string) []byte { return parsetest.Slides([]string{shapes}, map[int]string{0: "note"}) },
		parsetest.SlideShape("title", "a")+parsetest.SlideShape("", "b", "\tc"), "<a:tbl><a:tr><a:tc><a:p><a:t>a</a:t></a:p></a:tc></a:tr></a:tbl>", "</a:tbl><a:tbl><a:t>x")
}

func FuzzWorkbook(f *testing.F) {
	fuzzPacked(f, func(rows string) []byte {
		return parsetest.Zip(parsetest.File{Name: "[Content_Types].xml", Content: `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`},
			parsetest.File{Name: "xl/workbook.xml", Content: `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="s" sheetId="1" r:id="rId1"/></sheets></workbook>`},
			parsetest.File{Name: "xl/_rels/workbook.xml.rels", Content: parsetest.Rels("worksheet", "worksheets/sheet1.xml")},
			parsetest.File{Name: "xl/worksheets/sheet1.xml", Content: "<worksheet><sheetData>" + rows + "</sheetData></worksheet>"})
	}, `<row r="1"><c r="A1" t="inlineStr"><is><t>a</t></is></c><c r="B1"><v>1</v></c></row>`, `<row r="9"><c r="ZZ9" t="str"><f>A1</f><v>b</v></c></row>`, `<row><c t="s"><v>7</v></c><c t="b"><v>1</v></c>`)
}

func FuzzEPUB(f *testing.F) {
	fuzzPacked(f, func(opf string) []byte {
		return epub(parsetest.File{Name: "OEBPS/more.xhtml", Content: opf}, parsetest.File{Name: "OEBPS/book.opf", Content: opf})
	},
		"<package><manifest><item id='a' href='more.xhtml'/></manifest><spine><itemref idref='a'/></spine></package>", "<html><body><p>a")
}

// FuzzArchive damages the packing.
func FuzzArchive(f *testing.F) {
	for _, content := range [][]byte{parsetest.Word(parsetest.WordParagraph("", "a")), epub(), parsetest.Slides([]string{"x"}, nil)} {
		f.Add(content)
	}
	p := fuzzedParser(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		text, err := p.Parse(context.Background(), Input{Content: content, Name: "a.docx"})
		checkOutcome(t, text, err)
	})
}
