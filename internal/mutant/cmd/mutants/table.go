package main

import (
	"fmt"
	"os"
	"strings"
)

// The table stands between these lines of its file.
const (
	tableBegin = "<!-- the table: make mutants WRITE=1 -->\n"
	tableEnd   = "<!-- the end of the table -->\n"
)

// writeTable puts the results between the marks of a file.
func writeTable(name string, results []result) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), tableBegin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !ok || !ends {
		return fmt.Errorf("writing the table: %s lacks a line %q or, behind it, %q", name, strings.TrimSpace(tableBegin), strings.TrimSpace(tableEnd))
	}
	text := before + tableBegin + table(results) + tableEnd + after
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func table(results []result) string {
	var b strings.Builder
	b.WriteString("| mutant | what is wrong | caught by | in | with the words |\n|---|---|---|---|---|\n")
	for _, r := range results {
		name, what := fmt.Sprintf("`%s`", r.entry.name), r.entry.what
		for _, c := range r.caught {
			var tests []string
			for _, t := range c.report.tests {
				tests = append(tests, fmt.Sprintf("`%s`", t))
			}
			fmt.Fprintf(&b, "| %s | %s | `%s`: %s | %.1f s | %s |\n", name, what, c.by.pkg, few(tests), c.report.took.Seconds(), cell(c.report.says))
			name, what = "", ""
		}
	}
	return b.String()
}

// few names the first of some tests.
func few(tests []string) string {
	const shown = 2
	if len(tests) <= shown {
		return strings.Join(tests, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(tests[:shown], ", "), len(tests)-shown)
}

// cell makes a text harmless in a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "`", "'", "[", `\[`).Replace(text)
}
