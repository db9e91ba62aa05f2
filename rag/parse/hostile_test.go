package parse

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// hostile documents by type: each of n bytes, each something that a careless parser takes quadratic time, endless
// memory or a deep stack for.
var hostile = map[string]map[string]func(n int) string{
	TypeHTML: {
		"divs":            repeat("<div>", "x"),
		"open formatting": repeat("<b><i><font color=a>", "x"),
		"reopened":        repeat("<b><p>x", ""),
		"headings":        repeat("<h1>x", ""),
		"terms":           repeat("<dt>x", ""),
		"tables":          repeat("<table><tr><td>", "x"),
		"foster parents":  repeat("<table><b>x", ""),
		"attributes":      func(n int) string { return "<div " + strings.Repeat("a ", n/2) + ">x" },
		"brackets":        repeat("<", "x"),
		"comments":        repeat("<!--", "x"),
		"end tags":        repeat("</div>", "x"),
		"references":      repeat("&amp", "x"),
		"lists":           repeat("<ul><li>", "x"),
		"paragraphs":      repeat("<p>word, word, word and more words here", ""),
		"pictures":        repeat("<svg><desc>", "x"),
	},
	TypeMarkdown: {
		"quotes":         repeat("> ", "x"),
		"lists":          repeat("- ", "x"),
		"numbers":        repeat("1. ", "x"),
		"emphasis":       repeat("_a*", ""),
		"brackets":       repeat("[", "x"),
		"links":          repeat("[a](", ""),
		"pictures":       repeat("![a](b", ""),
		"tags":           repeat("<a b=\"", ""),
		"code":           repeat("`a``", ""),
		"items":          repeat("- a\n", ""),
		"rows":           func(n int) string { return "|a|\n|-|\n" + strings.Repeat("|x|\n", n/4) },
		"marks in parts": repeat(strings.Repeat("_a*", 1300)+"\n\n", ""),
		"links in parts": repeat(strings.Repeat("[a](", 990)+"\n\n", ""),
		"footnotes":      repeat("x[^1]\n\n[^1]: y\n\n", ""),
		"definitions":    repeat("[a]: b\n\n", "x"),
		"paragraphs":     repeat("a\n\n", ""),
		"nested items": func(n int) string {
			var b strings.Builder
			for i := 0; b.Len() < n; i++ {
				b.WriteString(strings.Repeat(" ", 2*(i%100)) + "- a\n")
			}
			return b.String()
		},
	},
	TypeJSON: {
		"arrays":     repeat("[", ""),
		"numbers":    func(n int) string { return "[" + strings.Repeat("1,", n/2) + "1]" },
		"objects":    func(n int) string { return "[" + strings.Repeat(`{"a":1},`, n/8) + "1]" },
		"one string": func(n int) string { return `["` + strings.Repeat(`\u0041`, n/6) + `"]` },
		"long paths": func(n int) string {
			key := `{"` + strings.Repeat("k", 100) + `":`
			return strings.Repeat(key, 60) + "[" + strings.Repeat("[1],", n/4) + "1]" + strings.Repeat("}", 60)
		},
	},
	TypeJSONLines: {
		"lines": repeat("1\n", ""),
		"blank": repeat("\n", "1"),
	},
	TypeCSV: {
		"rows":      repeat("a\n", ""),
		"cells":     repeat("a,", "a\n1,2"),
		"quotes":    repeat("\"", "x"),
		"wide head": func(n int) string { return strings.Repeat("h,", 2000) + "h\n" + strings.Repeat("a,b\n", n/4) },
	},
	TypeXML: {
		"siblings":   func(n int) string { return "<a>" + strings.Repeat("<b>c</b>", n/8) + "</a>" },
		"mixed":      func(n int) string { return "<a>x" + strings.Repeat("<b>c</b> d", n/10) + "</a>" },
		"attributes": func(n int) string { return "<a><b " + strings.Repeat("c='d' ", n/6) + ">x</b></a>" },
		"pages":      func(n int) string { return "<a>" + strings.Repeat("<b><![CDATA[<p>c</p>]]></b>", n/27) + "</a>" },
	},
	TypeRTF: {
		"groups":     repeatIn(`{\rtf1 `, "{x}"),
		"paragraphs": repeatIn(`{\rtf1 `, `x\par `),
		"unicode":    repeatIn(`{\rtf1 `, `\u1076?`),
		"cells":      repeatIn(`{\rtf1 `, `\intbl x\cell\row `),
		"notes":      repeatIn(`{\rtf1 x`, `{\footnote y}`),
	},
	TypeMail: {
		"headers": repeatIn("From: a\nSubject: b\n", "X: y\n"),
		"words":   repeatIn("From: a\nSubject: ", "=?utf-8?q?a?= "),
		"parts":   repeatIn("From: a\nSubject: b\nContent-Type: multipart/mixed; boundary=b\n\n", "--b\n\nx\n"),
	},
	TypeSource: {
		"lines": repeat("a\n\n", ""),
	},
	TypePlain: {
		"paragraphs": repeat("a\n\n", ""),
		"bytes":      repeat("\xe4\xf6 ", ""),
		"NUL":        repeat("\x00a", ""),
	},
}

func repeat(s, end string) func(n int) string {
	return func(n int) string { return strings.Repeat(s, n/len(s)) + end }
}

func repeatIn(begin, s string) func(n int) string {
	return func(n int) string { return begin + strings.Repeat(s, n/len(s)) }
}

func TestHostileDocumentsTakeBoundedTimeAndMemory(t *testing.T) {
	const (
		size  = 64 << 10
		mostM = 100 // MB
	)
	p, err := New(Limits{Time: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ordinary := map[string]string{
		TypeHTML: "<p>Some <b>words</b> &amp; more.</p>\n", TypeMarkdown: "Some *words* & more.\n\n", TypePlain: "Some words.\n\n",
		TypeJSON: `{"some": ["words", 1], "more": {"a": "b"}}`, TypeJSONLines: "{\"some\": \"words\"}\n",
		TypeCSV: "some,words,1\n", TypeXML: "<p>Some <b>words</b> &amp; more.</p>\n", TypeRTF: `Some {\b words}.\par `, TypeMail: "Some words.\n", TypeSource: "some words\n\n",
	}
	for kind, documents := range hostile {
		parse := func(content string) (time.Duration, uint64) {
			in := Input{Content: []byte(content), DeclaredType: kind}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := time.Now()
			text, err := p.Parse(context.Background(), in)
			took := time.Since(begin)
			runtime.ReadMemStats(&after)
			checkOutcome(t, text, err)
			// All that was ever allocated bounds what was in use at any time. It may be much more: with the race detector
			// sync.Pool drops what it is given at random, and each regular expression allocates its state again.
			used := after.TotalAlloc - before.TotalAlloc
			if used>>20 > mostM {
				used = peak(func() { _, _ = p.Parse(context.Background(), in) })
			}
			return took, used >> 20
		}
		base := strings.Repeat(ordinary[kind], size/len(ordinary[kind]))
		if kind == TypeJSON {
			base = "[" + strings.Repeat(ordinary[kind]+",", size/len(ordinary[kind])) + "1]"
		}
		switch kind {
		case TypeXML:
			base = "<a>" + base + "</a>"
		case TypeRTF:
			base = `{\rtf1 ` + base + "}"
		case TypeMail:
			base = "From: a\nSubject: b\n\n" + base
		}
		// Measured beside it, so that the load of the machine and the race detector tell on both. What is linear takes up
		// to ten times as long as an ordinary document, what is quadratic thousands of times.
		var limit time.Duration
		for range 5 {
			took, _ := parse(base)
			limit = max(limit, 300*took)
		}
		for name, document := range documents {
			took, mb := parse(document(size))
			if took > limit {
				t.Errorf("%s, %s: %v, an ordinary document at most %v", kind, name, took, limit/300)
			}
			if mb > mostM {
				t.Errorf("%s, %s: %d MB of memory", kind, name, mb)
			}
		}
	}
}

// peak is how many bytes of the heap more than before were in use while do ran: what is garbage is collected often.
func peak(do func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(10))
	runtime.GC()
	before := heapInUse()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	most := before
	for {
		select {
		case <-done:
			return max(most, heapInUse()) - before
		default:
			most = max(most, heapInUse())
			runtime.Gosched()
		}
	}
}

func heapInUse() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
