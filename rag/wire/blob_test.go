package wire_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

const blobKey = "2026-11-29/ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"

func TestDocumentByReference(t *testing.T) {
	blob, err := rag.ParseBlobKey(blobKey)
	if err != nil {
		t.Fatal(err)
	}
	blob.Size = 7
	for name, want := range map[string]rag.Document{
		"bare":       {ID: "d", MessageID: "m", Blob: &blob},
		"everything": {ID: "d", MessageID: "m", Blob: &blob, ContentType: "application/pdf", Title: "T", Source: "S", Metadata: rag.Metadata{"lang=en"}},
	} {
		for _, raw := range []bool{false, true} {
			key, value, hs := wire.DocumentRecord(want, raw)
			if !strings.HasPrefix(string(value), "{") || strings.Contains(string(value), "content\":") {
				t.Errorf("%s: value %q", name, value)
			}
			if b, fault := wire.BlobOf(hs); fault != nil || *b != blob {
				t.Errorf("%s: the headers name %+v, %v", name, b, fault)
			}
			got, reject := wire.DecodeDocument(stage.Record{Key: key, Value: value, Headers: hs}, place)
			if reject != nil || !reflect.DeepEqual(got.Document, want) {
				t.Errorf("%s: got %+v, %+v", name, got, reject)
			}
		}
	}
	if b, fault := wire.BlobOf(headers("message-id", "m")); b != nil || fault != nil {
		t.Errorf("a record with its content refers to %+v, %v", b, fault)
	}
}

func TestDocumentByReferenceRejects(t *testing.T) {
	ref := func(more ...string) []stage.Header {
		return headers(append([]string{"message-id", "m", "waymark-blob", blobKey}, more...)...)
	}
	for name, tc := range map[string]struct {
		value   string
		headers []stage.Header
		mention string
	}{
		"without its size":  {`{}`, ref(), "waymark-blob-size"},
		"with no size":      {`{}`, ref("waymark-blob-size", "0"), "waymark-blob-size"},
		"a path":            {`{}`, headers("message-id", "m", "waymark-blob", "../../etc/passwd", "waymark-blob-size", "1"), "waymark-blob"},
		"with content too":  {`{"content":"eA=="}`, ref("waymark-blob-size", "7"), "content"},
		"with a text too":   {`{"text":"x"}`, ref("waymark-blob-size", "7"), "content"},
		"an unknown field":  {`{"bucket":"x"}`, ref("waymark-blob-size", "7"), "bucket"},
		"own bytes":         {"%PDF", ref("waymark-blob-size", "7", "waymark-raw", "true"), "JSON"},
		"the id of another": {`{"id":"e"}`, ref("waymark-blob-size", "7"), "id"},
	} {
		got, reject := wire.DecodeDocument(stage.Record{Key: []byte("d"), Value: []byte(tc.value), Headers: tc.headers}, place)
		if reject == nil || reject.MessageID != "m" || !strings.Contains(reject.Message, tc.mention) {
			t.Errorf("%s: %+v, %+v", name, got, reject)
		}
	}
	got, reject := wire.DecodeDocument(stage.Record{Key: []byte("d"), Headers: ref("waymark-blob-size", "7")}, place)
	if reject != nil || !got.Delete || got.Blob != nil {
		t.Errorf("a null value: %+v, %+v", got, reject)
	}
}
