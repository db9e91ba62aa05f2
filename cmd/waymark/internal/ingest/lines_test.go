package ingest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/client"
	"github.com/waymarkhq/waymark/cmd/waymark/internal/ingest"
)

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 40)
	for _, tc := range []struct {
		text  string
		lines []string
		errs  int
	}{
		{"", nil, 0}, {"\n\n \t\r\n", nil, 0}, {"a", []string{"a"}, 0}, {"a\n", []string{"a"}, 0}, {"a\r\nb", []string{"a", "b"}, 0},
		{"\xef\xbb\xbfa\nb", []string{"a", "b"}, 0}, {long + "\na", []string{long, "a"}, 0},
		{"a\n" + long + "y\nb\n", []string{"a", "b"}, 1}, {long + "yz", nil, 1}, {long + "y", []string{long + "y"}, 0}, {long + "yyy\n" + long + "yyy", nil, 2},
	} {
		lines, errs := ingest.Lines(strings.NewReader(tc.text), 41)
		if !slices.Equal(lines, tc.lines) || len(errs) != tc.errs {
			t.Errorf("%q: got %q, %v", tc.text, lines, errs)
		}
	}
}

func TestPrepare(t *testing.T) {
	for _, tc := range []struct {
		line, want string
		key        client.WaitFor
	}{
		{`{"text":"x"}`, `{"id":"D","message_id":"M","text":"x"}`, client.WaitFor{MessageID: "M", DocumentID: "D"}},
		{`{ "id": "a", "text":"x"}`, `{"message_id":"M", "id": "a", "text":"x"}`, client.WaitFor{MessageID: "M", DocumentID: "a"}},
		{`{"id":"a","message_id":"b"}`, `{"id":"a","message_id":"b"}`, client.WaitFor{MessageID: "b", DocumentID: "a"}},
		{`{}`, `{"id":"D","message_id":"M"}`, client.WaitFor{MessageID: "M", DocumentID: "D"}},
		{`{ }`, `{"id":"D","message_id":"M" }`, client.WaitFor{MessageID: "M", DocumentID: "D"}},
		// Names are exact, and what is wrong stays for the API to refuse.
		{`{"ID":"a"}`, `{"id":"D","message_id":"M","ID":"a"}`, client.WaitFor{MessageID: "M", DocumentID: "D"}},
		{`{"id":7,"message_id":"b"}`, `{"id":7,"message_id":"b"}`, client.WaitFor{MessageID: "b"}},
		{`{"id":""}`, `{"message_id":"M","id":""}`, client.WaitFor{MessageID: "M"}},
		{`{"id":`, `{"id":`, client.WaitFor{}},
		{`[1]`, `[1]`, client.WaitFor{}},
		{`null`, `null`, client.WaitFor{}},
	} {
		got, key := ingest.Prepare([]byte(tc.line), "D", "M")
		if string(got) != tc.want || key != tc.key {
			t.Errorf("%s: got %s, %+v", tc.line, got, key)
		}
	}
}

func TestPrepareLeavesEverythingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		document := rapid.MapOf(rapid.SampledFrom([]string{"id", "text", "title", "message_id", "x"}), rapid.String()).Draw(t, "document")
		line, err := json.Marshal(document)
		if err != nil {
			t.Fatal(err)
		}
		got, key := ingest.Prepare(line, `d"é`, "m")
		var after map[string]string
		if err := json.Unmarshal(got, &after); err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		for name, fallback := range map[string]string{"id": `d"é`, "message_id": "m"} {
			if _, there := document[name]; !there {
				document[name] = fallback
			}
		}
		if len(after) != len(document) || after["id"] != key.DocumentID || after["message_id"] != key.MessageID {
			t.Fatalf("got %v with %+v, want %v", after, key, document)
		}
		for name, value := range document {
			if after[name] != strings.ToValidUTF8(value, "\ufffd") {
				t.Fatalf("%s is %q, want %q", name, after[name], value)
			}
		}
	})
}

func FuzzPrepare(f *testing.F) {
	for _, seed := range []string{`{}`, `{"id":"a"}`, `{"id":{"id":1}}`, ` {"a":1}`, `{"a"`, "\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		line = []byte(strings.TrimSpace(string(line)))
		got, _ := ingest.Prepare(line, "D", "M")
		if json.Valid(line) != json.Valid(got) {
			t.Errorf("%q became %q", line, got)
		}
	})
}

func TestLineID(t *testing.T) {
	if got := ingest.LineID("docs.jsonl", 12); got != "docs.jsonl#12" {
		t.Errorf("got %q", got)
	}
	if got := ingest.LineID(strings.Repeat("x", 511), 1); got != "another" {
		t.Errorf("got %q", got)
	}
}

func TestCountLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.jsonl")
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\n\nb": 2, "\n\n": 0, strings.Repeat("ab\n", 300_000): 300_000, strings.Repeat("x", 600_000): 1} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ingest.CountLines(path); got != want {
			t.Errorf("%.20q: got %d, want %d", text, got, want)
		}
	}
	if got := ingest.CountLines(path + "x"); got != 0 {
		t.Errorf("a missing file has %d lines", got)
	}
}
