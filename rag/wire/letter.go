package wire

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/waymarkhq/waymark/internal/mutant"
	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/stage"
)

// maxSentenceBytes bounds the sentences that go into a letter's headers: a letter must fit where its original did, and a
// foreign service may have answered with a page.
const maxSentenceBytes = 4 << 10

// LetterRecord is the record of the dead-letters topic for l, which people and common tools can read. The key is the letter's
// id and the value the original's, byte for byte; the headers are the original's in their order, then Kafka Connect's and
// ours. A null value is the letter of a delete, or of an original that was lost.
//
// DecodeLetter gives l back, except that sentences (the failure's message, why the original was lost) are cut at 4 KiB and made valid
// UTF-8, the original's timestamp is kept in milliseconds, and Subject.Partition is taken to be Position.Partition.
func LetterRecord(l rag.Letter) (key, value []byte, headers []stage.Header) {
	if mutant.Active == mutant.LetterReencoded {
		l.Original.Value = []byte(strings.ToValidUTF8(string(l.Original.Value), "\uFFFD"))
	}
	headers = make([]stage.Header, 0, len(l.Original.Headers)+20)
	for _, h := range l.Original.Headers {
		headers = append(headers, stage.Header(h))
	}
	add := func(name, value string) { headers = append(headers, header(name, value)) }
	number := func(name string, n int64) { add(name, strconv.FormatInt(n, 10)) }

	add(HeaderErrorTopic, l.Position.Topic)
	number(HeaderErrorPartition, int64(l.Position.Partition))
	number(HeaderErrorOffset, l.Position.Offset)
	add(HeaderErrorStage, l.Failure.Stage)
	add(HeaderErrorClass, l.Failure.Reason)
	add(HeaderErrorMessage, shortSentence(l.Failure.Message))
	add(HeaderLetterMessageID, l.MessageID)
	add(HeaderLetterDocumentID, l.DocumentID)
	add(HeaderLetterClass, string(l.Failure.Class))
	add(HeaderLetterReason, l.Failure.Reason)
	number(HeaderLetterAttempts, int64(l.Attempt)+1)
	number(HeaderLetterVersion, int64(l.Revision.Version))
	number(HeaderLetterGeneration, int64(l.Revision.Generation))
	number(HeaderLetterEpoch, int64(l.Position.Epoch))
	for _, t := range []struct {
		name string
		at   time.Time
	}{{HeaderLetterFirstFailed, l.FirstFailed}, {HeaderLetterLastFailed, l.LastFailed}} {
		if !t.at.IsZero() {
			add(t.name, formatTime(t.at))
		}
	}
	if l.Lost != "" {
		add(HeaderLetterLost, shortSentence(l.Lost))
	}
	if l.Original.Key != nil {
		headers = append(headers, stage.Header{Key: []byte(HeaderOriginalKey), Value: l.Original.Key})
	}
	if !l.Original.Timestamp.IsZero() {
		number(HeaderOriginalTimestamp, l.Original.Timestamp.UnixMilli())
	}
	number(HeaderOriginalHeaders, int64(len(l.Original.Headers))) // the last one: see splitHeaders
	return []byte(l.ID), l.Original.Value, headers
}

// formatTime writes RFC 3339, which ends with the year 9999. A producer that gives its records microseconds for
// milliseconds gets years beyond: those are written as Unix milliseconds, so that its letters stay readable.
func formatTime(t time.Time) string {
	if y := t.UTC().Year(); y < 0 || y > 9999 {
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func parseTime(s string) (time.Time, error) {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		return time.UnixMilli(ms).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	return t.UTC(), err
}

// shortSentence is a sentence of at most maxSentenceBytes, cut at the border of a character.
func shortSentence(s string) string {
	s = sentence(s)
	if len(s) <= maxSentenceBytes {
		return s
	}
	cut := maxSentenceBytes - len("…")
	for !startsRune(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

func startsRune(b byte) bool { return b&0xC0 != 0x80 }

// DecodeLetter reads a record of the dead-letters topic; timestamp is the record's and stands in for the times of failure
// where a letter does not say them. Headers that a tool has added behind ours do no harm, and neither do headers of the
// original that have our names. The error is a *FieldError that names the header; such a record was not written by LetterRecord.
// The letter shares memory with the record.
func DecodeLetter(key, value []byte, headers []stage.Header, timestamp time.Time) (rag.Letter, error) {
	original, ours, err := splitHeaders(headers)
	if err != nil {
		return rag.Letter{}, err
	}
	d := letterDecoder{headers: ours}
	if len(key) == 0 {
		d.fail("key", "is missing")
	}
	partition := int32(d.number(HeaderErrorPartition, math.MinInt32, math.MaxInt32))
	l := rag.Letter{
		ID: string(key),
		Subject: rag.Subject{
			DocumentID: d.text(HeaderLetterDocumentID),
			MessageID:  d.text(HeaderLetterMessageID),
			Revision: rag.Revision{
				Version:    rag.Version(d.number(HeaderLetterVersion, 0, math.MaxInt64)),
				Generation: int(d.number(HeaderLetterGeneration, 0, math.MaxInt32)),
			},
			Attempt:   int(d.number(HeaderLetterAttempts, 1, math.MaxInt32+1) - 1),
			Partition: partition,
		},
		Position: rag.Position{
			Topic:     d.text(HeaderErrorTopic),
			Epoch:     int(d.number(HeaderLetterEpoch, 0, math.MaxInt32)),
			Partition: partition,
			Offset:    d.number(HeaderErrorOffset, math.MinInt64, math.MaxInt64),
		},
		Failure: rag.Failure{
			Stage:   d.text(HeaderErrorStage),
			Class:   d.class(),
			Reason:  d.text(HeaderLetterReason),
			Message: d.text(HeaderErrorMessage),
		},
		Original:    rag.Raw{Value: value, Headers: original, Timestamp: d.milliseconds(HeaderOriginalTimestamp)},
		FirstFailed: d.time(HeaderLetterFirstFailed, timestamp),
		LastFailed:  d.time(HeaderLetterLastFailed, timestamp),
	}
	if lost, ok := first(ours, HeaderLetterLost); ok {
		l.Lost = string(lost)
	}
	if k, ok := first(ours, HeaderOriginalKey); ok {
		l.Original.Key = append([]byte{}, k...)
	}
	if d.err != nil {
		return rag.Letter{}, d.err
	}
	return l, nil
}

// splitHeaders finds the headers of the original and ours. The last count is ours: whatever the original has stands before
// it, and what stands behind it a tool has added.
func splitHeaders(headers []stage.Header) (original []rag.Header, ours []stage.Header, err error) {
	for i := len(headers) - 1; i >= 0; i-- {
		if string(headers[i].Key) != HeaderOriginalHeaders {
			continue
		}
		n, err := strconv.Atoi(string(headers[i].Value))
		if err != nil || n < 0 || n > i {
			return nil, nil, letterError(HeaderOriginalHeaders, "is %q, not a number from 0 to %d", brief(string(headers[i].Value)), i)
		}
		for _, h := range headers[:n] {
			original = append(original, rag.Header(h))
		}
		return original, headers[n:i], nil
	}
	return nil, nil, letterError(HeaderOriginalHeaders, "is missing")
}

func letterError(field, format string, args ...any) *FieldError {
	return &FieldError{Reason: rag.ReasonInvalidField, Field: field, Message: fmt.Sprintf(format, args...)}
}

// letterDecoder reads our headers and keeps the first fault.
type letterDecoder struct {
	headers []stage.Header
	err     error
}

func (d *letterDecoder) fail(field, format string, args ...any) {
	if d.err == nil {
		d.err = letterError(field, format, args...)
	}
}

func (d *letterDecoder) text(name string) string {
	v, ok := first(d.headers, name)
	if !ok {
		d.fail(name, "is missing")
	}
	return string(v)
}

func (d *letterDecoder) number(name string, least, most int64) int64 {
	s := d.text(name)
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < least || n > most {
		d.fail(name, "is %q, not a number from %d to %d", brief(s), least, most)
		return least
	}
	return n
}

func (d *letterDecoder) class() rag.Class {
	class := rag.Class(d.text(HeaderLetterClass))
	for _, c := range failureClasses {
		if c == class {
			return c
		}
	}
	d.fail(HeaderLetterClass, "is %q, which is unknown", brief(string(class)))
	return ""
}

func (d *letterDecoder) time(name string, missing time.Time) time.Time {
	v, ok := first(d.headers, name)
	if !ok {
		return missing
	}
	t, err := parseTime(string(v))
	if err != nil {
		d.fail(name, "is %q, not a time as in RFC 3339", brief(string(v)))
	}
	return t
}

func (d *letterDecoder) milliseconds(name string) time.Time {
	if _, ok := first(d.headers, name); !ok {
		return time.Time{}
	}
	return time.UnixMilli(d.number(name, math.MinInt64, math.MaxInt64)).UTC()
}
