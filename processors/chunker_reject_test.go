package processors_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/blob"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/rag/parse"
	"github.com/waymarkhq/waymark/rag/read"
	"github.com/waymarkhq/waymark/rag/split"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// A record whose key or message id is unusable dies under the foreign form of its position, and no row is written: there is
// no document that it would belong to.
func TestUnusableKeysAndMessageIDs(t *testing.T) {
	for name, tc := range map[string]struct {
		record stage.Record
		reason string
	}{
		"null key":            {stage.Record{Value: []byte("no JSON"), Headers: []stage.Header{header("content-type", "text/plain")}}, "no_key"},
		"null key, null":      {stage.Record{}, "no_key"},
		"null key, broken":    {stage.Record{Value: []byte(`{"id":`)}, "no_key"},
		"empty key":           {stage.Record{Key: []byte{}, Value: []byte(`{"text":"x"}`)}, "bad_key"},
		"key is not UTF-8":    {stage.Record{Key: []byte("a\xff"), Value: []byte(`{"text":"x"}`)}, "bad_key"},
		"key with a control":  {stage.Record{Key: []byte("a\x00b"), Value: []byte(`{"text":"x"}`)}, "bad_key"},
		"key too long":        {stage.Record{Key: bytes.Repeat([]byte("k"), 513), Value: []byte(`{"text":"x"}`)}, "bad_key"},
		"bad key, null value": {stage.Record{Key: []byte("a\xff")}, "bad_key"},
		"message id too long": {stage.Record{Key: []byte("doc"), Value: []byte(`{"text":"x"}`), Headers: []stage.Header{header("message-id", strings.Repeat("m", 257))}}, "bad_message_id"},
		"empty message id":    {stage.Record{Key: []byte("doc"), Value: []byte(`{"text":"x"}`), Headers: []stage.Header{header("message-id", "")}}, "bad_message_id"},
		"message id in JSON":  {stage.Record{Key: []byte("doc"), Value: []byte(`{"text":"x","message_id":"a\u0000"}`)}, "bad_message_id"},
	} {
		t.Run(name, func(t *testing.T) {
			r := tc.record
			r.Topic, r.Partition, r.Offset = "documents", 3, 41
			run := chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r))
			id := "documents@3-3-41"
			want(t, run.Outputs(), fmt.Sprintf("event chunker %s/%s@41.0 accepted", id, id), fmt.Sprintf("verdict %s/%s@41.0 dead chunker:message:%s", id, id, tc.reason))
			if s := stagetest.Sent(run, topics.Progress)[0].Subject; s.Partition != 3 {
				t.Errorf("the verdict names partition %d, so its letter would not find the record", s.Partition)
			}
			if row := stagetest.Row[ledger.ChunkerRow](run, string(r.Key)); row != nil {
				t.Errorf("the row %+v is written", row)
			}
		})
	}
}

func TestDocumentsThatCannotBeDecoded(t *testing.T) {
	var entries []string
	for i := range rag.MaxMetadata + 1 {
		entries = append(entries, fmt.Sprintf(`"k%d":1`, i))
	}
	for name, tc := range map[string]struct{ value, reason string }{
		"broken JSON":           {`{"text":`, "broken_json"},
		"an array":              {`[]`, "broken_json"},
		"unknown field":         {`{"text":"x","tittle":"y"}`, "unknown_field"},
		"text that is a number": {`{"text":7}`, "invalid_field"},
		"another id":            {`{"id":"other","text":"x"}`, "id_mismatch"},
		"empty text":            {`{"text":""}`, "empty_text"},
		"too many metadata":     {`{"text":"x","metadata":{` + strings.Join(entries, ",") + `}}`, "invalid_field"},
		"metadata too long":     {`{"text":"x","metadata":{"k":"` + strings.Repeat("v", rag.MaxMetadataBytes) + `"}}`, "invalid_field"},
		"metadata of objects":   {`{"text":"x","metadata":{"k":{}}}`, "invalid_field"},
	} {
		t.Run(name, func(t *testing.T) {
			r := stage.Record{Topic: "documents", Partition: home([]byte("doc")), Key: []byte("doc"), Value: []byte(tc.value), Headers: []stage.Header{header("message-id", "m1")}}
			run := chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r), stagetest.Raw(r)) // the second one is a resend
			want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:"+tc.reason)
			if row := stagetest.Row[ledger.ChunkerRow](run, "doc"); row.Latest != version(0) {
				t.Errorf("a version that dies counts as accepted, the row is %+v", row)
			}
		})
	}
}

func TestMetadataWithinTheLimits(t *testing.T) {
	var entries []string
	for i := range rag.MaxMetadata {
		entries = append(entries, fmt.Sprintf(`"k%d":"%s"`, i, strings.Repeat("v", rag.MaxMetadataBytes-4)))
	}
	r := stage.Record{Topic: "documents", Partition: home([]byte("doc")), Key: []byte("doc"), Value: []byte(`{"text":"x","metadata":{` + strings.Join(entries, ",") + `}}`)}
	run := chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r))
	if chunks := stagetest.Sent(run, topics.Chunks); len(chunks) != 1 || len(chunks[0].Metadata) != rag.MaxMetadata {
		t.Errorf("sent %v", told(t, run.Outputs()))
	}
}

func TestDocumentsThatCannotBeRead(t *testing.T) {
	for name, tc := range map[string]struct{ text, reason, says string }{
		"the parser says why": {"scan", "no_text", "it is a scan"},
		"the parser crashes":  {"panic", "panic", "the parser crashed: a broken invariant"},
		"too slow":            {"slow", "timeout", "reading the document took longer than 10ms"},
		"too many pieces":     {"a\nb\nc\nd", "too_many_chunks", "too many"},
		"no pieces":           {"\n\n", "no_text", "there is no text in the document"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChunker()
			c.Reader = read.New(read.Options{Parser: &fakeParser{}, Splitter: lines{most: 3}, Time: 10 * time.Millisecond})
			run := chunkerKit(t, c, noRow).Run(document("doc", "m1", tc.text))
			want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:"+tc.reason)
			if got := stagetest.Sent(run, topics.Progress)[0].Failure.Message; got != tc.says {
				t.Errorf("it says %q, want %q", got, tc.says)
			}
		})
	}
}

// The ledger counts the chunks of a version up to a bound; a version beyond it would never be complete.
func TestMoreChunksThanTheLedgerCounts(t *testing.T) {
	c := newChunker()
	outs, err := c.Handle(t.Context(), message(document("doc", "m1", strings.Repeat("x\n", ledger.MaxChunks+1))), nil)
	check(t, err)
	want(t, outs.Outputs, "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:too_many_chunks")
}

func TestWithTheRealParserAndSplitter(t *testing.T) {
	c := newChunker()
	parser, err := parse.New(parse.Limits{Input: 1000})
	check(t, err)
	splitter, err := split.New(split.Options{Tokens: 16, MaxPieces: 3})
	check(t, err)
	c.Reader = read.New(read.Options{Parser: parser, Splitter: splitter})
	for name, tc := range map[string]struct{ content, contentType, reason string }{
		"unsupported type": {"\x00\x01\x02\xff\xfe", "application/octet-stream", "unsupported_type"},
		"empty":            {"", "text/plain", "empty_text"},
		"only spaces":      {" \n\t", "text/plain", "no_text"},
		"too large":        {strings.Repeat("x", 1001), "text/plain", "too_large"},
		"too many chunks":  {strings.Repeat("One sentence of several words ends here. ", 20), "text/plain", "too_many_chunks"},
	} {
		t.Run(name, func(t *testing.T) {
			r := stage.Record{Topic: "documents", Partition: home([]byte("doc")), Key: []byte("doc"), Value: []byte(tc.content),
				Headers: []stage.Header{header("message-id", "m1"), header("content-type", tc.contentType)}}
			run := chunkerKit(t, c, noRow).Run(stagetest.Raw(r))
			want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:"+tc.reason)
		})
	}
}

var (
	_ processors.Reader = (*read.Reader)(nil)
	_ processors.Blobs  = (*blob.Store)(nil)
)
