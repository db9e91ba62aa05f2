package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

// document writes a Word document of a heading, a long text and a list.
func document(t *testing.T) {
	t.Helper()
	sentence := "The Rhine rises in the Alps, flows north and ends in the sea. "
	folder(t, map[string]string{"rivers.docx": string(parsetest.Word(parsetest.WordParagraph("Title", "On rivers") +
		parsetest.WordParagraph("", strings.Repeat(sentence, 12)) + parsetest.WordItem(1, 0, "barges") + parsetest.WordItem(1, 0, "mills"))), "cut.docx": "PK\x03\x04"})
}

func TestParseShowsTextAndStructure(t *testing.T) {
	document(t)
	s := command("parse", "rivers.docx")
	if code := s.do(t); code != exitDone || s.err.String() != "" {
		t.Errorf("exit code %d, errors %q", code, s.err.String())
	}
	golden(t, "parse", s.out.String())
	s = command("parse", "--text", "rivers.docx")
	if code := s.do(t); code != exitDone || !strings.HasPrefix(s.out.String(), "On rivers\n\nThe Rhine") || !strings.HasSuffix(s.out.String(), "- mills\n") {
		t.Errorf("exit code %d, output %q", code, s.out.String())
	}
	s = command("parse", "--json", "rivers.docx")
	var p parsed
	if code := s.do(t); code != exitDone || json.Unmarshal([]byte(s.out.String()), &p) != nil || p.Title != "On rivers" || len(p.Blocks) != 3 || p.Blocks[0].Level != 1 || p.Warnings == nil {
		t.Errorf("exit code %d, output %s", code, s.out.String())
	}
}

// What the pipeline reads in windows, above the limit of a text that is held as a whole, is shown too.
func TestParseShowsLargeTexts(t *testing.T) {
	line := "The Rhine rises in the Alps, flows north through six countries and ends in the sea.\n\n"
	n := 26<<20/len(line) + 1
	folder(t, map[string]string{"large.txt": strings.Repeat(line, n)})
	s := command("parse", "large.txt")
	if code := s.do(t); code != exitDone {
		t.Fatalf("exit code %d, errors %q", code, s.err.String())
	}
	if got := strings.Count(s.out.String(), "] paragraph\n"); got != n || !strings.Contains(s.out.String(), "\nlanguage   en\n") {
		t.Errorf("%d paragraphs of %d; %.200q", got, n, s.out.String())
	}
}

// Their help names every setting that decides about what they show.
func TestParseAndSplitNameTheirSettings(t *testing.T) {
	for name, settings := range map[string][]string{
		"parse": {"parsers", "limits.parse_time", "limits.document_bytes"},
		"split": {"parsers", "limits.parse_time", "limits.document_bytes", "limits.chunks", "splitting.mode", "splitting.tokens", "splitting.overlap", "splitting.parent_tokens"},
	} {
		s := command(name, "--help")
		if code := s.do(t); code != exitDone {
			t.Fatalf("exit code %d", code)
		}
		for _, key := range settings {
			if !strings.Contains(s.out.String(), "--"+key+"=") {
				t.Errorf("%s --help does not name %s", name, key)
			}
		}
	}
}

func TestParseReadsStandardInputAsTheDeclaredType(t *testing.T) {
	s := command("parse", "--type", "text/html", "--text", "-")
	s.stdin = strings.NewReader("Some <b>words</b>")
	if code := s.do(t); code != exitDone || s.out.String() != "Some words\n" {
		t.Errorf("exit code %d, output %q", code, s.out.String())
	}
}

func TestSplitShowsChunks(t *testing.T) {
	document(t)
	s := command("split", "--splitting.tokens=60", "--splitting.overlap=20", "rivers.docx")
	if code := s.do(t); code != exitDone || s.err.String() != "" {
		t.Errorf("exit code %d, errors %q", code, s.err.String())
	}
	golden(t, "split", s.out.String())
	s = command("split", "--splitting.mode=sentence", "--splitting.tokens=20", "--splitting.overlap=0", "--splitting.parent_tokens=60", "rivers.docx")
	if code := s.do(t); code != exitDone || s.err.String() != "" {
		t.Errorf("exit code %d, errors %q", code, s.err.String())
	}
	golden(t, "split-parents", s.out.String())
	s = command("split", "--json", "rivers.docx")
	var c chunked
	if code := s.do(t); code != exitDone || json.Unmarshal([]byte(s.out.String()), &c) != nil || len(c.Chunks) != 1 || c.Chunks[0].Tokens == 0 || !strings.Contains(c.Settings, "tokens=200") {
		t.Errorf("exit code %d, output %s", code, s.out.String())
	}
}

func TestParseAndSplitSayWhyADocumentIsDead(t *testing.T) {
	document(t)
	for _, c := range []string{"parse cut.docx", "split cut.docx"} {
		s := command(strings.Fields(c)...)
		if code := s.do(t); code != exitDead || !strings.Contains(s.err.String(), "cut.docx: dead (broken_file): the document is damaged") {
			t.Errorf("%s: exit code %d, errors %q", c, code, s.err.String())
		}
	}
	s := command("split", "--limits.chunks=1", "--splitting.tokens=60", "--splitting.overlap=20", "rivers.docx")
	if code := s.do(t); code != exitDead || !strings.Contains(s.err.String(), "dead (too_many_chunks)") {
		t.Errorf("exit code %d, errors %q", code, s.err.String())
	}
	for line, want := range map[string]string{"parse none": "none: no such file", "split --splitting.tokens=1 cut.docx": "splitting.tokens", "parse": "expected \"<file>\""} {
		s := command(strings.Fields(line)...)
		if code := s.do(t); code == exitDone || code == exitDead || !strings.Contains(s.err.String(), want) {
			t.Errorf("%q: exit code %d, errors %q", line, code, s.err.String())
		}
	}
}
