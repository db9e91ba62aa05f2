package wire

import (
	"errors"
	"fmt"
	"mime"
	"strconv"
	"strings"

	"github.com/waymarkhq/waymark/rag"
	"github.com/waymarkhq/waymark/stage"
)

// Decoded is a document as its record says it.
type Decoded struct {
	rag.Document
	// Rekey says that the record has no key but its JSON has an id: it has to be forwarded, byte for byte, under the key
	// Document.ID. Only ID and MessageID are filled in; the rest is judged where the record lands.
	Rekey bool
}

// Reject says why a record of the documents topic can never become a document, and under which ids it dies.
type Reject struct {
	DocumentID string
	MessageID  string
	// Foreign says that key or message id could not be used: both ids are the record's position in its foreign form.
	Foreign bool
	Reason  string // one of the rag.Reason constants
	Message string // one sentence for people, with the name of the field or header
}

// Err is the rejection as an error of the message; nil for a nil Reject.
func (r *Reject) Err() error {
	if r == nil {
		return nil
	}
	return stage.Reject(r.Reason, "%s", r.Message)
}

// DecodeDocument reads a record of the documents topic. pos names a record without a message id, and the ids under which an
// unusable one dies; for a forwarded record the caller sees to it that the message id of its origin stands in a header.
//
//   - The key is the document id. It wins over an id in the JSON; another id there is a Reject. A null key with an id
//     in the JSON gives Decoded.Rekey.
//   - The message id is the header message-id, else the field message_id, else "<ce_source>|<ce_id>" where both headers
//     are there (a '|' inside of the source as %7C), else pos.String().
//   - A null value deletes the document.
//   - The content type is the header content-type, else ce_datacontenttype; an empty one counts as missing. Without one, and with
//     application/json or text/json (whatever the parameters), the value is the JSON that ParseDocumentJSON reads, with
//     DefaultLimits. With any other type, those that end in +json included, it is the document's own bytes.
//   - The header waymark-raw with the value "true" makes the value the document's own bytes in any case. That is how a
//     JSON file travels as a document, and bytes whose type nobody declared.
//   - The header waymark-blob says that the content is in the blob store: Document.Blob names it, and the value is the JSON of
//     the document without it.
//   - The headers title and source are those of the document's own bytes; in JSON they stand in for missing fields.
//   - Of a header that occurs twice the first one counts.
//
// The content shares memory with r.Value where it is the document's own bytes.
func DecodeDocument(r stage.Record, pos rag.Position) (Decoded, *Reject) {
	d := recordDecoder{record: r, foreign: pos.String()}
	return d.decode()
}

type recordDecoder struct {
	record  stage.Record
	foreign string
}

func (d *recordDecoder) decode() (Decoded, *Reject) {
	if d.record.Key == nil {
		return d.withoutKey()
	}
	key := string(d.record.Key)
	if fault := idFault(key, rag.MaxDocumentIDBytes); fault != "" {
		return d.unusable(rag.ReasonBadKey, "key: "+fault)
	}
	blob, fault := BlobOf(d.record.Headers)
	isJSON := d.record.Value != nil && (blob != nil || fault != nil || d.isJSON())
	var doc rag.Document
	if isJSON && fault == nil {
		var err error
		doc, err = parseDocumentJSON(d.record.Value, DefaultLimits(), blob)
		errors.As(err, &fault)
	}
	messageID, badID := d.messageID(doc.MessageID)
	if fault != nil && fault.Reason == rag.ReasonBadMessageID {
		badID = fault
	}
	switch {
	case badID != nil:
		return d.unusable(rag.ReasonBadMessageID, badID.Error())
	case fault != nil && fault.Reason == rag.ReasonBadKey: // an id that no document can have is another one than the key
		return d.reject(messageID, rag.ReasonIDMismatch, fmt.Sprintf("id: %s; the key is %q", fault.Message, key))
	case fault != nil:
		return d.reject(messageID, fault.Reason, fault.Error())
	case doc.ID != "" && doc.ID != key:
		return d.reject(messageID, rag.ReasonIDMismatch, fmt.Sprintf("id: is %q, but the key is %q", doc.ID, key))
	}
	doc.ID, doc.MessageID = key, messageID
	if d.record.Value == nil {
		doc.Delete = true
		return Decoded{Document: doc}, nil
	}
	if !isJSON {
		doc.Content, doc.ContentType = d.record.Value, d.contentType()
	}
	if fault := d.describe(&doc); fault != nil {
		return d.reject(messageID, fault.Reason, fault.Error())
	}
	return Decoded{Document: doc}, nil
}

// withoutKey looks for an id in the JSON, whatever else is wrong there: that is judged in the document's own partition.
func (d *recordDecoder) withoutKey() (Decoded, *Reject) {
	if d.record.Value != nil && d.isJSON() {
		doc, _ := ParseDocumentJSON(d.record.Value, DefaultLimits())
		if doc.ID != "" {
			messageID, badID := d.messageID(doc.MessageID)
			if badID != nil {
				messageID = d.foreign
			}
			return Decoded{Document: rag.Document{ID: doc.ID, MessageID: messageID}, Rekey: true}, nil
		}
	}
	return d.unusable(rag.ReasonNoKey, "key: is null, and no JSON with an id says which document it is")
}

// messageID of a record whose JSON names its submission field ("" if it does not).
func (d *recordDecoder) messageID(field string) (string, *FieldError) {
	if id, ok := first(d.record.Headers, HeaderMessageID); ok {
		return usableMessageID(string(id), HeaderMessageID)
	}
	if field != "" {
		return field, nil
	}
	source, _ := first(d.record.Headers, HeaderCESource)
	id, _ := first(d.record.Headers, HeaderCEID)
	if len(source) > 0 && len(id) > 0 {
		return usableMessageID(strings.ReplaceAll(string(source), "|", "%7C")+"|"+string(id), HeaderCESource+" and "+HeaderCEID)
	}
	return d.foreign, nil
}

func usableMessageID(id, from string) (string, *FieldError) {
	if fault := idFault(id, rag.MaxMessageIDBytes); fault != "" {
		return "", &FieldError{Reason: rag.ReasonBadMessageID, Field: from, Message: fault}
	}
	return id, nil
}

func (d *recordDecoder) contentType() string {
	for _, name := range []string{HeaderContentType, HeaderCEContentType} {
		if v, ok := first(d.record.Headers, name); ok && len(v) > 0 {
			return string(v)
		}
	}
	return ""
}

// BlobOf is where the headers of a document record say that its content is; nil where it is in the record.
func BlobOf(headers []stage.Header) (*rag.Blob, *FieldError) {
	key, ok := first(headers, HeaderBlob)
	if !ok {
		return nil, nil
	}
	b, err := rag.ParseBlobKey(string(key))
	if err != nil {
		return nil, &FieldError{Reason: rag.ReasonInvalidField, Field: HeaderBlob, Message: err.Error()}
	}
	size, _ := first(headers, HeaderBlobSize)
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil || n < 1 {
		return nil, &FieldError{Reason: rag.ReasonInvalidField, Field: HeaderBlobSize, Message: fmt.Sprintf("is %q, not a number of bytes", brief(string(size)))}
	}
	b.Size = n
	return &b, nil
}

// ReferenceOf is where a kept document record says that its content is, and the content type of that; nil where it is in the
// record, or the record deletes.
func ReferenceOf(r rag.Raw) (b *rag.Blob, contentType string) {
	record := stage.Record{Key: r.Key, Value: r.Value}
	for _, h := range r.Headers {
		record.Headers = append(record.Headers, stage.Header(h))
	}
	if b, _ = BlobOf(record.Headers); b == nil || r.Value == nil {
		return nil, ""
	}
	doc, _ := DecodeDocument(record, rag.Position{})
	return b, doc.ContentType
}

func (d *recordDecoder) isJSON() bool {
	if v, _ := first(d.record.Headers, HeaderRaw); string(v) == "true" {
		return false
	}
	declared := d.contentType()
	if declared == "" {
		return true
	}
	media, _, err := mime.ParseMediaType(declared)
	if err != nil && !errors.Is(err, mime.ErrInvalidMediaParameter) {
		return false
	}
	return media == "application/json" || media == "text/json"
}

// describe takes from the headers what the value does not say, and checks it.
func (d *recordDecoder) describe(doc *rag.Document) *FieldError {
	lim := DefaultLimits()
	for _, h := range []struct {
		name string
		most int
		to   *string
	}{{HeaderTitle, lim.TitleBytes, &doc.Title}, {HeaderSource, lim.SourceBytes, &doc.Source}} {
		if *h.to == "" {
			v, _ := first(d.record.Headers, h.name)
			*h.to = string(v)
		}
		if fault := textFault(*h.to, h.most, false); fault != "" {
			return &FieldError{Reason: rag.ReasonInvalidField, Field: h.name, Message: fault}
		}
	}
	if fault := textFault(doc.ContentType, maxContentTypeBytes, true); fault != "" {
		return &FieldError{Reason: rag.ReasonInvalidField, Field: HeaderContentType, Message: fault}
	}
	return nil
}

// unusable rejects a record that must not die under the ids that it has.
func (d *recordDecoder) unusable(reason, message string) (Decoded, *Reject) {
	return Decoded{}, &Reject{DocumentID: d.foreign, MessageID: d.foreign, Foreign: true, Reason: reason, Message: message}
}

func (d *recordDecoder) reject(messageID, reason, message string) (Decoded, *Reject) {
	return Decoded{}, &Reject{DocumentID: string(d.record.Key), MessageID: messageID, Reason: reason, Message: message}
}

// DocumentRecord is the record of the documents topic that DecodeDocument reads back as d, for documents that keep the
// limits. With raw the value is the document's own bytes, never nil, marked with waymark-raw; title and source are headers. A
// document with metadata has no such form: it travels as JSON, like everything without raw. A delete is a null value with
// the message id alone; a document whose content is in the blob store is its JSON without it, with or without raw. The value
// shares memory with d.Content where it is the document's own bytes.
func DocumentRecord(d rag.Document, raw bool) (key, value []byte, headers []stage.Header) {
	if d.MessageID != "" {
		headers = append(headers, header(HeaderMessageID, d.MessageID))
	}
	key = []byte(d.ID)
	if d.Delete {
		return key, nil, headers
	}
	if d.Blob != nil {
		return key, EncodeDocumentJSON(d), append(headers, header(HeaderContentType, "application/json"),
			header(HeaderBlob, d.Blob.Key()), header(HeaderBlobSize, strconv.FormatInt(d.Blob.Size, 10)))
	}
	if !raw || len(d.Metadata) > 0 {
		return key, EncodeDocumentJSON(d), append(headers, header(HeaderContentType, "application/json"))
	}
	for _, h := range []struct{ name, value string }{
		{HeaderContentType, d.ContentType}, {HeaderTitle, d.Title}, {HeaderSource, d.Source},
	} {
		if h.value != "" {
			headers = append(headers, header(h.name, h.value))
		}
	}
	value = d.Content
	if value == nil {
		value = []byte{} // null would delete the document
	}
	return key, value, append(headers, header(HeaderRaw, "true"))
}
