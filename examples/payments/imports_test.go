package main

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The application shows that the framework stands by itself: of this project it may import nothing else.
func TestTheFrameworkIsAllItNeeds(t *testing.T) {
	const project = "github.com/waymarkhq/waymark/"
	framework := []string{"checkpoint", "codecs", "engine", "kafka", "kafka/embedded", "kafka/kafkatest", "stage", "stage/stagetest"}
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %v: %v", files, err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if name, ours := strings.CutPrefix(path, project); ours && !slices.Contains(framework, name) {
				t.Errorf("%s imports %s", file, path)
			}
		}
	}
}
