package config

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

const parsersFile = `
splitting: {tokens: 100}
parsers:
  - {types: [image/png, application/pdf], when: no_text, command: [ocr, --fast], memory: 512}
  - types: [application/msword]
    url: http://127.0.0.1:9000/parse
`

func loadText(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "waymark.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(Sources{File: name, Environ: environ}, Target{Command: CommandUp})
}

func TestParsersAreReadFromFilesAndVariables(t *testing.T) {
	want := []Parser{
		{Types: []string{"image/png", "application/pdf"}, When: "no_text", Command: []string{"ocr", "--fast"}, Memory: 512},
		{Types: []string{"application/msword"}, URL: "http://127.0.0.1:9000/parse"},
	}
	c, err := loadText(t, parsersFile)
	if err != nil || !reflect.DeepEqual(c.Parsers, want) {
		t.Fatalf("%+v, %v", c, err)
	}
	var printed bytes.Buffer
	if err := c.Print(&printed); err != nil {
		t.Fatal(err)
	}
	again, err := loadText(t, printed.String())
	if err != nil || !reflect.DeepEqual(again.Parsers, want) {
		t.Errorf("printed and read again: %+v, %v\n%s", again, err, printed.String())
	}
	c, err = loadText(t, "", `WAYMARK_PARSERS=[{types: [image/*], command: ["a, b"]}]`)
	if err != nil || !reflect.DeepEqual(c.Parsers, []Parser{{Types: []string{"image/*"}, Command: []string{"a, b"}}}) {
		t.Errorf("from a variable: %+v, %v", c, err)
	}
}

func TestParsersThatAreWrongAreNamed(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no list":       {"parsers: ocr", ":1: parsers: must be a list of parsers"},
		"unknown field": {"parsers: [{types: [a/b], command: [x], wen: always}]", ":1: parsers: parser 1: only types, when, command, url and memory"},
		"no field list": {"parsers:\n- {types: a/b, command: [x]}", ":2: parsers: parser 1: only types"},
		"twice wrong":   {"parsers: [{types: [a/b], command: [x]}, {when: never}]", "parser 2: types must name"},
		"again":         {"parsers: [{types: [a/b], command: [x]}, {when: never}]", `parser 2: when: "never"`},
	} {
		if _, err := loadText(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
