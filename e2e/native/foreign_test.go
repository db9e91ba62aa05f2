package native

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waymarkhq/waymark/e2e/kafkalocal"
)

// kafkaTool runs one of Kafka's own command-line tools to its end, or for as long as it may take.
func kafkaTool(t *testing.T, input string, class string, args ...string) string {
	t.Helper()
	r, err := release(t.Context())
	if err != nil {
		t.Skipf("NOT RUN: no tools of Kafka: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	cmd := r.Tool(ctx, class, append([]string{"--bootstrap-server", strings.Join(suite.brokers.Addrs(), ",")}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", class, err, out, errs.String())
	}
	return string(out)
}

// Kafka's own console producer, whose partitioner is Java's, writes documents; its console consumer reads the letter of the
// one that is broken, byte for byte. Each document is on its home partition at once.
func TestForeignProducerAndConsumer(t *testing.T) {
	needNative(t)
	p := newPods(t, "foreign")
	p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	const count = 30
	var input strings.Builder
	for _, version := range []string{"first", "second"} {
		for i := range count {
			fmt.Fprintf(&input, "message-id:%s-%d\tjava-%d\t{\"text\": \"The %s text of number %d.\"}\n", version, i, i, version, i)
		}
	}
	broken := `{"text": "no end, and an umlaut: ü`
	fmt.Fprintf(&input, "message-id:odd,x-trace:one two\tpoison\t%s\n", broken)
	kafkaTool(t, input.String(), kafkalocal.ConsoleProducer, "--topic", "foreign.documents",
		"--reader-property", "parse.key=true", "--reader-property", "parse.headers=true", "--command-property", "acks=all")

	m := newModel()
	for i := range count {
		id := fmt.Sprintf("java-%d", i)
		m.text[id], m.last[id] = fmt.Sprintf("The second text of number %d.", i), fmt.Sprintf("second-%d", i)
	}
	if s := p.final("poison", "odd"); s.Status != "dead" || s.Error == nil || s.Error.Reason != "broken_json" {
		t.Errorf("the broken document is %+v", s)
	}
	for id, messageID := range m.last {
		if s := p.final(id, messageID); s.Status != "indexed" {
			t.Errorf("%s is %+v", id, s)
		}
	}
	if n := p.metric("waymark_forwarded_total"); n != 0 {
		t.Errorf("%v records were forwarded: Java's partitioner is not ours", n)
	}
	var chunks map[string]bool
	eventually(t, "the second versions to be served", func() (err error) { chunks, err = p.served(m); return err })
	p.checkStore(chunks)

	letter := kafkaTool(t, "", kafkalocal.ConsoleConsumer, "--topic", "foreign.dead-letters", "--from-beginning", "--max-messages", "1",
		"--timeout-ms", "60000", "--formatter-property", "print.key=true", "--formatter-property", "print.headers=true")
	headers, rest, _ := strings.Cut(strings.TrimRight(letter, "\n"), "\t")
	key, value, _ := strings.Cut(rest, "\t")
	if value != broken {
		t.Errorf("the letter's value is %q", value)
	}
	if !strings.HasPrefix(key, "foreign.documents@0-") {
		t.Errorf("the letter's key is %q", key)
	}
	for _, want := range []string{"message-id:odd", "x-trace:one two", "waymark-reason:broken_json", "waymark-key:poison", "__connect.errors.topic:foreign.documents"} {
		if !strings.Contains(headers, want) {
			t.Errorf("no %q among the letter's headers %q", want, headers)
		}
	}
	p.checkLetter(key, broken)
}

// checkLetter: the API shows the letter of the same id, with the bytes.
func (p *pods) checkLetter(id, payload string) {
	p.t.Helper()
	status, b, err := p.api.Call(p.t.Context(), http.MethodGet, "/v1/dead-letters/"+id+"/payload")
	if err != nil || status != http.StatusOK || string(b) != payload {
		p.t.Errorf("the payload of %s: %d %q %v", id, status, b, err)
	}
}

// metric is the sum of a metric's samples at the API's own process.
func (p *pods) metric(name string) float64 {
	p.t.Helper()
	status, b, err := p.api.Call(p.t.Context(), http.MethodGet, "/metrics")
	if err != nil || status != http.StatusOK {
		p.t.Fatalf("metrics: %d %v", status, err)
	}
	return sum(b, name)
}

func sum(metrics []byte, name string, labels ...string) float64 {
	total := 0.0
lines:
	for line := range strings.Lines(string(metrics)) {
		if !strings.HasPrefix(line, name+"{") && !strings.HasPrefix(line, name+" ") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue lines
			}
		}
		var v float64
		if _, err := fmt.Sscan(line[strings.LastIndex(strings.TrimSpace(line), " ")+1:], &v); err == nil {
			total += v
		}
	}
	return total
}

// Records that no producer of documents writes on purpose, between good ones: each dies with its reason, and the good ones
// do not notice.
func TestPoisonBetweenGoodRecords(t *testing.T) {
	needNative(t)
	p := newPods(t, "poison")
	p.run("all", append([]string{"api"}, workers...)...)
	p.waitReady()
	good := func(i int) *kgo.Record {
		b, err := json.Marshal(map[string]string{"text": fmt.Sprintf("Number %d is fine.", i)})
		if err != nil {
			t.Fatal(err)
		}
		return &kgo.Record{Topic: "poison.documents", Key: fmt.Appendf(nil, "good-%d", i), Value: b, Headers: []kgo.RecordHeader{{Key: "message-id", Value: fmt.Appendf(nil, "m-%d", i)}}}
	}
	plain := []kgo.RecordHeader{{Key: "content-type", Value: []byte("text/plain")}}
	bad := []*kgo.Record{
		{Topic: "poison.documents", Key: []byte("bad\xffkey"), Value: []byte("x"), Headers: plain},
		{Topic: "poison.documents", Key: []byte("other"), Value: []byte(`{"id": "another", "text": "x"}`)},
		{Topic: "poison.documents", Key: []byte("field"), Value: []byte(`{"text": "x", "colour": "red"}`)},
		{Topic: "poison.documents", Key: []byte("large"), Value: append([]byte(`{"text": "`), bytes.Repeat([]byte("no end "), 1_500_000)...)},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	producer := kafkaClient(t, kgo.ProducerBatchMaxBytes(12<<20))
	if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "poison.documents", Value: []byte("nobody's"), Headers: plain}).FirstErr(); err == nil {
		t.Error("the compacted topic has taken a record without a key") // the embedded broker does
	}
	var records []*kgo.Record
	m := newModel()
	for i, r := range bad {
		records = append(records, good(i), r)
		m.text[fmt.Sprintf("good-%d", i)], m.last[fmt.Sprintf("good-%d", i)] = fmt.Sprintf("Number %d is fine.", i), fmt.Sprintf("m-%d", i)
	}
	if err := producer.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for id, messageID := range m.last {
		if s := p.final(id, messageID); s.Status != "indexed" {
			t.Errorf("%s is %+v", id, s)
		}
	}
	eventually(t, "a letter for each bad record", func() error {
		letters, err := p.api.Letters(t.Context())
		if err == nil && len(letters) != len(bad) {
			err = fmt.Errorf("%d letters of %d: %+v", len(letters), len(bad), letters)
		}
		return err
	})
}
