package main

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"wrap": wrap}).Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{{.Address.Title}}: {{.Address.President}}</title>
<style>body { max-width: 40em; margin: auto } nav a { padding-right: 1em }</style>
<script>document.documentElement.className = "js";</script>
</head>
<body>
<nav>
{{- with .Before}}<a href="{{.File}}">{{.Title}}</a>{{end}}
{{- with .After}}<a href="{{.File}}">{{.Title}}</a>{{end -}}
</nav>
<article>
<h1>{{.Address.Title}}</h1>
<dl>
<dt>President</dt><dd>{{.Address.President}}</dd>
<dt>Date</dt><dd>{{.Address.Date}}</dd>
</dl>
<h2>{{.Address.President}} to the Congress, {{.Address.Date}}</h2>
{{- range .Paragraphs}}
<p>{{wrap .}}</p>
{{- end}}
</article>
<footer><a href="index.html">All addresses</a></footer>
</body>
</html>
`))

// view is what the template sees of an address.
type view struct{ Title, President, Date, File string }

func viewOf(a *address) *view {
	if a == nil {
		return nil
	}
	return &view{Title: a.title(), President: a.president, Date: a.date, File: a.file()}
}

// page is an address as an HTML page, with the navigation, styles and scripts that pages have.
func page(a address, before, after *address, paragraphs []string) (string, error) {
	var b strings.Builder
	err := pageTemplate.Execute(&b, struct {
		Address, Before, After *view
		Paragraphs             []string
	}{viewOf(&a), viewOf(before), viewOf(after), paragraphs})
	return b.String(), err
}

// escapes of the characters that Markdown would take for marks.
var escapes = strings.NewReplacer(`*`, `\*`, `_`, `\_`, `[`, `\[`, `]`, `\]`, `<`, `\<`, "`", "\\`")

// markdown is an address as a Markdown document with front matter.
func markdown(a address, paragraphs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "---\ntitle: \"%s: %s\"\n---\n\n# %s\n\n", a.title(), a.president, a.title())
	fmt.Fprintf(&b, "| President | Date |\n|---|---|\n| %s | %s |\n\n", a.president, a.date)
	fmt.Fprintf(&b, "## %s to the Congress, %s\n", a.president, a.date)
	for _, p := range paragraphs {
		fmt.Fprintf(&b, "\n%s\n", wrap(escapes.Replace(p)))
	}
	return b.String()
}

// typographic are the signs that the texts have and the font of a PDF document names otherwise.
var typographic = strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "–", "-", "…", "...", "\u00a0", " ")

// pdfDocument is an address as a PDF document: headings, a list of facts, and on each page a header and a footer.
func pdfDocument(a address, paragraphs []string) string {
	d := parsetest.PDF{Title: fmt.Sprintf("%s: %s", a.title(), a.president)}
	lines := []parsetest.PDFLine{{X: 70, Y: 750, Size: 20, Text: a.title()}, {X: 70, Y: 720, Size: 11, Text: "• President: " + a.president},
		{X: 70, Y: 706, Size: 11, Text: "• Date: " + a.date}, {X: 70, Y: 675, Size: 15, Text: a.president + " to the Congress, " + a.date}}
	y := 650.0
	turn := func() {
		n := len(d.Pages) + 1
		lines = append(lines, parsetest.PDFLine{X: 70, Y: 800, Size: 9, Text: "Addresses to the Congress"}, parsetest.PDFLine{X: 280, Y: 40, Size: 9, Text: fmt.Sprintf("Page %d", n)})
		d.Pages = append(d.Pages, parsetest.PDFPage{Lines: lines})
		lines, y = nil, 760
	}
	for _, p := range paragraphs {
		set, end := parsetest.Column(70, y, 11, 85, typographic.Replace(p))
		if end < 50 {
			turn()
			set, end = parsetest.Column(70, y, 11, 85, typographic.Replace(p))
		}
		lines, y = append(lines, set...), end
	}
	turn()
	return string(d.Bytes())
}

// wordDocument is an address as a Word document: headings, a table of facts, paragraphs.
func wordDocument(a address, paragraphs []string) string {
	cell := func(s string) string { return "<w:tc>" + parsetest.WordParagraph("", s) + "</w:tc>" }
	body := parsetest.WordParagraph("Heading1", a.title()) + "<w:tbl><w:tr>" + cell("President") + cell("Date") + "</w:tr><w:tr>" + cell(a.president) + cell(a.date) + "</w:tr></w:tbl>" +
		parsetest.WordParagraph("Heading2", fmt.Sprintf("%s to the Congress, %s", a.president, a.date))
	for _, p := range paragraphs {
		body += parsetest.WordParagraph("", p)
	}
	title := fmt.Sprintf(`<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>%s: %s</dc:title></cp:coreProperties>`, a.title(), a.president)
	return string(parsetest.Word(body, parsetest.File{Name: "docProps/core.xml", Content: title}))
}

// unreadable are the four documents that a pipeline must refuse, each for its own reason.
func unreadable() map[string][]byte {
	var report strings.Builder
	report.WriteString("{\n  \"report\": \"Addresses by year\",\n  \"rows\": [\n")
	for _, a := range addresses[:12] {
		fmt.Fprintf(&report, "    {\"year\": %d, \"president\": %q, \"file\": %q},\n", a.year, a.president, a.file())
	}
	report.WriteString("    {\"year\": 1802, \"president\": \"Thomas Jeff") // the rest is missing

	var portraits strings.Builder
	portraits.WriteString("<!DOCTYPE html>\n<html>\n<head><title>Portraits</title></head>\n<body>\n")
	for _, a := range addresses[:12] {
		fmt.Fprintf(&portraits, "<img src=\"portraits/%d.jpg\">\n", a.year)
	}
	portraits.WriteString("<script>for (const i of document.images) i.loading = \"lazy\";</script>\n</body>\n</html>\n")

	return map[string][]byte{
		"broken-report.json": []byte(report.String()),
		"portraits.html":     []byte(portraits.String()),
		"recording.dat":      noise(4096),
		"scan.pdf":           parsetest.PDF{Title: "A scanned letter", Pages: []parsetest.PDFPage{{Image: true}, {Image: true}}}.Bytes(),
	}
}

// noise are n bytes of no known type, the same each time.
func noise(n int) []byte {
	b := make([]byte, n)
	state := uint32(1790)
	for i := range b {
		state = state*1664525 + 1013904223
		b[i] = byte(state >> 24)
	}
	return b
}
