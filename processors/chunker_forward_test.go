package processors_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/waymarkhq/waymark/processors"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/ledger"
	"github.com/waymarkhq/waymark/stage"
	"github.com/waymarkhq/waymark/stage/stagetest"
)

// strayKey belongs to different partitions for the two partitioners.
const strayKey = "doc"

func TestBothPartitioners(t *testing.T) {
	if home([]byte(strayKey)) == librdkafka([]byte(strayKey)) {
		t.Fatal("the partitioners agree on the key, so the test shows nothing")
	}
	for i := range 20 {
		key := []byte(fmt.Sprint("document ", i))
		for name, partitioner := range map[string]func([]byte) int32{"ours": home, "librdkafka": librdkafka} {
			r := stage.Record{Topic: "documents", Partition: partitioner(key), Key: key, Value: []byte("one"), Headers: []stage.Header{header("content-type", "text/plain")}}
			run := chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r))
			forwarded := len(run.Outputs()) == 1 && run.Outputs()[0].Topic == "documents"
			if forwarded != (partitioner(key) != home(key)) {
				t.Errorf("%s: the record of %q on partition %d gives %v", name, key, r.Partition, told(t, run.Outputs()))
			}
		}
	}
}

// stray is a record on librdkafka's partition.
func stray(value string, headers ...stage.Header) stage.Record {
	return stage.Record{Topic: "documents", Partition: librdkafka([]byte(strayKey)), Key: []byte(strayKey), Value: []byte(value), Headers: headers}
}

// landed is a forwarded record where it arrives.
func landed(out stage.Output) stagetest.Step { return stagetest.Sending(out).On(home(out.Key)) }

func TestForwardKeepsTheBytes(t *testing.T) {
	headers := []stage.Header{header("content-type", "text/plain"), {Key: []byte("null"), Value: nil}, header("message-id", "m1"), {Key: []byte{0xff}, Value: []byte{0, 1}}, header("message-id", "second")}
	for name, value := range map[string][]byte{"put": []byte("one\x00\xff"), "empty": {}, "delete": nil} {
		t.Run(name, func(t *testing.T) {
			r := stray("", headers...)
			r.Value = value
			out := chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r).Offset(70)).Outputs()[0]
			wantHeaders := append(append([]stage.Header{}, headers...), header(processors.OriginHeader, fmt.Sprintf("documents@3-%d-70", r.Partition)))
			if string(out.Key) != strayKey || !reflect.DeepEqual(out.Value, value) || !reflect.DeepEqual(out.Headers, wantHeaders) {
				t.Errorf("forwarded key %q, value %q, headers %q; want headers %q", out.Key, out.Value, out.Headers, wantHeaders)
			}
		})
	}
}

func TestForwardedRecordKeepsTheMessageIDOfItsOrigin(t *testing.T) {
	c := newChunker()
	out := chunkerKit(t, c, noRow).Run(stagetest.Raw(stray("one", header("content-type", "text/plain"))).Offset(70)).Outputs()[0]
	run := chunkerKit(t, c, noRow).Run(landed(out).Offset(5))
	id := fmt.Sprintf("documents@3-%d-70", librdkafka([]byte(strayKey)))
	want(t, run.Outputs(),
		"event chunker doc/"+id+"@5.0 accepted", "chunk doc/"+id+`@5.0 0/1 "one"`, "manifest doc/"+id+"@5.0 of 1", "event chunker doc/"+id+"@5.0 chunked")
	row := stagetest.Row[ledger.ChunkerRow](run, "doc")
	if got := row.Forwarded[librdkafka([]byte(strayKey))]; got != version(70) {
		t.Errorf("forwarded from %v, want %v", got, version(70))
	}
}

func TestForwardedTwiceIsOneSubmission(t *testing.T) {
	c := newChunker()
	out := chunkerKit(t, c, noRow).Run(stagetest.Raw(stray("one", header("content-type", "text/plain"), header("message-id", "m1"))).Offset(70)).Outputs()[0]
	run := chunkerKit(t, c, noRow).Run(landed(out), landed(out))
	if got := len(run.Outputs()); got != 4 {
		t.Errorf("sent %v", told(t, run.Outputs()))
	}
}

// Where it was forwarded from is noted even of a duplicate, and written again when it is delivered again.
func TestForwardedDuplicateIsNoted(t *testing.T) {
	run := chunkerKit(t, newChunker(), noRow).Run(document("doc", "m1", "forwarded"), landed(chunkerForward("doc", "m1", 7)))
	if got := len(run.Outputs()); got != 4 {
		t.Errorf("sent %v", told(t, run.Outputs()))
	}
	if row := stagetest.Row[ledger.ChunkerRow](run, "doc"); row.Forwarded[librdkafka([]byte("doc"))] != version(7) {
		t.Errorf("the row is %+v", row)
	}
}

func TestForwardedTwiceDiesOnce(t *testing.T) {
	c := newChunker()
	out := chunkerKit(t, c, noRow).Run(stagetest.Raw(stray("two", header("content-type", "text/plain"), header("message-id", "m1"))).Offset(70)).Outputs()[0]
	run := chunkerKit(t, c, noRow).Run(document("doc", "m1", "one"), landed(out), landed(out))
	id := fmt.Sprintf("documents@3-%d-70", librdkafka([]byte(strayKey)))
	want(t, run.Outputs()[4:], "event chunker doc/"+id+"@1.0 accepted", "verdict doc/"+id+"@1.0 dead chunker:message:message_id_reused")
}

func TestForwardOfANullKeyWithAnID(t *testing.T) {
	c := newChunker()
	r := stage.Record{Topic: "documents", Partition: 2, Value: []byte(`{"id":"doc","text":"one","message_id":"m1"}`)}
	out := chunkerKit(t, c, noRow).Run(stagetest.Raw(r).Offset(9)).Outputs()[0]
	if string(out.Key) != "doc" || string(out.Value) != string(r.Value) || len(out.Headers) != 1 {
		t.Fatalf("forwarded key %q, value %q, headers %q", out.Key, out.Value, out.Headers)
	}
	run := chunkerKit(t, c, noRow).Run(landed(out))
	want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", `chunk doc/m1@0.0 0/1 "one"`, "manifest doc/m1@0.0 of 1", "event chunker doc/m1@0.0 chunked")
}

// Even where the partition happens to be the right one, a null key is forwarded: the record needs its key.
func TestForwardOfANullKeyAtHome(t *testing.T) {
	r := stage.Record{Topic: "documents", Partition: home([]byte("doc")), Value: []byte(`{"id":"doc","text":"one"}`)}
	want(t, chunkerKit(t, newChunker(), noRow).Run(stagetest.Raw(r)).Outputs(), `document "doc"`)
}

// What is wrong with a stray record is judged where it lands, and it dies once.
func TestForwardOfBrokenRecords(t *testing.T) {
	c := newChunker()
	out := chunkerKit(t, c, noRow).Run(stagetest.Raw(stray("{", header("message-id", "m1")))).Outputs()[0]
	run := chunkerKit(t, c, noRow).Run(landed(out))
	want(t, run.Outputs(), "event chunker doc/m1@0.0 accepted", "verdict doc/m1@0.0 dead chunker:message:broken_json")
}

func TestOriginsThatAreNone(t *testing.T) {
	partition := librdkafka([]byte(strayKey))
	for name, value := range map[string]string{
		"nothing": "", "no numbers": "documents@3-x-y", "no offset": "documents@3-1", "a negative offset": "documents@3-1--5",
		"a partition that is none": "documents@3-99999999999-5",
		// A mirrored topic brings its headers along; positions of another log say nothing about this one.
		"another epoch": fmt.Sprintf("documents@2-%d-5000", partition),
		"another topic": fmt.Sprintf("copy@3-%d-5000", partition),
	} {
		t.Run(name, func(t *testing.T) {
			run := chunkerKit(t, newChunker(), noRow).Run(
				document("doc", "m1", "one", header(processors.OriginHeader, value)),
				document("doc", "m2", "two", header(processors.OriginHeader, value), header(processors.OriginHeader, fmt.Sprintf("documents@3-%d-7", partition))),
			)
			if len(run.Outputs()) != 8 {
				t.Errorf("sent %v", told(t, run.Outputs()))
			}
			row := stagetest.Row[ledger.ChunkerRow](run, "doc")
			if fmt.Sprint(row.Forwarded) != fmt.Sprint(map[int32]rag.Version{partition: version(7)}) {
				t.Errorf("forwarded %v", row.Forwarded)
			}
		})
	}
}

func TestForwardedFromBelowWhatTheRowHasSeenIsOld(t *testing.T) {
	origin := func(offset int) stage.Header {
		return header(processors.OriginHeader, fmt.Sprintf("documents@3-2-%d", offset))
	}
	run := chunkerKit(t, newChunker(), noRow).Run(
		document("doc", "m1", "one", origin(8)),
		document("doc", "forgotten", "zero", origin(7)),
	)
	if len(run.Outputs()) != 4 {
		t.Errorf("sent %v", told(t, run.Outputs()))
	}
}

// A record that cannot be forwarded, as the marks of the forward make it too large, never becomes a version of its document:
// its offset in a foreign partition must neither stand in the document's row nor supersede anything there.
func TestRecordThatCannotBeForwarded(t *testing.T) {
	for name, r := range map[string]stage.Record{
		"wrong partition": stray("one", header("content-type", "text/plain"), header("message-id", "m1")),
		"null key":        {Topic: "documents", Partition: librdkafka([]byte(strayKey)), Value: []byte(`{"id":"doc","text":"one","message_id":"m1"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChunker()
			r.Offset = 70
			res, err := c.OnFailure(context.Background(), r, stage.ClassMessage, stage.Reject("too_large", "it has too many bytes"), nil)
			check(t, err)
			if res.Row != nil {
				t.Errorf("the row %+v is written", res.Row)
			}
			id := fmt.Sprintf("documents@3-%d-70", r.Partition)
			want(t, res.Outputs, fmt.Sprintf("event chunker %s/%s@70.0 accepted", id, id), fmt.Sprintf("verdict %s/%s@70.0 dead chunker:message:too_large", id, id))

			// A replay cannot make it a document under that id either.
			s := decode(t, topics.Progress, res.Outputs[1]).Subject
			s.Revision.Generation = 1
			replay := rag.Replay{Subject: s, Position: rag.Position{Topic: "documents", Epoch: epoch, Partition: r.Partition, Offset: 70}, Original: original(r)}
			run := chunkerKit(t, c, noRow).Run(in(topics.Replays, s.DocumentID, replay))
			want(t, run.Outputs(), fmt.Sprintf("verdict %s/%s@70.1 dead chunker:message:too_large", id, id))
		})
	}
}

// original is a document record as letters keep it.
func original(r stage.Record) rag.Raw {
	raw := rag.Raw{Key: r.Key, Value: r.Value, Timestamp: r.Timestamp}
	for _, h := range r.Headers {
		raw.Headers = append(raw.Headers, rag.Header(h))
	}
	return raw
}

// chunkerForward is a record as it was forwarded from an offset of librdkafka's partition.
func chunkerForward(key, messageID string, offset int64) stage.Output {
	return stage.Output{Topic: "documents", Key: []byte(key), Value: []byte("forwarded"), Headers: []stage.Header{header("message-id", messageID),
		header("content-type", "text/plain"), header(processors.OriginHeader, fmt.Sprintf("documents@3-%d-%d", librdkafka([]byte(key)), offset))}}
}
