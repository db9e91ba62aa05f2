// Command makescan writes the two pages that become the pictures of examples/ocr, as a PDF document.
package main

import (
	"fmt"
	"os"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

func main() {
	first, _ := parsetest.Column(70, 380, 14, 60, "Notice to mariners",
		"The lighthouse at the mouth of the river is dark from the first of October. Vessels keep to the northern channel until further notice.")
	second, _ := parsetest.Column(70, 380, 14, 60, "The ferry runs every forty minutes and takes bicycles without charge.")
	document := parsetest.PDF{Title: "Notice", Pages: []parsetest.PDFPage{{Lines: first}, {Lines: second}}}
	if _, err := os.Stdout.Write(document.Bytes()); err != nil {
		fmt.Fprintf(os.Stderr, "makescan: %v\n", err)
		os.Exit(1)
	}
}
