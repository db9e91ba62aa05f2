package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const folder = "../../articles"

func TestTheFolderHoldsWhatTheProgramWrites(t *testing.T) {
	want := map[string]bool{}
	for _, a := range addresses {
		want[a.file()] = true
	}
	for name, content := range unreadable() {
		want[name] = true
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s differs from what the program writes (%v)", name, err)
		}
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("%s is not written by the program", f.Name())
		}
		delete(want, f.Name())
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestRunWritesEveryFormatFromAPackage(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(source, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("Mr. Speaker, the state of *the* Union is <good> & sound. ", 40)
	for _, a := range addresses {
		name := strings.Replace(a.file()[:5], "-", "_", 1) + "somebody_n.txt"
		if err := os.WriteFile(filepath.Join(source, "data", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(source, target); err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if a.format == "pdf" || a.format == "docx" { // TestEveryArticleIsReadAndFourFail reads them
			continue
		}
		got, err := os.ReadFile(filepath.Join(target, a.file()))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"txt":  "the state of *the* Union is <good> & sound.",
			"html": "the state of *the* Union is &lt;good&gt; &amp; sound.",
			"md":   `the state of \*the\* Union is \<good> & sound.`,
		}[a.format]
		if n := strings.Count(strings.Join(strings.Fields(string(got)), " "), want); n != 40 {
			t.Errorf("%s has %d of 40 sentences: %.300s", a.file(), n, got)
		}
	}
	if err := run(t.TempDir(), target); err == nil {
		t.Error("a package without texts was accepted")
	}
}
