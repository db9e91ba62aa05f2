package e2e

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/checker"
	"github.com/waymarkhq/waymark/rag/parse/parsetest"
)

// poison writes a record that must die, as any producer may, and returns its message id.
func (w *world) poison() string {
	w.t.Helper()
	m := w.messageID()
	id := fmt.Sprintf("poison-%d", w.intn(5))
	w.produceAs(id, m, []byte(`{"text": "no end`))
	return m
}

// produceAs writes a document record as any producer may.
func (w *world) produceAs(id, messageID string, value []byte, headers ...kgo.RecordHeader) {
	w.t.Helper()
	headers = append([]kgo.RecordHeader{{Key: "message-id", Value: []byte(messageID)}}, headers...)
	produce(w.t, w.broker, &kgo.Record{Topic: w.topic("documents"), Key: []byte(id), Value: value, Headers: headers})
	w.accepted(id, messageID, false)
}

// deadly is a record that must die, and the reasons that fit.
type deadly struct {
	name    string
	key     []byte // nil: a usable one
	null    bool   // the key is null
	value   []byte
	kind    string // the content type; "" is the JSON of the API
	message string // the message id; "" is a usable one
	reasons []string
}

const (
	kindWord  = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	kindPDF   = "application/pdf"
	kindPlain = "text/plain"
)

// deadlies are all ways to be poison that a producer has.
func deadlies() []deadly {
	word := parsetest.Word(parsetest.WordParagraph("", "Some words."))
	return []deadly{
		{name: "broken JSON", value: []byte(`{"text": "no end`), reasons: []string{"broken_json"}},
		{name: "no JSON at all", value: []byte("\x00\x01\x02\xff"), reasons: []string{"broken_json"}},
		{name: "nothing", value: []byte{}, reasons: []string{"broken_json", "empty_text"}},
		{name: "deep JSON", value: []byte(`{"metadata": ` + strings.Repeat("[", 100_000)), reasons: []string{"broken_json", "invalid_field"}},
		{name: "invalid UTF-8", value: []byte("{\"text\": \"a\xff\xfeb\"}"), reasons: []string{"broken_json", "invalid_field"}},
		{name: "unknown field", value: []byte(`{"text": "a", "colour": "red"}`), reasons: []string{"unknown_field"}},
		{name: "another id", value: []byte(`{"id": "another", "text": "a"}`), reasons: []string{"id_mismatch"}},
		{name: "empty text", value: []byte(`{"text": ""}`), reasons: []string{"empty_text"}},
		{name: "blank text", value: []byte(" \n\t \n"), kind: kindPlain, reasons: []string{"no_text", "empty_text"}},
		{name: "huge key", key: bytes.Repeat([]byte("k"), 100<<10), value: []byte(`{"text": "a"}`), reasons: []string{"bad_key"}},
		{name: "key with a control character", key: []byte("a\x00b"), value: []byte(`{"text": "a"}`), reasons: []string{"bad_key"}},
		{name: "key in no encoding", key: []byte("a\xffb"), value: []byte(`{"text": "a"}`), reasons: []string{"bad_key"}},
		{name: "null key", null: true, value: []byte("a"), kind: kindPlain, reasons: []string{"no_key"}},
		{name: "null key and value", null: true, value: nil, reasons: []string{"no_key"}},
		{name: "huge message id", value: []byte(`{"text": "a"}`), message: strings.Repeat("m", 10<<10), reasons: []string{"bad_message_id"}},
		{name: "giant text", value: bytes.Repeat([]byte("A sentence of a giant text. "), 11<<20/28), kind: kindPlain, reasons: []string{"too_many_chunks", "timeout"}},
		{name: "one giant word", value: bytes.Repeat([]byte("a"), 8<<20), kind: kindPlain, reasons: []string{"too_many_chunks", "timeout"}},
		{name: "unknown type", value: []byte("\x7fELF\x02\x01\x01"), kind: "application/octet-stream", reasons: []string{"unsupported_type"}},
		{name: "half a zip", value: word[:len(word)/2], kind: kindWord, reasons: []string{"broken_file"}},
		{name: "zip bomb", value: parsetest.Word(parsetest.WordParagraph("", strings.Repeat("a ", 16<<20))), kind: kindWord, reasons: []string{"archive_bomb"}},
		{name: "no PDF", value: []byte("%PDF-1.7\n" + strings.Repeat("garbage ", 1000)), kind: kindPDF, reasons: []string{"broken_file"}},
		{name: "PDF bomb", value: pdfOf("<< /Length %d /Filter /FlateDecode >>", deflated(64<<20)), kind: kindPDF,
			reasons: []string{"memory", "timeout", "no_text", "scan_without_text", "broken_file", "archive_bomb", "too_large"}},
		{name: "PDF without end", value: pdfOf("<< /Length %d >>", []byte("/F0 Do"), 9), kind: kindPDF,
			reasons: []string{"timeout", "no_text", "scan_without_text", "memory", "broken_file"}},
	}
}

func (d deadly) unusable() bool { return d.null || d.key != nil || d.message != "" }

// deflated is n zeros, packed.
func deflated(n int) []byte {
	var b bytes.Buffer
	z, err := zlib.NewWriterLevel(&b, zlib.BestSpeed)
	if err != nil {
		panic(err)
	}
	zeros := make([]byte, 1<<20)
	for range n >> 20 {
		if _, err := z.Write(zeros); err != nil {
			panic(err)
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// pdfOf is a PDF with one page of the given content. With levels, each form on it draws ten of the next level: more than
// anybody can draw.
func pdfOf(dict string, content []byte, levels ...int) []byte {
	forms := 0
	if len(levels) > 0 {
		forms = levels[0]
	}
	var b bytes.Buffer
	var at []int
	object := func(body string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), body)
	}
	stream := func(dict string, data []byte) string {
		return fmt.Sprintf(dict, len(data)) + "\nstream\n" + string(data) + "\nendstream"
	}
	b.WriteString("%PDF-1.7\n")
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>")
	resources := "<< >>"
	if forms > 0 {
		resources = "<< /XObject << /F0 5 0 R >> >>"
	}
	object("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources " + resources + " >>")
	object(stream(dict, content))
	for i := range forms {
		next := fmt.Sprintf("/F%d", i+1)
		draw := strings.Repeat(next+" Do ", 10)
		resources := fmt.Sprintf("<< /XObject << %s %d 0 R >> >>", next, 6+i)
		if i == forms-1 {
			draw, resources = "0 0 m 10 10 l S", "<< >>"
		}
		object(stream("<< /Type /XObject /Subtype /Form /BBox [0 0 600 800] /Resources "+resources+" /Length %d >>", []byte(draw)))
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, o := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, xref)
	return b.Bytes()
}

// readDeadly is the meaning of the records of a run with deadlies: they tell by a header.
func readDeadly(r *kgo.Record) checker.Meaning {
	for _, h := range r.Headers {
		if h.Key == "deadly" {
			return checker.Meaning{Dies: true, NoID: string(h.Value) == "no id"}
		}
	}
	return checker.ReadJSON(r)
}
