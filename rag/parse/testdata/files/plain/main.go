// Plain writes a PDF document of one page to standard output.
package main

import (
	"fmt"
	"os"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

func main() {
	lines, _ := parsetest.Column(60, 760, 11, 80, "The Rhine rises in the Alps and ends in the North Sea.")
	if _, err := os.Stdout.Write(parsetest.PDF{Pages: []parsetest.PDFPage{{Lines: lines}}}.Bytes()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
