package parse

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// corpus is the content of the examples with one extension.
func corpus(b *testing.B, ext string) [][]byte {
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
