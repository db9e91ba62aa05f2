package kafka

import (
	"time"

	"github.com/IBM/sarama"
)

// Header of a record, byte for byte and in order.
type Header struct {
	Key   []byte
	Value []byte
}

// Record is a Kafka record. A nil Key or Value is a null one, which differs from an empty one.
type Record struct {
	Topic string
	// Partition and Offset say where a record stands that was read; sending ignores them.
	Partition int32
	Offset    int64
	// Timestamp of the record; zero when sending means now.
	Timestamp time.Time
	Key       []byte
	Value     []byte
	Headers   []Header
}

// RecordOf copies nothing: the record shares the message's memory.
func RecordOf(m *sarama.ConsumerMessage) Record {
	r := Record{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp, Key: m.Key, Value: m.Value}
	if len(m.Headers) > 0 {
		r.Headers = make([]Header, 0, len(m.Headers))
		for _, h := range m.Headers {
			if h != nil {
				r.Headers = append(r.Headers, Header{Key: h.Key, Value: h.Value})
			}
		}
	}
	return r
}

// message is the record as sarama sends it.
func (r Record) message() *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: r.Topic, Timestamp: r.Timestamp}
	// A typed nil inside the interface would be sent as an empty key.
	if r.Key != nil {
		m.Key = sarama.ByteEncoder(r.Key)
	}
	if r.Value != nil {
		m.Value = sarama.ByteEncoder(r.Value)
	}
	if len(r.Headers) > 0 {
		m.Headers = make([]sarama.RecordHeader, len(r.Headers))
		for i, h := range r.Headers {
			m.Headers[i] = sarama.RecordHeader{Key: h.Key, Value: h.Value}
		}
	}
	return m
}
