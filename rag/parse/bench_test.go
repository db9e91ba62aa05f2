package parse

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

// corpus is the content of the examples with one extension.
func corpus(b testing.TB, ext string) [][]byte {
	b.Helper()
	files, err := filepath.Glob("../../examples/articles/1*" + ext)
	if err != nil || len(files) == 0 {
		b.Fatalf("no examples %s: %v", ext, err)
	}
	var all [][]byte
	for _, f := range files {
		content, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, content)
	}
	return all
}

// records are the plain examples as JSON: one object each.
func records(b *testing.B) [][]byte {
	var all [][]byte
	for i, text := range corpus(b, ".txt") {
		record, err := json.Marshal(map[string]any{"id": i, "text": string(text), "tags": []string{"speech", "union"}, "author": map[string]string{"name": "x"}})
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, record)
	}
	return all
}

func benchmark(b *testing.B, declared string, documents [][]byte) {
	p := newParser(b)
	size := 0
	for _, d := range documents {
		size += len(d)
	}
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range documents {
			if _, err := p.Parse(context.Background(), Input{Content: d, DeclaredType: declared}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(documents))/b.Elapsed().Seconds(), "documents/s")
}

func BenchmarkPlain(b *testing.B)    { benchmark(b, "text/plain; charset=utf-8", corpus(b, ".txt")) }
func BenchmarkMarkdown(b *testing.B) { benchmark(b, TypeMarkdown, corpus(b, ".md")) }
func BenchmarkHTML(b *testing.B)     { benchmark(b, TypeHTML, corpus(b, ".html")) }
func BenchmarkJSON(b *testing.B)     { benchmark(b, TypeJSON, records(b)) }

func BenchmarkJSONLines(b *testing.B) {
	var lines strings.Builder
	for _, r := range records(b) {
		lines.Write(r)
		lines.WriteByte('\n')
	}
	benchmark(b, TypeJSONLines, [][]byte{[]byte(lines.String())})
}

// large are documents of several megabytes, or of 300 pages, of each format.
func large(b testing.TB) map[string][]byte {
	b.Helper()
	texts := corpus(b, ".txt")
	var prose strings.Builder
	for _, t := range texts {
		prose.Write(t)
		prose.WriteByte('\n')
	}
	paragraphs := slices.Repeat(strings.SplitAfter(prose.String(), ". "), 4)
	files := map[string][]byte{}
	var pdf parsetest.PDF
	for i := range 300 {
		at := i * 25 % (len(paragraphs) - 25)
		lines, _ := parsetest.Column(60, 780, 10, 95, strings.Join(paragraphs[at:at+25], " "))
		pdf.Pages = append(pdf.Pages, parsetest.PDFPage{Lines: lines})
	}
	files["300-pages.pdf"] = pdf.Bytes()
	var word, rtf, xml, csv strings.Builder
	rtf.WriteString(`{\rtf1\ansi `)
	xml.WriteString("<book>")
	csv.WriteString("Number,Sentence,Length\n")
	for i, s := range paragraphs {
		word.WriteString(parsetest.WordParagraph("", s))
		rtf.WriteString(strings.NewReplacer("{", "", "}", "", `\`, "").Replace(s) + `\par `)
		fmt.Fprintf(&xml, "<p>%s</p>\n", html.EscapeString(s))
		fmt.Fprintf(&csv, "%d,%q,%d\n", i, s, len(s))
	}
	files["large.docx"] = parsetest.Word(word.String())
	files["large.rtf"] = []byte(rtf.String() + "}")
	files["large.xml"] = []byte(xml.String() + "</book>")
	files["large.csv"] = []byte(csv.String())
	var rows [][]any
	for i := range 20_000 {
		rows = append(rows, []any{i, paragraphs[i%len(paragraphs)], float64(i) / 7, "a word"})
	}
	files["20000-rows.xlsx"] = workbook(b, map[string][][]any{"Data": rows}, "Data")
	files["large.eml"] = []byte(mailHeaders + "Subject: x\r\n" + multi("mixed", "b", part("Content-Type: text/plain", prose.String()),
		part("Content-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=a.txt", base64Lines([]byte(prose.String())))))
	chapter := "<html><body><p>" + strings.Join(paragraphs, "</p><p>") + "</p></body></html>"
	// With the namespaces that other readers of books insist on.
	files["large.epub"] = epub(parsetest.File{Name: "OEBPS/c.xhtml", Content: strings.Replace(chapter, "<html>", "<html xmlns='http://www.w3.org/1999/xhtml'>", 1)},
		parsetest.File{Name: "META-INF/container.xml", Content: "<container xmlns='urn:oasis:names:tc:opendocument:xmlns:container' version='1.0'><rootfiles>" +
			"<rootfile full-path='OEBPS/book.opf' media-type='application/oebps-package+xml'/></rootfiles></container>"},
		parsetest.File{Name: "OEBPS/book.opf", Content: "<package xmlns='http://www.idpf.org/2007/opf' version='3.0'><metadata xmlns:dc='http://purl.org/dc/elements/1.1/'><dc:title>Large</dc:title></metadata>" +
			"<manifest><item id='c' href='c.xhtml' media-type='application/xhtml+xml'/></manifest><spine><itemref idref='c'/></spine></package>"})
	shapes := make([]string, 300)
	for i := range shapes {
		shapes[i] = parsetest.SlideShape("title", fmt.Sprint("Slide ", i)) + parsetest.SlideShape("", paragraphs[i*20:i*20+20]...)
	}
	files["300-slides.pptx"] = parsetest.Slides(shapes, nil)
	files["large.html"] = []byte("<!doctype html><html><head><title>Large</title></head><body><main><p>" + strings.Join(paragraphs, "</p><p>") + "</p></main></body></html>")
	files["source.go"] = []byte(strings.Repeat("func a() {\n\tif b {\n\t\tc()\n\t}\n}\n\n", 50_000))
	return files
}

// BenchmarkFormats reads large documents; with KEEP_FILES set to a folder it leaves them there, for other programs.
func BenchmarkFormats(b *testing.B) {
	for name, content := range large(b) {
		if dir := os.Getenv("KEEP_FILES"); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name, func(b *testing.B) {
			p := newParser(b)
			in := Input{Content: content, Name: name}
			text, err := p.Parse(context.Background(), in) // PDFium is ready behind it
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(content)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Parse(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(text.Body))*float64(b.N)/1e6/b.Elapsed().Seconds(), "text-MB/s")
		})
	}
}
