package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// A table stands between two lines of its file.
const (
	tableBegin   = "<!-- the table: make mutants WRITE=1 -->\n"
	outsideBegin = "<!-- the table: make mutants OUTSIDE=1 WRITE=1 -->\n"
	tableEnd     = "<!-- the end of the table -->\n"
)

// writeTable puts the results between the marks of a file. The rows of mutants that were not tried stay; those of mutants
// that were not caught, or are not in the catalogue any more, go.
func writeTable(name string, outside bool, results []result, catalogue []entry) error {
	begin := tableBegin
	if outside {
		begin = outsideBegin
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	_, after, ends := strings.Cut(rest, tableEnd)
	if !ok || !ends {
		return fmt.Errorf("writing the table: %s lacks a line %q or, behind it, %q", name, strings.TrimSpace(begin), strings.TrimSpace(tableEnd))
	}
	rows, _, _ := strings.Cut(rest, tableEnd)
	known := rowsOf(rows)
	for _, r := range results {
		known[string(r.entry.name)] = ""
		if r.err == nil {
			known[string(r.entry.name)] = rowsFor(r)
		}
	}
	text := before + begin + table(known, catalogue) + tableEnd + after
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

func table(rows map[string]string, catalogue []entry) string {
	var b strings.Builder
	b.WriteString("| mutant | what is wrong | caught by | in | with the words |\n|---|---|---|---|---|\n")
	for _, e := range catalogue {
		b.WriteString(rows[string(e.name)])
	}
	return b.String()
}

// rowFirst is the first row of a mutant; the rows below it have no name.
var rowFirst = regexp.MustCompile("^\\| `([a-z0-9_]+)` \\|")

// rowsOf takes a table apart, by mutant.
func rowsOf(table string) map[string]string {
	rows, name := map[string]string{}, ""
	for line := range strings.Lines(table) {
		if m := rowFirst.FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		if name != "" {
			rows[name] += line
		}
	}
	return rows
}

// rowsFor are the rows of one mutant.
func rowsFor(r result) string {
	var b strings.Builder
	name, what := fmt.Sprintf("`%s`", r.entry.name), r.entry.what
	for _, c := range r.caught {
		var tests []string
		for _, t := range c.report.tests {
			tests = append(tests, fmt.Sprintf("`%s`", t))
		}
		fmt.Fprintf(&b, "| %s | %s | `%s`: %s | %.1f s | %s |\n", name, what, c.by.pkg, few(tests), c.report.took.Seconds(), cell(c.report.says))
		name, what = "", ""
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
