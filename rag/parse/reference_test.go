package parse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// reference reads a file with the usual tool of its format; "" if there is none.
func reference(t *testing.T, path string) (tool, text string) {
	t.Helper()
	out := t.TempDir()
	office := func(kind string) []string {
		return []string{"soffice", "--headless", "-env:UserInstallation=file://" + filepath.Join(out, "profile"), "--convert-to", kind, "--outdir", out, path}
	}
	var command []string
	made := ""
	switch filepath.Ext(path) {
	case ".pdf":
		tool, command = "pdftotext", []string{"pdftotext", "-enc", "UTF-8", path, "-"}
	case ".docx", ".epub", ".html":
		tool, command = "pandoc", []string{"pandoc", "-t", "plain", "--wrap=none", path}
	case ".rtf":
		tool, command, made = "LibreOffice", office("txt:Text (encoded):UTF8"), "txt"
	case ".xlsx":
		tool, command, made = "LibreOffice", office("csv:Text - txt - csv (StarCalc):44,34,76"), "csv"
	default:
		return "", ""
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		t.Fatalf("%s is needed (Debian: poppler-utils, pandoc, libreoffice-writer-nogui, libreoffice-calc-nogui)", command[0])
	}
	b, err := exec.CommandContext(t.Context(), command[0], command[1:]...).Output()
	if made != "" {
		b, err = os.ReadFile(filepath.Join(out, strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))+"."+made))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return tool, "" // it cannot read it
	}
	if err != nil {
		t.Fatal(err)
	}
	return tool, string(b)
}

// TestF1AgainstReferences writes a table for docs/formats.md: how much of the text of the difficult documents, and of examples,
// Waymark and the usual tools find.
func TestF1AgainstReferences(t *testing.T) {
	if os.Getenv("WAYMARK_F1") == "" {
		t.Skip("NOT RUN: WAYMARK_F1 is not set; `make f1` sets it")
	}
	var table strings.Builder
	table.WriteString("| document | Waymark | in order | tool | the tool's | between both |\n|---|---|---|---|---|---|\n")
	row := func(path, want string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := newParser(t).Parse(context.Background(), Input{Content: content, Name: filepath.Base(path)})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		tool, other := reference(t, path)
		cells := []string{filepath.Base(path), "", "", tool, "", ""}
		if want != "" {
			cells[1], cells[2] = fmt.Sprintf("%.3f", f1(text.Body, want)), fmt.Sprintf("%.3f", ordered(text.Body, want))
		}
		if tool != "" && want != "" {
			cells[4] = fmt.Sprintf("%.3f", f1(other, want))
		}
		if tool != "" {
			cells[5] = fmt.Sprintf("%.3f", f1(text.Body, other))
		}
		table.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	files := hardFiles(t)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		row(filepath.Join("testdata/hard", name), files[name])
	}
	for _, pattern := range []string{"*.pdf", "*.docx", "1*.html"} {
		paths, err := filepath.Glob("../../examples/articles/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths[:min(len(paths), 3)] {
			if filepath.Base(path) != "scan.pdf" {
				row(path, "")
			}
		}
	}
	fmt.Print(table.String())
}
