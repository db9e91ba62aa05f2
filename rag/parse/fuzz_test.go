package parse

import (
	"context"
	"testing"
	"time"
	"unicode/utf8"
)

// fuzzAs parses arbitrary content as one declared type.
func fuzzAs(f *testing.F, declared string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	p, err := New(Limits{Text: 1 << 20, Time: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		text, err := p.Parse(context.Background(), Input{Content: content, DeclaredType: declared})
		checkOutcome(t, text, err)
		again, errAgain := p.Parse(context.Background(), Input{Content: content, DeclaredType: declared})
		if again.Body != text.Body || again.Title != text.Title || len(again.Blocks) != len(text.Blocks) || (err == nil) != (errAgain == nil) {
			t.Fatalf("two readings differ: %+v and %+v", text, again)
		}
		if declared == "text/plain; charset=utf-8" && err == nil && utf8.Valid(content) && text.Body != string(content) {
			t.Fatalf("%q became %q", content, text.Body)
		}
	})
}

func FuzzPlain(f *testing.F) {
	fuzzAs(f, "text/plain; charset=utf-8", "one\n\ntwo", "\xff\xfea\x00", "\xef\xbb\xbfx", "a\x00b", "\x1b$B$9$Y$F\x1b(B")
}

func FuzzUndeclared(f *testing.F) {
	fuzzAs(f, "", "one", "%PDF-1.7", "<html>x", "{\"a\": 1}", "\xc2\xf1\xe5 \xeb\xfe\xe4\xe8", "a\x00b\x00", "PK\x03\x04", "<?xml version='1.0' encoding='big5'?><html>x")
}

func FuzzHTML(f *testing.F) {
	fuzzAs(f, "text/html; charset=utf-8",
		"<title>a</title><h1>b</h1><p>c<ul><li>d<table><tr><td>e<td>f</table></ul>", "<table><b><tr>x<p>y</table>", "<pre>\n a</pre><dl><dt>b<dd>c",
		"<nav>a</nav><svg><desc><p>b", "<!doctype html><plaintext>a", "<a><b></a>c<template>d</template><select><option>e")
}

func FuzzMarkdown(f *testing.F) {
	fuzzAs(f, "text/markdown; charset=utf-8",
		"---\ntitle: a\n---\n# b\n\n- c\n  1. d\n\n| e | f |\n|---|---|\n| g | h |", "> a\n> - b\n\n```\nc\n```", "[a]: b\n[a][] ![c](d) <e@f.g>",
		"a[^1]\n\n[^1]: b", "a\n: b", "<div>\n*a*\n</div>", "\\* &amp; `a` **b** ~~c~~")
}

func FuzzJSON(f *testing.F) {
	fuzzAs(f, TypeJSON, `{"a": {"b": [1, "c", {"d": null}]}}`, `[[[]]]`, `{"a": tru`, `"\ud800"`, `{"title": "t"} x`)
}

func FuzzJSONLines(f *testing.F) {
	fuzzAs(f, TypeJSONLines, "{\"a\": 1}\n\n[2]\n", "1\n2\r\n", "{\n}", "{\"a\": [\"b\"]}\n{")
}
