package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

type letter struct {
	ID         string `json:"id"`
	MessageID  string `json:"message_id"`
	DocumentID string `json:"document_id"`
	Stage      string `json:"stage"`
	Class      string `json:"class"`
	Reason     string `json:"reason"`
	Error      string `json:"error"`
	Attempts   int    `json:"attempts"`
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Offset     int64  `json:"offset"`
	State      string `json:"state"`
}

func (a api) letter(id string) letter {
	a.t.Helper()
	var l letter
	a.get("/v1/dead-letters/"+id, &l)
	return l
}

// A malformed record that some producer wrote is a dead letter with its very bytes, and dies again when it is replayed.
func TestMalformedRecordKeepsItsBytesAndDiesAgain(t *testing.T) {
	p := newPods(t)
	p.startBroker()
	p.run("all", append([]string{"api"}, workers...)...)
	p.api.waitReady()
	value := []byte("{\"text\": \"no end\xff\x00")
	headers := []kgo.RecordHeader{{Key: "message-id", Value: []byte("odd")}, {Key: "x", Value: nil}, {Key: "x", Value: []byte{0, 1, 255}}}
	produce(t, p.broker, &kgo.Record{Topic: "waymark.documents", Key: []byte("poison"), Value: value, Headers: headers})
	if s := p.api.final("odd", "poison"); s.Status != "dead" || s.Error == nil || s.Error.Reason != "broken_json" {
		t.Fatalf("%+v", s)
	}
	r := readTopic(t, p.broker, "waymark.dead-letters", 1)[0]
	if !bytes.Equal(r.Value, value) {
		t.Errorf("the letter's value is %q", r.Value)
	}
	for i, h := range headers {
		if r.Headers[i].Key != h.Key || !bytes.Equal(r.Headers[i].Value, h.Value) {
			t.Errorf("header %d is %q", i, r.Headers[i])
		}
	}
	for name, want := range map[string]string{"waymark-key": "poison", "__connect.errors.topic": "waymark.documents", "waymark-reason": "broken_json", "waymark-message-id": "odd"} {
		if got, err := headerOf(r, name); got != want {
			t.Errorf("header %s is %q (%v), want %q", name, got, err, want)
		}
	}
	id := string(r.Key)
	payload := p.api.insist(http.StatusOK, http.MethodGet, "/v1/dead-letters/"+id+"/payload", nil, nil)
	if !bytes.Equal(payload, value) {
		t.Errorf("the payload is %q", payload)
	}
	eventually(t, "the letter to wait", func() error {
		if l := p.api.letter(id); l.State != "waiting" || l.Attempts != 1 {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	out, errs, code := waymark(t, nil, "dlq", "replay", id, "--api", p.api.base)
	if code != 0 && code != 3 {
		t.Fatalf("replay: code %d\n%s%s", code, out, errs)
	}
	eventually(t, "the second death", func() error {
		if l := p.api.letter(id); l.State != "waiting" || l.Attempts != 2 {
			return fmt.Errorf("%+v", l)
		}
		return nil
	})
	second := readTopic(t, p.broker, "waymark.dead-letters", 2)[1]
	if g, _ := headerOf(second, "waymark-generation"); g != "1" || !bytes.Equal(second.Value, value) {
		t.Errorf("the second letter: generation %q, value %q", g, second.Value)
	}
}

// Records with unusable keys or ids die under the position of the record; their bytes stay in the letter.
func TestUnusableKeysDieUnderTheirPosition(t *testing.T) {
	p := newPods(t)
	p.startBroker()
	p.run("all", append([]string{"api"}, workers...)...)
	p.api.waitReady()
	text := kgo.RecordHeader{Key: "content-type", Value: []byte("text/plain")}
	records := []*kgo.Record{
		{Topic: "waymark.documents", Key: nil, Value: []byte("nobody's"), Headers: []kgo.RecordHeader{text}},
		{Topic: "waymark.documents", Key: []byte("bad\xffkey"), Value: []byte("x"), Headers: []kgo.RecordHeader{text}},
		{Topic: "waymark.documents", Key: bytes.Repeat([]byte("k"), 10<<10), Value: []byte("x"), Headers: []kgo.RecordHeader{text}},
		{Topic: "waymark.documents", Key: []byte("fine"), Value: []byte("x"), Headers: []kgo.RecordHeader{text, {Key: "message-id", Value: bytes.Repeat([]byte("m"), 300)}}},
		{Topic: "waymark.documents", Key: []byte("other"), Value: []byte(`{"id": "another", "text": "x"}`)},
		{Topic: "waymark.documents", Key: []byte("field"), Value: []byte(`{"text": "x", "colour": "red"}`)},
	}
	produce(t, p.broker, records...)
	letters := readTopic(t, p.broker, "waymark.dead-letters", len(records))
	reasons := map[string]int{}
	for _, l := range letters {
		r, err := headerOf(l, "waymark-reason")
		if err != nil {
			t.Error(err)
		}
		reasons[r]++
	}
	want := map[string]int{"no_key": 1, "bad_key": 2, "bad_message_id": 1, "id_mismatch": 1, "unknown_field": 1}
	if fmt.Sprint(reasons) != fmt.Sprint(want) {
		t.Errorf("reasons %v, want %v", reasons, want)
	}
	var page struct {
		DeadLetters []letter `json:"dead_letters"`
		Items       []letter `json:"items"`
	}
	b := p.api.insist(http.StatusOK, http.MethodGet, "/v1/dead-letters", nil, nil)
	if err := json.Unmarshal(b, &page); err != nil {
		t.Fatal(err)
	}
	for _, l := range append(page.DeadLetters, page.Items...) {
		if l.Reason == "no_key" && (l.DocumentID != l.ID || !strings.HasPrefix(l.ID, "waymark.documents@0-")) {
			t.Errorf("%+v", l)
		}
	}
	// The pipeline goes on.
	p.api.ingest(article{ID: "after", Text: "Still here.", MessageID: "after"})
	if s := p.api.final("after", "after"); s.Status != "indexed" {
		t.Errorf("%+v", s)
	}
}
