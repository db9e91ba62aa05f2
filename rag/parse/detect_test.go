package parse

import (
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

func TestTypesAreTold(t *testing.T) {
	const page = "<!DOCTYPE html><title>T</title><p>Text."
	for _, c := range []struct {
		name, content, declared, file, want string
	}{
		{"nothing said", "Some text.", "", "", TypePlain},
		{"page by its content", page, "", "", TypeHTML},
		{"page with an XML declaration", `<?xml version="1.0"?><!-- c --><html><p>Text.</html>`, "", "page.xml", TypeHTML},
		{"page declared as something else", page, "application/json", "a.json", TypeHTML},
		{"page sent by a form client", page, "application/x-www-form-urlencoded", "", TypeHTML},
		{"page named as text", page, "", "a.txt", TypeHTML},
		{"fragment by its first tag", "<div>Text.</div>", "", "", TypeHTML},
		{"fragment by its declaration", "Text with <b>marks</b>.", "text/html; charset=utf-8", "", TypeHTML},
		{"fragment by its name", "Text with <b>marks</b>.", "application/octet-stream", "x/Page.HTM", TypeHTML},
		{"text about a page", page, "text/plain", "a.html", TypePlain},
		{"Markdown by its declaration", "# Text", "text/markdown", "", TypeMarkdown},
		{"Markdown by its name", "# Text", "", "notes/readme.md", TypeMarkdown},
		{"Markdown that begins with a tag", "<div>Text</div>\n\n# Text", "", "readme.md", TypeMarkdown},
		{"Markdown that begins with a bracket", "[Text](link)", "", "readme.md", TypeMarkdown},
		{"JSON by its content", `{"a": "Text"}`, "", "", TypeJSON},
		{"JSON by its content, on many lines", "[\n1,\n2\n]", "", "data", TypeJSON},
		{"JSON of a vocabulary", `{"a": "Text"}`, "application/ld+json", "", TypeJSON},
		{"lines by their content", "{\"a\":1}\n{\"a\":2}\n", "", "", TypeJSONLines},
		{"lines by their name", "1\n\"two\"\n", "", "a.jsonl", TypeJSONLines},
		{"lines by their declaration", "1\n2\n", "application/jsonl", "", TypeJSONLines},
		{"lines named as JSON", "{\"a\":1}\n{\"a\":2}\n", "", "a.json", TypeJSONLines},
		{"a bracket is not JSON", "[1] Text, see below.", "", "", TypePlain},
		{"source by its name", "package main\n", "", "src/main.go", TypeSource},
		{"source by a name without extension", "FROM scratch\n", "", "Dockerfile", TypeSource},
		{"source by its declaration", "let a = 1\n", "text/javascript", "", TypeSource},
		{"source declared as text", "package main\n", "text/plain", "main.go", TypePlain},
		{"letters that formats begin with", "BM, PK and MZ are initials.", "", "", TypePlain},
		{"letters that archives begin with", "PK\n", "application/zip", "", TypePlain},
		{"escape sequences", "\x1b[1mText\x1b[0m\n", "", "", TypePlain},
		{"a NUL late in a log", strings.Repeat("a line\n", 1000) + "\x00", "", "", TypePlain},
	} {
		if got := mustParse(t, Input{Content: []byte(c.content), DeclaredType: c.declared, Name: c.file}); got.Type != c.want {
			t.Errorf("%s: %s, not %s", c.name, got.Type, c.want)
		}
	}
}

func TestContradictionsAreSettledAndSaid(t *testing.T) {
	const page, object = "<!DOCTYPE html><title>T</title><p>Text.", `{"a": "Text"}`
	pdf := string(parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: []parsetest.PDFLine{{X: 60, Y: 700, Size: 11, Text: "Text."}}}}}.Bytes())
	word := string(parsetest.Word(parsetest.WordParagraph("", "Text.")))
	for _, c := range []struct {
		name, content, declared, file string
		kind, warning                 string // "" if there is no contradiction
	}{
		{"page declared as JSON", page, "application/json", "a.json", TypeHTML, "declared as application/json, but its content is text/html"},
		{"page named as text", page, "", "a.txt", TypeHTML, ""},
		{"page named as Markdown", page, "", "a.md", TypeHTML, "called .md, but its content is text/html"},
		{"page declared as XML", page, "application/xml", "", TypeHTML, ""},
		{"PDF declared as text", pdf, "text/plain; charset=utf-8", "", TypePDF, "declared as text/plain"},
		{"PDF named as text", pdf, "", "a.txt", TypePDF, "called .txt, but its content is application/pdf"},
		{"PDF declared as Word", pdf, TypeDOCX, "a.docx", TypePDF, "declared as " + TypeDOCX},
		{"Word named as PDF", word, "", "a.pdf", TypeDOCX, "called .pdf"},
		{"Word declared as such, named otherwise", word, TypeDOCX, "a.pdf", TypeDOCX, ""},
		{"Word sent as bytes", word, "application/octet-stream", "a.docx", TypeDOCX, ""},
		{"text declared as a picture", "Text.", "image/png", "", TypePlain, "declared as image/png"},
		{"text named as PDF", "Text.", "", "a.pdf", TypePlain, "called .pdf"},
		{"object declared as Markdown", object, "text/markdown", "", TypeMarkdown, ""},
		{"object declared as CSV", object, "text/csv", "", TypeJSON, "declared as text/csv"},
		{"an id that looks like a name", "Text.", "", "chapter.1", TypePlain, ""},
	} {
		got := mustParse(t, Input{Content: []byte(c.content), DeclaredType: c.declared, Name: c.file})
		if said := strings.Join(got.Warnings, " "); got.Type != c.kind || (said != "") != (c.warning != "") || !strings.Contains(said, c.warning) {
			t.Errorf("%s: %s, %q", c.name, got.Type, said)
		}
	}
}

func TestUnsupportedTypesAreNamed(t *testing.T) {
	for _, c := range []struct {
		content, declared, file, want string
	}{
		{"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "text/plain", "", "an image (image/png)"},
		{"GIF89a\x01\x00\x01\x00\x00\x00", "", "", "an image (image/gif)"},
		{"PK\x03\x04\x14\x00\x00\x00\x08\x00", "", "", "a ZIP archive (application/zip)"},
		{"\x1f\x8b\x08\x00\x00\x00\x00\x00", "", "", "a gzip archive (application/gzip)"},
		{"\x7fELF\x02\x01\x01\x00\x00", "", "", "application/x-elf"},
		{"\x01\x02\x03\xf0\xf1 noise \x00", "", "", "binary data of no known type (application/octet-stream)"},
		{"\x01\x02\x03 text with controls \x00", "", "a.txt", "binary data of no known type"},
	} {
		reason, message := reasonOf(t, Input{Content: []byte(c.content), DeclaredType: c.declared, Name: c.file})
		if reason != rag.ReasonUnsupportedType || !strings.Contains(message, c.want) {
			t.Errorf("%q: %s: %s", c.content, reason, message)
		}
	}
}
