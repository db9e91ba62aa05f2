package e2e

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
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
	produce(w.t, w.broker, &kgo.Record{Topic: "waymark.documents", Key: []byte(id), Value: value, Headers: headers})
	w.accepted(id, messageID, false)
}
