package pipeline_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/kafka/kafkatest"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/rag/wire"
	"github.com/waymarkhq/waymark/stage"
)

// A document record may be larger than the letters' topic takes: the version dies all the same, the letter says what it could
// not keep, and what comes behind it goes on.
func TestLetterThatDoesNotFitIntoItsTopic(t *testing.T) {
	w := start(t)
	values := map[string][]byte{"large": bytes.Repeat([]byte{0, 1, 0xff, 0xfe}, kafka.DefaultTopicBytes/4+1), "small": {0, 1, 0xff, 0xfe}}
	for _, id := range []string{"large", "small"} {
		kafkatest.Produce(t, w.cfg, kafka.Record{Topic: w.topics.Documents, Key: []byte(id), Value: values[id], Headers: []kafka.Header{
			{Key: []byte("message-id"), Value: []byte("m")}, {Key: []byte("content-type"), Value: []byte("application/octet-stream")}}})
		w.waitFinal(id+"/m", rag.StatusDead)
	}
	letters := map[string]rag.Letter{}
	kafkatest.Wait(t, "two letters", func() bool {
		for _, r := range kafkatest.ReadAll(t, w.cfg, w.topics.DeadLetters) {
			var headers []stage.Header
			for _, h := range r.Headers {
				headers = append(headers, stage.Header(h))
			}
			l, err := wire.DecodeLetter(r.Key, r.Value, headers, r.Timestamp)
			check(t, err)
			letters[l.DocumentID] = l
		}
		return len(letters) == 2
	})
	large, small := letters["large"], letters["small"]
	if sum := fmt.Sprintf("%x", sha256.Sum256(values["large"])); !strings.Contains(large.Lost, sum) || large.Original.Value != nil {
		t.Errorf("the letter of the large one says %q and keeps %d bytes", large.Lost, len(large.Original.Value))
	}
	if small.Lost != "" || !bytes.Equal(small.Original.Value, values["small"]) {
		t.Errorf("the letter of the small one says %q and keeps %d bytes", small.Lost, len(small.Original.Value))
	}
}
