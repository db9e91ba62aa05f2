package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/kafka"
	"github.com/waymarkhq/waymark/stage"
)

// Headers of a dead letter, behind those of the original. The first ones are Kafka Connect's, so that its tools read them.
const (
	HeaderErrorTopic     = "__connect.errors.topic"
	HeaderErrorPartition = "__connect.errors.partition"
	HeaderErrorOffset    = "__connect.errors.offset"
	HeaderErrorStage     = "__connect.errors.stage" // the group
	HeaderErrorClass     = "__connect.errors.exception.class.name"
	HeaderErrorMessage   = "__connect.errors.exception.message"

	HeaderClass    = "waymark-class"    // message or transient
	HeaderReason   = "waymark-reason"   // stable, lower case
	HeaderAttempts = "waymark-attempts" // in place

	HeaderOriginalTimestamp = "waymark-original-timestamp" // Unix milliseconds
	HeaderLost              = "waymark-lost"               // what of the original did not fit into the topic; absent: nothing
	HeaderValueSHA256       = "waymark-value-sha256"       // where the value was lost
	HeaderOriginalHeaders   = "waymark-original-headers"   // how many of the leading headers are the original's; the last header
)

const (
	// letterMargin is what a producer keeps free of a topic's limit, with what a record costs beside its bytes.
	letterMargin = 20 << 10
	// maxSentence bounds what a letter says of its error: a service may have answered with a page.
	maxSentence = 1 << 10
	// headerCost is what a header costs beside its bytes, at most.
	headerCost = 10
)

// ReasonUnknown stands in a letter whose error has no reason of its own.
const ReasonUnknown = "error"

// ToDeadLetters makes a failure handler that writes the record that failed to a topic: key, value and headers byte for byte
// and in order, and behind them headers that say where it stood, in which group it failed and why. OriginalOf turns the
// letter back.
//
// maxBytes is the topic's max.message.bytes (kafka.Limits of the plan has it), 0 means kafka.DefaultTopicBytes. It should be
// above that of the inputs: a record that does not fit with these headers loses its value, and only if that is not enough its
// headers and its key; the letter says so, with a hash of the value. It must not be below 64 KiB.
//
// The row stays as it is. A message that failed for a passing reason may, after a crash before its commit, succeed when it is
// delivered again: then there are a letter and the message's outputs. Who sends letters again should keep their message id,
// so that what went well is recognised.
//
// Declare the topic with Output, like every other that the group writes to.
func ToDeadLetters[R any](topic string, maxBytes int) FailureHandler[R] {
	if maxBytes <= 0 {
		maxBytes = kafka.DefaultTopicBytes
	}
	return func(_ context.Context, f Failure, _ *R) (stage.Result[R], error) {
		return stage.Result[R]{Outputs: []stage.Output{letter(topic, maxBytes-letterMargin, f)}}, nil
	}
}

// letter is the record of a failure, cut down until it fits.
func letter(topic string, limit int, f Failure) stage.Output {
	out := stage.Output{Topic: topic, Key: f.Record.Key, Value: f.Record.Value, Headers: letterHeaders(f, f.Record.Headers, "")}
	if size(out) <= limit {
		return out
	}
	lost := fmt.Sprintf("the value, of %d bytes", len(f.Record.Value))
	out.Value, out.Headers = nil, letterHeaders(f, f.Record.Headers, lost)
	if size(out) <= limit {
		return out
	}
	lost += fmt.Sprintf("; %d headers", len(f.Record.Headers))
	out.Headers = letterHeaders(f, nil, lost)
	if size(out) <= limit {
		return out
	}
	lost += fmt.Sprintf("; the key, of %d bytes", len(f.Record.Key))
	out.Key, out.Headers = nil, letterHeaders(f, nil, lost)
	return out
}

func letterHeaders(f Failure, original []stage.Header, lost string) []stage.Header {
	headers := make([]stage.Header, 0, len(original)+13)
	headers = append(headers, original...)
	add := func(name, value string) {
		headers = append(headers, stage.Header{Key: []byte(name), Value: []byte(value)})
	}
	reason := stage.ReasonOf(f.Err, ReasonUnknown)
	add(HeaderErrorTopic, f.Record.Topic)
	add(HeaderErrorPartition, strconv.Itoa(int(f.Record.Partition)))
	add(HeaderErrorOffset, strconv.FormatInt(f.Record.Offset, 10))
	add(HeaderErrorStage, f.Group)
	add(HeaderErrorClass, reason)
	add(HeaderErrorMessage, sentence(f.Err))
	add(HeaderClass, f.Class.String())
	add(HeaderReason, reason)
	add(HeaderAttempts, strconv.Itoa(f.Attempts))
	add(HeaderOriginalTimestamp, strconv.FormatInt(f.Record.Timestamp.UnixMilli(), 10))
	if lost != "" {
		sum := sha256.Sum256(f.Record.Value)
		add(HeaderLost, lost)
		add(HeaderValueSHA256, hex.EncodeToString(sum[:]))
	}
	add(HeaderOriginalHeaders, strconv.Itoa(len(original)))
	return headers
}

func size(out stage.Output) int {
	n := len(out.Key) + len(out.Value)
	for _, h := range out.Headers {
		n += len(h.Key) + len(h.Value) + headerCost
	}
	return n
}

// sentence is what an error says to people: its first line without the reason, which has a header of its own.
func sentence(err error) string {
	var e *stage.Error
	if errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxSentence {
		return text
	}
	cut := maxSentence
	for !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}

// OriginalOf is the record that a dead letter holds, ready to be sent again to the topic in which it stood. Letters that
// ToDeadLetters did not write, and those that have lost a part, give an error. It shares the letter's memory.
func OriginalOf(letter stage.Record) (stage.Output, error) {
	ours := -1
	for i, h := range letter.Headers { // the last count is ours: the original may have been a letter too
		if string(h.Key) == HeaderOriginalHeaders {
			ours = i
		}
	}
	if ours < 0 {
		return stage.Output{}, fmt.Errorf("a dead letter: header %s is missing", HeaderOriginalHeaders)
	}
	n, err := strconv.Atoi(string(letter.Headers[ours].Value))
	if err != nil || n < 0 || n > ours {
		return stage.Output{}, fmt.Errorf("a dead letter: header %s is %q, not a number from 0 to %d", HeaderOriginalHeaders, letter.Headers[ours].Value, ours)
	}
	out := stage.Output{Key: letter.Key, Value: letter.Value}
	if n > 0 {
		out.Headers = letter.Headers[:n:n]
	}
	for _, h := range letter.Headers[n:ours] {
		switch string(h.Key) {
		case HeaderErrorTopic:
			out.Topic = string(h.Value)
		case HeaderLost:
			return stage.Output{}, fmt.Errorf("a dead letter that has lost a part of its original: %s", h.Value)
		}
	}
	if out.Topic == "" {
		return stage.Output{}, fmt.Errorf("a dead letter: header %s is missing", HeaderErrorTopic)
	}
	return out, nil
}
