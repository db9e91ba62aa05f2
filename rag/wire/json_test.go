package wire_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
)

const textType = "text/plain; charset=utf-8"

func TestParseDocumentJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		json string
		want rag.Document
	}{
		"everything": {
			`{"id": "news-17", "text": "Grüße\n\u00e9 \ud83d\ude00", "title": "T", "source": "https://example.com/a?b=c",
			  "metadata": {"year": 2026, "lang": "en", "price": 1.50e+3, "draft": false, "empty": "", "eq": "a=b"}, "message_id": "m 1"}`,
			rag.Document{
				ID: "news-17", MessageID: "m 1", Title: "T", Source: "https://example.com/a?b=c",
				Content: []byte("Grüße\né 😀"), ContentType: textType,
				Metadata: rag.Metadata{"draft=false", "empty=", "eq=a=b", "lang=en", "price=1.50e+3", "year=2026"},
			},
		},
		"text alone":                    {`{"text":"x"}`, rag.Document{Content: []byte("x"), ContentType: textType}},
		"content with type":             {`{"content":"AP8=","content_type":"application/pdf"}`, rag.Document{Content: []byte{0, 255}, ContentType: "application/pdf"}},
		"content, no type":              {`{"content":"AP8="}`, rag.Document{Content: []byte{0, 255}}},
		"empty content":                 {`{"content":""}`, rag.Document{Content: []byte{}}},
		"empty metadata":                {`{"text":"x","metadata":{}}`, rag.Document{Content: []byte("x"), ContentType: textType}},
		"white space around":            {" \n{\"text\":\"x\"}\t ", rag.Document{Content: []byte("x"), ContentType: textType}},
		"braces in strings":             {`{"text":"` + strings.Repeat(`{[\"`, 200) + `"}`, rag.Document{Content: []byte(strings.Repeat(`{["`, 200)), ContentType: textType}},
		"an escaped backslash before u": {`{"text":"\\ud800"}`, rag.Document{Content: []byte(`\ud800`), ContentType: textType}},
		"id of 512 bytes":               {`{"id":"` + strings.Repeat("é", 256) + `","text":"x"}`, rag.Document{ID: strings.Repeat("é", 256), Content: []byte("x"), ContentType: textType}},
		"an entry of 1 KiB":             {`{"text":"x","metadata":{"k":"` + strings.Repeat("v", 1022) + `"}}`, rag.Document{Content: []byte("x"), ContentType: textType, Metadata: rag.Metadata{"k=" + strings.Repeat("v", 1022)}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.ParseDocumentJSON([]byte(tc.json), wire.DefaultLimits())
			if err != nil || !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got\n%+v (%v), want\n%+v", got, err, tc.want)
			}
		})
	}
}

func TestParseDocumentJSONRefuses(t *testing.T) {
	entries := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, tc := range map[string]struct{ json, reason, field string }{
		"nothing":                  {``, rag.ReasonBrokenJSON, ""},
		"null":                     {`null`, rag.ReasonBrokenJSON, ""},
		"an array":                 {`[{"text":"x"}]`, rag.ReasonBrokenJSON, ""},
		"a string":                 {`"text"`, rag.ReasonBrokenJSON, ""},
		"cut off":                  {`{"text":"x"`, rag.ReasonBrokenJSON, ""},
		"cut off in a string":      {`{"text":"x`, rag.ReasonBrokenJSON, ""},
		"a comma at the end":       {`{"text":"x",}`, rag.ReasonBrokenJSON, ""},
		"no comma":                 {`{"text":"x" "id":"y"}`, rag.ReasonBrokenJSON, ""},
		"no colon":                 {`{"text" "x"}`, rag.ReasonBrokenJSON, ""},
		"a name without quotes":    {`{text:"x"}`, rag.ReasonBrokenJSON, ""},
		"a number as name":         {`{1:"x"}`, rag.ReasonBrokenJSON, ""},
		"a bad escape":             {`{"text":"\x"}`, rag.ReasonBrokenJSON, ""},
		"a raw line break":         {"{\"text\":\"a\nb\"}", rag.ReasonBrokenJSON, ""},
		"not a number":             {`{"text":"x","metadata":{"a":NaN}}`, rag.ReasonBrokenJSON, ""},
		"a number that begins 0":   {`{"text":"x","metadata":{"a":01}}`, rag.ReasonBrokenJSON, ""},
		"a byte order mark":        {"\ufeff{\"text\":\"x\"}", rag.ReasonBrokenJSON, ""},
		"a second object":          {`{"text":"x"}{"text":"y"}`, rag.ReasonBrokenJSON, ""},
		"a brace behind":           {`{"text":"x"}}`, rag.ReasonBrokenJSON, ""},
		"invalid UTF-8":            {"{\"text\":\"a\xffb\"}", rag.ReasonBrokenJSON, ""},
		"UTF-8 of a surrogate":     {"{\"text\":\"\xed\xa0\x80\"}", rag.ReasonBrokenJSON, ""},
		"a high surrogate alone":   {`{"text":"\ud83d"}`, rag.ReasonBrokenJSON, ""},
		"a low surrogate alone":    {`{"text":"\ude00"}`, rag.ReasonBrokenJSON, ""},
		"two high surrogates":      {`{"text":"\ud83d\ud83d"}`, rag.ReasonBrokenJSON, ""},
		"a surrogate in a name":    {`{"text":"x","metadata":{"\udfff":1}}`, rag.ReasonBrokenJSON, ""},
		"nested too deep":          {`{"metadata":{"a":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}}`, rag.ReasonBrokenJSON, ""},
		"unknown field":            {`{"text":"x","txet":"y"}`, rag.ReasonUnknownField, "txet"},
		"names are exact":          {`{"Text":"x"}`, rag.ReasonUnknownField, "Text"},
		"unknown and nested":       {`{"a":{"b":[1,{"c":null}]},"text":"x"}`, rag.ReasonUnknownField, "a"},
		"doubled field":            {`{"text":"x","text":"x"}`, rag.ReasonInvalidField, "text"},
		"doubled by an escape":     {`{"text":"x","te\u0078t":"x"}`, rag.ReasonInvalidField, "text"},
		"doubled metadata":         {`{"text":"x","metadata":{},"metadata":{}}`, rag.ReasonInvalidField, "metadata"},
		"doubled key of metadata":  {`{"text":"x","metadata":{"a":1,"a":1}}`, rag.ReasonInvalidField, "metadata.a"},
		"text is a number":         {`{"text":1}`, rag.ReasonInvalidField, "text"},
		"text is null":             {`{"text":null}`, rag.ReasonInvalidField, "text"},
		"title is an object":       {`{"text":"x","title":{}}`, rag.ReasonInvalidField, "title"},
		"id is a number":           {`{"id":17,"text":"x"}`, rag.ReasonInvalidField, "id"},
		"id is null":               {`{"id":null,"text":"x"}`, rag.ReasonInvalidField, "id"},
		"id is empty":              {`{"id":"","text":"x"}`, rag.ReasonBadKey, "id"},
		"id is too long":           {`{"id":"` + strings.Repeat("a", 513) + `","text":"x"}`, rag.ReasonBadKey, "id"},
		"id has a control":         {`{"id":"a\u0000b","text":"x"}`, rag.ReasonBadKey, "id"},
		"id has a C1 control":      {`{"id":"a\u0085b","text":"x"}`, rag.ReasonBadKey, "id"},
		"message id is empty":      {`{"message_id":"","text":"x"}`, rag.ReasonBadMessageID, "message_id"},
		"message id is too long":   {`{"message_id":"` + strings.Repeat("a", 257) + `","text":"x"}`, rag.ReasonBadMessageID, "message_id"},
		"message id has a control": {`{"message_id":"a\n","text":"x"}`, rag.ReasonBadMessageID, "message_id"},
		"text and content":         {`{"text":"x","content":"eA=="}`, rag.ReasonInvalidField, "content"},
		"neither":                  {`{"id":"x"}`, rag.ReasonInvalidField, "text"},
		"empty text":               {`{"text":""}`, rag.ReasonEmptyText, "text"},
		"text with a type":         {`{"text":"x","content_type":"text/markdown"}`, rag.ReasonInvalidField, "content_type"},
		"type without content":     {`{"content_type":"text/markdown"}`, rag.ReasonInvalidField, "text"},
		"type with a line break":   {`{"content":"eA==","content_type":"a/b\r\nc"}`, rag.ReasonInvalidField, "content_type"},
		"no base64":                {`{"content":"not base64!"}`, rag.ReasonInvalidField, "content"},
		"base64 without padding":   {`{"content":"eA"}`, rag.ReasonInvalidField, "content"},
		"base64 for URLs":          {`{"content":"_-8="}`, rag.ReasonInvalidField, "content"},
		"base64 with loose bits":   {`{"content":"eB=="}`, rag.ReasonInvalidField, "content"},
		"metadata is an array":     {`{"text":"x","metadata":[1]}`, rag.ReasonInvalidField, "metadata"},
		"metadata is null":         {`{"text":"x","metadata":null}`, rag.ReasonInvalidField, "metadata"},
		"null in metadata":         {`{"text":"x","metadata":{"a":null}}`, rag.ReasonInvalidField, "metadata.a"},
		"an object in metadata":    {`{"text":"x","metadata":{"a":{"b":1}}}`, rag.ReasonInvalidField, "metadata.a"},
		"an array in metadata":     {`{"text":"x","metadata":{"a":[[1],2]}}`, rag.ReasonInvalidField, "metadata.a"},
		"an empty key":             {`{"text":"x","metadata":{"":1}}`, rag.ReasonInvalidField, "metadata."},
		"a key with =":             {`{"text":"x","metadata":{"a=b":1}}`, rag.ReasonInvalidField, "metadata.a=b"},
		"a key with a control":     {`{"text":"x","metadata":{"a\u0001":1}}`, rag.ReasonInvalidField, "metadata.a\x01"},
		"65 entries":               {`{"text":"x","metadata":{` + entries(65) + `}}`, rag.ReasonInvalidField, "metadata"},
		"an entry above 1 KiB":     {`{"text":"x","metadata":{"k":"` + strings.Repeat("v", 1023) + `"}}`, rag.ReasonInvalidField, "metadata.k"},
		"title above 8 KiB":        {`{"text":"x","title":"` + strings.Repeat("t", 8<<10+1) + `"}`, rag.ReasonInvalidField, "title"},
		"source above 8 KiB":       {`{"text":"x","source":"` + strings.Repeat("s", 8<<10+1) + `"}`, rag.ReasonInvalidField, "source"},
	} {
		t.Run(name, func(t *testing.T) {
			doc, err := wire.ParseDocumentJSON([]byte(tc.json), wire.Limits{})
			var f *wire.FieldError
			if !errors.As(err, &f) || f.Reason != tc.reason || f.Field != tc.field || f.Message == "" {
				t.Errorf("got %+v with %#v, want reason %q of field %q", doc, err, tc.reason, tc.field)
			}
		})
	}
	if _, err := wire.ParseDocumentJSON([]byte(`{"text":"x","metadata":{`+entries(64)+`}}`), wire.Limits{}); err != nil {
		t.Errorf("64 entries: %v", err)
	}
}

func TestDeepNestingIsRefusedWithoutRecursion(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		_, err := wire.ParseDocumentJSON([]byte(`{"metadata":`+strings.Repeat(open, 100_000)), wire.Limits{})
		var f *wire.FieldError
		if !errors.As(err, &f) || f.Reason != rag.ReasonBrokenJSON || !strings.Contains(f.Message, "nested deeper than 64") {
			t.Errorf("100,000 times %s: %v", open, err)
		}
	}
	deepest := `{"x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`
	if _, err := wire.ParseDocumentJSON([]byte(deepest), wire.Limits{}); err == nil || strings.Contains(err.Error(), "nested") {
		t.Errorf("64 deep is within the limit, but for %v", err)
	}
}

func TestLimitsOfTheCaller(t *testing.T) {
	for name, tc := range map[string]struct {
		lim    wire.Limits
		reason string
	}{
		"bytes":          {wire.Limits{Bytes: 20}, rag.ReasonTooLarge},
		"depth":          {wire.Limits{Depth: 1}, rag.ReasonBrokenJSON},
		"metadata":       {wire.Limits{Metadata: 1}, rag.ReasonInvalidField},
		"metadata bytes": {wire.Limits{MetadataBytes: 4}, rag.ReasonInvalidField},
		"title bytes":    {wire.Limits{TitleBytes: 2}, rag.ReasonInvalidField},
		"source bytes":   {wire.Limits{SourceBytes: 2}, rag.ReasonInvalidField},
	} {
		const doc = `{"text":"x","title":"abc","source":"abc","metadata":{"a":"bcd","e":1}}`
		_, err := wire.ParseDocumentJSON([]byte(doc), tc.lim)
		var f *wire.FieldError
		if !errors.As(err, &f) || f.Reason != tc.reason {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIDsOfARefusedDocumentAreKnown(t *testing.T) {
	for _, tc := range []struct{ json, id, messageID string }{
		{`{"txet":{"a":[1]},"metadata":{"a":null,"b":[{}]},"message_id":"m","id":"d"}`, "d", "m"},
		{`{"id":"d","message_id":"a\u0000"}`, "d", ""},
		{`{"id":"","message_id":"m"}`, "", "m"},
		{`{"id":"d","message_id":"m","text":"x"`, "", ""}, // nothing of a broken JSON can be trusted
	} {
		doc, err := wire.ParseDocumentJSON([]byte(tc.json), wire.Limits{})
		if want := (rag.Document{ID: tc.id, MessageID: tc.messageID}); err == nil || !reflect.DeepEqual(doc, want) {
			t.Errorf("%s: %+v, %v", tc.json, doc, err)
		}
	}
}

func TestNamesFromOutsideAreCutInErrors(t *testing.T) {
	_, err := wire.ParseDocumentJSON([]byte(`{"`+strings.Repeat("é", 1<<20)+`":1}`), wire.Limits{})
	var f *wire.FieldError
	if !errors.As(err, &f) || len(f.Field) > 100 || !strings.HasPrefix(f.Field, "éé") {
		t.Errorf("error is %.200v", err)
	}
}

// submissions draws documents that keep the limits.
func submissions() *rapid.Generator[rag.Document] {
	id := rapid.StringMatching(`[a-zA-Z0-9/._| é😀-]{1,40}`)
	return rapid.Custom(func(t *rapid.T) rag.Document {
		d := rag.Document{
			ID:        id.Draw(t, "id"),
			MessageID: id.Draw(t, "message id"),
			Title:     rapid.String().Draw(t, "title"),
			Source:    rapid.String().Draw(t, "source"),
			Metadata: rag.NewMetadata(rapid.MapOfN(
				rapid.StringMatching(`[a-z.é "\\]{1,10}`), rapid.String(), 0, 4).Draw(t, "metadata")),
		}
		if rapid.Bool().Draw(t, "as text") {
			d.Content, d.ContentType = []byte(rapid.StringN(1, -1, -1).Draw(t, "text")), textType
			return d
		}
		d.Content = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "content")...)
		d.ContentType = rapid.SampledFrom([]string{"", textType, "application/pdf", "application/json", "text/html; charset=latin1", "nonsense", "a/b;"}).Draw(t, "type")
		return d
	})
}

func TestDocumentJSONRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := submissions().Draw(t, "document")
		b := wire.EncodeDocumentJSON(want)
		got, err := wire.ParseDocumentJSON(b, wire.Limits{})
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s gives\n%+v (%v), want\n%+v", b, got, err, want)
		}
		if got.SubmissionHash() != want.SubmissionHash() {
			t.Fatal("the submission hash has changed")
		}
	})
	if b := wire.EncodeDocumentJSON(rag.Document{ID: "d", Delete: true}); b != nil {
		t.Errorf("a delete has the JSON %s", b)
	}
}

func TestHTMLDoesNotGrow(t *testing.T) {
	text := strings.Repeat("<p>&amp;</p>", 100)
	if b := wire.EncodeDocumentJSON(rag.Document{Content: []byte(text), ContentType: textType}); len(b) > len(text)+20 {
		t.Errorf("%d bytes of text become %d", len(text), len(b))
	}
}

func FuzzParseDocumentJSON(f *testing.F) {
	for _, s := range []string{
		`{"id":"news-17","text":"x","title":"t","source":"s","metadata":{"lang":"en","year":2026,"b":true},"message_id":"m"}`,
		`{"content":"AP8=","content_type":"application/pdf"}`, `{"text":"\ud83d\ude00"}`, `{"text":"\ud83d"}`, `{"a":[{}]}`, `[]`, ``,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		doc, err := wire.ParseDocumentJSON(b, wire.Limits{})
		if err != nil {
			var e *wire.FieldError
			if !errors.As(err, &e) || e.Reason == "" || e.Message == "" {
				t.Fatalf("error is %#v", err)
			}
			if e.Reason == rag.ReasonBrokenJSON && doc.ID+doc.MessageID != "" {
				t.Fatalf("ids %q and %q of a broken JSON", doc.ID, doc.MessageID)
			}
			return
		}
		if !json.Valid(b) {
			t.Fatalf("%q is no JSON and was read as %+v", b, doc)
		}
		again, err := wire.ParseDocumentJSON(wire.EncodeDocumentJSON(doc), wire.Limits{})
		if err != nil || again.SubmissionHash() != doc.SubmissionHash() || again.ID != doc.ID || again.MessageID != doc.MessageID {
			t.Fatalf("%+v is read back as %+v (%v)", doc, again, err)
		}
	})
}
