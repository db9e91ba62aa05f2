package parse

import (
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
)

func TestJSONIsReadAsPathsAndValues(t *testing.T) {
	for _, c := range []struct{ name, source, want string }{
		{"members", `{"a": "x", "b": 1.50, "c": true}`, "list: a: x\nb: 1.50\nc: true\n"},
		{"nested", `{"a": {"b": {"c": "x"}, "d": "y"}, "e": "z"}`, "list: a.b.c: x\na.d: y\nlist: e: z\n"},
		{"array of values", `{"a": ["x", 1, false, "y"]}`, "list: a: x, 1, false, y\n"},
		{"array of objects", `[{"a": "x"}, {"a": "y"}]`, "list: [0].a: x\nlist: [1].a: y\n"},
		{"mixed array", `["x", {"a": "y"}, "z", ["w"]]`, "list: x\nlist: [1].a: y\nlist: z\nlist: [3]: w\n"},
		{"long elements", `["` + strings.Repeat("x", 81) + `", "y"]`, "list: [0]: " + strings.Repeat("x", 81) + "\ny\n"},
		{"matrix", `{"m": [[1, 2], [3, 4]]}`, "list: m[0]: 1, 2\nm[1]: 3, 4\n"},
		{"nothing said", `{"a": null, "b": "", "c": [], "d": {}, "e": "x"}`, "list: e: x\n"},
		{"lines in values", `{"a": "one\r\ntwo\n\nthree"}`, "list: a: one\ntwo\n\nthree\n"},
		{"one value", `["x"]`, "list: x\n"},
		{"odd keys", `{"a b": {"c\n\u0000d": "x"}, "": "y"}`, "list: a b.c d: x\nlist: y\n"},
		{"characters", `{"a": "x\u0000y\ud800z\ud83d\ude00"}`, "list: a: xy\ufffdz😀\n"},
	} {
		got := mustParse(t, Input{Content: []byte(c.source), DeclaredType: TypeJSON})
		if outline(got) != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, outline(got), c.want)
		}
	}
	if got := mustParse(t, Input{Content: []byte("\ufeff{\"title\": \"T\", \"a\": {\"title\": \"U\"}}")}); got.Title != "T" || got.Type != TypeJSON {
		t.Errorf("title is %q", got.Title)
	}
	if got := mustParse(t, Input{Content: []byte("42"), Name: "a.json"}); got.Body != "42" {
		t.Errorf("a number is %q", got.Body)
	}
}

func TestBrokenJSONSaysWhere(t *testing.T) {
	for source, want := range map[string]string{
		"{\"a\": 1,\n \"b\": tru": "line 2, column 10: it ends too early",
		"{\"a\": 1,\n \"ü\": x}":  "line 2, column 7: invalid character 'x'",
		"{\"a\": 1} 2":            "line 1, column 10: more follows",
		"{\"a\" 1}":               "line 1, column 6:",
		"[1, 2":                   "line 1, column 6: it ends too early",
		"{":                       "line 1, column 2: it ends too early",
	} {
		reason, message := reasonOf(t, Input{Content: []byte(source), Name: "a.json"})
		if reason != rag.ReasonBrokenJSON || !strings.Contains(message, want) {
			t.Errorf("%q: %s: %s", source, reason, message)
		}
	}
}

func TestJSONLinesAreBlocksThatKnowTheirLine(t *testing.T) {
	got := mustParse(t, Input{Content: []byte("{\"title\": \"x\"}\r\n\n[\"y\"]\n\"z\""), Name: "a.jsonl"})
	if want := "list: title: x\nlist: y\nlist: z\n"; outline(got) != want || got.Title != "" {
		t.Errorf("got %q, title %q", outline(got), got.Title)
	}
	for i, want := range []string{"line 1", "line 3", "line 4"} {
		if got.Blocks[i].Heading != want {
			t.Errorf("block %d is below %q", i, got.Blocks[i].Heading)
		}
	}
	reason, message := reasonOf(t, Input{Content: []byte("{\"a\": 1}\n\n{\"a\": }\n"), Name: "a.jsonl"})
	if reason != rag.ReasonBrokenJSON || !strings.Contains(message, "line 3") || !strings.Contains(message, "column 7") {
		t.Errorf("%s: %s", reason, message)
	}
}

func TestJSONLimits(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + "1" + strings.Repeat("]", n)) }
	if got := mustParse(t, Input{Content: deep(maxDepth), DeclaredType: TypeJSON}); !strings.HasSuffix(got.Body, ": 1") {
		t.Errorf("got %q", got.Body)
	}
	if reason, _ := reasonOf(t, Input{Content: deep(maxDepth + 1), DeclaredType: TypeJSON}); reason != rag.ReasonTooLarge {
		t.Errorf("one deeper: %s", reason)
	}
	long := strings.Repeat("k", 150)
	got := mustParse(t, Input{Content: []byte(`{"` + long + `": {"` + long + `": {"end": "x"}}}`)})
	if got.Body != "…"+strings.Repeat("k", 45)+"."+long+".end: x" {
		t.Errorf("a long path is %q", got.Body)
	}
	for _, source := range []string{"{}", "[]", "null", `{"a": null}`, `[[], {"b": " "}]`} {
		if reason, _ := reasonOf(t, Input{Content: []byte(source), DeclaredType: TypeJSON}); reason != rag.ReasonNoText {
			t.Errorf("%s: %s", source, reason)
		}
	}
}
