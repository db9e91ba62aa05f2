package wire_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

var place = rag.Position{Topic: "waymark.documents", Epoch: 2, Partition: 3, Offset: 45}

const foreign = "waymark.documents@2-3-45"

// headers makes headers of pairs.
func headers(pairs ...string) []stage.Header {
	var hs []stage.Header
	for i := 0; i < len(pairs); i += 2 {
		hs = append(hs, stage.Header{Key: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return hs
}

func TestDecodeDocument(t *testing.T) {
	text := func(id, messageID, content string) rag.Document {
		return rag.Document{ID: id, MessageID: messageID, Content: []byte(content), ContentType: textType}
	}
	raw := func(content, contentType string) rag.Document {
		return rag.Document{ID: "d", MessageID: foreign, Content: []byte(content), ContentType: contentType}
	}
	json := `{"text":"x"}`
	for name, tc := range map[string]struct {
		value   string
		headers []stage.Header
		want    rag.Document
	}{
		"JSON without headers":                 {json, nil, text("d", foreign, "x")},
		"JSON with its id":                     {`{"id":"d","text":"x"}`, nil, text("d", foreign, "x")},
		"JSON by its type":                     {json, headers("content-type", "application/json"), text("d", foreign, "x")},
		"JSON by its type, written otherwise":  {json, headers("content-type", "Application/JSON; charset=utf-8"), text("d", foreign, "x")},
		"JSON by an old type":                  {json, headers("content-type", "text/json"), text("d", foreign, "x")},
		"JSON with a broken parameter":         {json, headers("content-type", "application/json; charset"), text("d", foreign, "x")},
		"JSON by the CloudEvents' type":        {json, headers("ce_datacontenttype", "application/json"), text("d", foreign, "x")},
		"an empty type is missing":             {json, headers("content-type", ""), text("d", foreign, "x")},
		"an unrelated header":                  {json, headers("traceparent", "00-x"), text("d", foreign, "x")},
		"message id in the header":             {json, headers("message-id", "m"), text("d", "m", "x")},
		"message id in the field":              {`{"text":"x","message_id":"f"}`, nil, text("d", "f", "x")},
		"the header wins over the field":       {`{"text":"x","message_id":"f"}`, headers("message-id", "m"), text("d", "m", "x")},
		"message id of CloudEvents":            {json, headers("ce_source", "/shop|a", "ce_id", "7|8"), text("d", "/shop%7Ca|7|8", "x")},
		"the field wins over CloudEvents":      {`{"text":"x","message_id":"f"}`, headers("ce_source", "s", "ce_id", "i"), text("d", "f", "x")},
		"the header wins over bad CloudEvents": {json, headers("ce_source", "s\n", "ce_id", "i", "message-id", "m"), text("d", "m", "x")},
		"half of CloudEvents is nothing":       {json, headers("ce_source", "s", "ce_id", ""), text("d", foreign, "x")},
		"the first of doubled headers counts":  {json, headers("message-id", "m", "message-id", "n", "content-type", "application/json", "content-type", "text/html"), text("d", "m", "x")},
		"own bytes":                            {"<p>", headers("content-type", "text/html"), raw("<p>", "text/html")},
		"own bytes, type of CloudEvents":       {"<p>", headers("ce_datacontenttype", "text/html"), raw("<p>", "text/html")},
		"the type wins over CloudEvents":       {"<p>", headers("ce_datacontenttype", "application/json", "content-type", "text/html"), raw("<p>", "text/html")},
		"own bytes that are JSON inside":       {`{"@id":1}`, headers("content-type", "application/ld+json"), raw(`{"@id":1}`, "application/ld+json")},
		"own bytes of a type that is none":     {"x", headers("content-type", "no type at all"), raw("x", "no type at all")},
		"an empty document":                    {"", headers("content-type", "text/html"), raw("", "text/html")},
		"a JSON file":                          {json, headers("content-type", "application/json", "waymark-raw", "true"), raw(json, "application/json")},
		"own bytes of an undeclared type":      {json, headers("waymark-raw", "true"), raw(json, "")},
		"raw has one spelling":                 {json, headers("waymark-raw", "1"), text("d", foreign, "x")},
	} {
		t.Run(name, func(t *testing.T) {
			r := stage.Record{Key: []byte("d"), Value: []byte(tc.value), Headers: tc.headers}
			got, reject := wire.DecodeDocument(r, place)
			if reject != nil || got.Rekey || !reflect.DeepEqual(got.Document, tc.want) {
				t.Errorf("got %+v, %+v, want %+v", got, reject, tc.want)
			}
		})
	}
}

func TestTitleAndSource(t *testing.T) {
	hs := headers("title", "T", "source", "S", "title", "second")
	for name, tc := range map[string]struct{ value, title, source string }{
		"headers of own bytes":    {"", "T", "S"},
		"JSON wins":               {`{"text":"x","title":"t","source":"s"}`, "t", "s"},
		"headers fill what lacks": {`{"text":"x","title":"t"}`, "t", "S"},
	} {
		r := stage.Record{Key: []byte("d"), Value: []byte(tc.value), Headers: hs}
		if tc.value == "" {
			r.Headers = append(headers("content-type", "text/html"), hs...)
		}
		got, reject := wire.DecodeDocument(r, place)
		if reject != nil || got.Title != tc.title || got.Source != tc.source {
			t.Errorf("%s: title %q, source %q, %+v", name, got.Title, got.Source, reject)
		}
	}
}

func TestNullValueDeletes(t *testing.T) {
	for _, hs := range [][]stage.Header{headers("message-id", "m"), headers("message-id", "m", "content-type", "text/html", "title", "T")} {
		got, reject := wire.DecodeDocument(stage.Record{Key: []byte("d"), Headers: hs}, place)
		if want := (rag.Document{ID: "d", MessageID: "m", Delete: true}); reject != nil || got.MessageID != "m" || !got.Delete || got.ID != want.ID || got.Content != nil {
			t.Errorf("got %+v, %+v", got, reject)
		}
	}
	got, reject := wire.DecodeDocument(stage.Record{Key: []byte("d")}, place)
	if want := (rag.Document{ID: "d", MessageID: foreign, Delete: true}); reject != nil || !reflect.DeepEqual(got.Document, want) {
		t.Errorf("got %+v, %+v", got, reject)
	}
}

func TestDecodeDocumentRejects(t *testing.T) {
	str := func(s string) *string { return &s }
	json := str(`{"text":"x"}`)
	html := headers("content-type", "text/html")
	for name, tc := range map[string]struct {
		key, value     *string
		headers        []stage.Header
		reason         string
		document, msg  string
		messageMention string
	}{
		"null key, null value":         {nil, nil, nil, rag.ReasonNoKey, foreign, foreign, "key"},
		"null key, JSON without id":    {nil, json, headers("message-id", "m"), rag.ReasonNoKey, foreign, foreign, "key"},
		"null key, broken JSON":        {nil, str(`{"id":"d"`), nil, rag.ReasonNoKey, foreign, foreign, "key"},
		"null key, unusable id":        {nil, str(`{"id":"","text":"x"}`), nil, rag.ReasonNoKey, foreign, foreign, "key"},
		"null key, own bytes":          {nil, str("x"), html, rag.ReasonNoKey, foreign, foreign, "key"},
		"empty key":                    {str(""), json, nil, rag.ReasonBadKey, foreign, foreign, "key: is empty"},
		"key is not UTF-8":             {str("\xff"), json, headers("message-id", "m"), rag.ReasonBadKey, foreign, foreign, "UTF-8"},
		"key with a control":           {str("a\x00"), json, nil, rag.ReasonBadKey, foreign, foreign, "U+0000"},
		"key is too long":              {str(strings.Repeat("k", 513)), nil, nil, rag.ReasonBadKey, foreign, foreign, "512"},
		"empty message id":             {str("d"), json, headers("message-id", ""), rag.ReasonBadMessageID, foreign, foreign, "message-id"},
		"message id with a control":    {str("d"), json, headers("message-id", "a\n"), rag.ReasonBadMessageID, foreign, foreign, "U+000A"},
		"message id is too long":       {str("d"), nil, headers("message-id", strings.Repeat("m", 257)), rag.ReasonBadMessageID, foreign, foreign, "256"},
		"message id is not UTF-8":      {str("d"), str("x"), append(headers("message-id", "\xff"), html...), rag.ReasonBadMessageID, foreign, foreign, "UTF-8"},
		"bad message id in the field":  {str("d"), str(`{"text":"x","message_id":""}`), headers("message-id", "m"), rag.ReasonBadMessageID, foreign, foreign, "message_id"},
		"bad id of CloudEvents":        {str("d"), json, headers("ce_source", "s", "ce_id", "i\t"), rag.ReasonBadMessageID, foreign, foreign, "ce_source"},
		"another id in the JSON":       {str("d"), str(`{"id":"e","text":"x","message_id":"m"}`), nil, rag.ReasonIDMismatch, "d", "m", `"e"`},
		"an unusable id in the JSON":   {str("d"), str(`{"id":"","text":"x","message_id":"m"}`), nil, rag.ReasonIDMismatch, "d", "m", "id"},
		"broken JSON":                  {str("d"), str(`{"text":"x"`), headers("message-id", "m"), rag.ReasonBrokenJSON, "d", "m", "JSON"},
		"empty value":                  {str("d"), str(""), nil, rag.ReasonBrokenJSON, "d", foreign, "JSON"},
		"unknown field":                {str("d"), str(`{"txet":"x","message_id":"m"}`), nil, rag.ReasonUnknownField, "d", "m", "txet"},
		"wrong type of a field":        {str("d"), str(`{"text":1}`), nil, rag.ReasonInvalidField, "d", foreign, "text"},
		"empty text":                   {str("d"), str(`{"text":""}`), nil, rag.ReasonEmptyText, "d", foreign, "text"},
		"no text":                      {str("d"), str(`{}`), nil, rag.ReasonInvalidField, "d", foreign, "text"},
		"title is not UTF-8":           {str("d"), str("x"), append(headers("title", "\xff"), html...), rag.ReasonInvalidField, "d", foreign, "title"},
		"source is too long":           {str("d"), json, headers("source", strings.Repeat("s", 8<<10+1)), rag.ReasonInvalidField, "d", foreign, "source"},
		"content type is not UTF-8":    {str("d"), str("x"), headers("content-type", "\xff"), rag.ReasonInvalidField, "d", foreign, "content-type"},
		"content type has line breaks": {str("d"), str("x"), headers("content-type", "a/b\r\nc: d"), rag.ReasonInvalidField, "d", foreign, "content-type"},
		"content type is too long":     {str("d"), str("x"), headers("content-type", "a/"+strings.Repeat("b", 255)), rag.ReasonInvalidField, "d", foreign, "content-type"},
	} {
		t.Run(name, func(t *testing.T) {
			r := stage.Record{Headers: tc.headers}
			if tc.key != nil {
				r.Key = []byte(*tc.key)
			}
			if tc.value != nil {
				r.Value = []byte(*tc.value)
			}
			got, reject := wire.DecodeDocument(r, place)
			if reject == nil {
				t.Fatalf("accepted as %+v", got)
			}
			if reject.Reason != tc.reason || reject.DocumentID != tc.document || reject.MessageID != tc.msg || reject.Foreign != (tc.document == foreign) {
				t.Errorf("got %+v", reject)
			}
			if !strings.Contains(reject.Message, tc.messageMention) {
				t.Errorf("%q does not mention %q", reject.Message, tc.messageMention)
			}
			if err := reject.Err(); stage.ClassOf(err) != stage.ClassMessage || stage.ReasonOf(err, "") != tc.reason {
				t.Errorf("as an error it is %v", err)
			}
			if !reflect.DeepEqual(got, wire.Decoded{}) {
				t.Errorf("comes with %+v", got)
			}
		})
	}
	if err := (*wire.Reject)(nil).Err(); err != nil {
		t.Errorf("nothing rejected, but %v", err)
	}
}

func TestNullKeyIsFoundInTheJSON(t *testing.T) {
	for name, tc := range map[string]struct {
		value     string
		headers   []stage.Header
		messageID string
	}{
		"plain":                           {`{"id":"d","text":"x"}`, nil, foreign},
		"with a message id":               {`{"id":"d","text":"x","message_id":"m"}`, nil, "m"},
		"with other faults":               {`{"txet":1,"id":"d","message_id":"m"}`, nil, "m"},
		"with an unusable message id":     {`{"id":"d","text":"x"}`, headers("message-id", "\n"), foreign},
		"with an unusable field":          {`{"id":"d","text":"x","message_id":""}`, nil, foreign},
		"with a message id in the header": {`{"id":"d","text":"x","message_id":"f"}`, headers("message-id", "m"), "m"},
	} {
		got, reject := wire.DecodeDocument(stage.Record{Value: []byte(tc.value), Headers: tc.headers}, place)
		want := wire.Decoded{Rekey: true, Document: rag.Document{ID: "d", MessageID: tc.messageID}}
		if reject != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %+v", name, got, reject)
		}
	}
}

func TestDocumentRecordRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := submissions().Draw(t, "document")
		if rapid.IntRange(0, 4).Draw(t, "delete") == 0 {
			want = rag.Document{ID: want.ID, MessageID: want.MessageID, Delete: true}
		}
		key, value, hs := wire.DocumentRecord(want, rapid.Bool().Draw(t, "raw"))
		got, reject := wire.DecodeDocument(stage.Record{Key: key, Value: value, Headers: hs}, place)
		if reject != nil || !reflect.DeepEqual(got.Document, want) || got.Rekey {
			t.Fatalf("%q %q gives\n%+v %+v, want\n%+v", value, hs, got, reject, want)
		}
		if got.SubmissionHash() != want.SubmissionHash() {
			t.Fatal("the submission hash has changed")
		}
	})
}

func TestDocumentRecord(t *testing.T) {
	d := rag.Document{ID: "d", MessageID: "m", Content: []byte("<p>"), ContentType: "text/html", Title: "T", Source: "S"}

	key, value, hs := wire.DocumentRecord(d, true)
	want := headers("message-id", "m", "content-type", "text/html", "title", "T", "source", "S", "waymark-raw", "true")
	if string(key) != "d" || string(value) != "<p>" || !reflect.DeepEqual(hs, want) {
		t.Errorf("own bytes: %q %q %q", key, value, hs)
	}
	_, value, hs = wire.DocumentRecord(d, false)
	if !bytes.HasPrefix(value, []byte("{")) || !reflect.DeepEqual(hs, headers("message-id", "m", "content-type", "application/json")) {
		t.Errorf("JSON: %q %q", value, hs)
	}
	d.Metadata = rag.Metadata{"lang=en"}
	if _, value, _ = wire.DocumentRecord(d, true); !bytes.HasPrefix(value, []byte("{")) {
		t.Errorf("metadata got lost: %q", value)
	}
	if _, value, hs = wire.DocumentRecord(rag.Document{ID: "d", MessageID: "m", Delete: true}, true); value != nil || !reflect.DeepEqual(hs, headers("message-id", "m")) {
		t.Errorf("a delete: %q %q", value, hs)
	}
	if _, value, hs = wire.DocumentRecord(rag.Document{ID: "d"}, true); value == nil || !reflect.DeepEqual(hs, headers("waymark-raw", "true")) {
		t.Errorf("an empty document: %#v %q", value, hs)
	}
}

func FuzzDecodeDocument(f *testing.F) {
	f.Add([]byte("d"), []byte(`{"id":"d","text":"x","message_id":"m"}`), "message-id", []byte("m"), "title", []byte("T"))
	f.Add([]byte("d"), []byte("%PDF"), "content-type", []byte("application/pdf"), "source", []byte("S"))
	f.Add([]byte("d"), []byte("{}"), "waymark-raw", []byte("true"), "content-type", []byte("application/json"))
	f.Add([]byte{0xff}, []byte(`{"id":"d"}`), "ce_source", []byte("s"), "ce_id", []byte("i"))
	f.Add([]byte("d"), []byte("{}"), "waymark-blob", []byte(blobKey), "waymark-blob-size", []byte("7"))
	f.Fuzz(func(t *testing.T, key, value []byte, name1 string, value1 []byte, name2 string, value2 []byte) {
		hs := []stage.Header{{Key: []byte(name1), Value: value1}, {Key: []byte(name2), Value: value2}}
		for _, r := range []stage.Record{{Key: key, Value: value, Headers: hs}, {Value: value, Headers: hs}, {Key: key, Headers: hs}} {
			got, reject := wire.DecodeDocument(r, place)
			if reject != nil {
				if reject.Reason == "" || wire.CheckDocumentID(reject.DocumentID) != nil || wire.CheckMessageID(reject.MessageID) != nil {
					t.Fatalf("%+v", reject)
				}
				continue
			}
			if wire.CheckDocumentID(got.ID) != nil || wire.CheckMessageID(got.MessageID) != nil {
				t.Fatalf("unusable ids in %+v", got)
			}
			if got.Rekey {
				continue
			}
			for _, raw := range []bool{false, true} {
				k, v, h := wire.DocumentRecord(got.Document, raw)
				again, reject := wire.DecodeDocument(stage.Record{Key: k, Value: v, Headers: h}, place)
				if reject != nil || again.SubmissionHash() != got.SubmissionHash() {
					t.Fatalf("%+v comes back as %+v, %+v", got, again, reject)
				}
			}
		}
	})
}
