package wire

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/waymarkhq/waymark/rag"
)

// Limits of a document's JSON. A field that is 0 has the value that DefaultLimits gives it.
type Limits struct {
	Bytes         int // of the whole JSON
	Depth         int // of nesting; the object itself is 1
	Metadata      int // entries
	MetadataBytes int // of one entry, as "key=value"
	TitleBytes    int // title and source travel with every chunk
	SourceBytes   int
}

// DefaultLimits are the limits of the documents topic: 12 MiB, nested 64 deep, 64 metadata of 1 KiB, title and source of 8 KiB.
func DefaultLimits() Limits {
	return Limits{
		Bytes:         12 << 20,
		Depth:         64,
		Metadata:      rag.MaxMetadata,
		MetadataBytes: rag.MaxMetadataBytes,
		TitleBytes:    8 << 10,
		SourceBytes:   8 << 10,
	}
}

func (l Limits) orDefault() Limits {
	d := DefaultLimits()
	or := func(n *int, d int) {
		if *n == 0 {
			*n = d
		}
	}
	or(&l.Bytes, d.Bytes)
	or(&l.Depth, d.Depth)
	or(&l.Metadata, d.Metadata)
	or(&l.MetadataBytes, d.MetadataBytes)
	or(&l.TitleBytes, d.TitleBytes)
	or(&l.SourceBytes, d.SourceBytes)
	return l
}

const maxContentTypeBytes = 256

// FieldError says what is wrong with a document, its record or a letter.
type FieldError struct {
	Reason  string // one of the rag.Reason constants
	Field   string // name of the field or header, "metadata.<key>" inside of the metadata; "" for the whole
	Message string // for people, to be read behind the name of the field
}

func (e *FieldError) Error() string {
	if e.Field == "" {
		return e.Message
	}
	return e.Field + ": " + e.Message
}

// CheckDocumentID tells whether id may name a document: 1 to 512 bytes of UTF-8 without control characters. The error is a
// *FieldError with the reason bad_key.
func CheckDocumentID(id string) error {
	if fault := idFault(id, rag.MaxDocumentIDBytes); fault != "" {
		return &FieldError{Reason: rag.ReasonBadKey, Field: "id", Message: fault}
	}
	return nil
}

// CheckMessageID tells whether id may name a submission: 1 to 256 bytes of UTF-8 without control characters. The error is a
// *FieldError with the reason bad_message_id.
func CheckMessageID(id string) error {
	if fault := idFault(id, rag.MaxMessageIDBytes); fault != "" {
		return &FieldError{Reason: rag.ReasonBadMessageID, Field: "message_id", Message: fault}
	}
	return nil
}

func idFault(id string, most int) string {
	if id == "" {
		return "is empty"
	}
	return textFault(id, most, true)
}

// textFault says what is wrong with a short text; "" if nothing is.
func textFault(s string, most int, refuseControls bool) string {
	if len(s) > most {
		return fmt.Sprintf("has %d bytes, more than the limit of %d", len(s), most)
	}
	if !utf8.ValidString(s) {
		return "is not valid UTF-8"
	}
	if refuseControls {
		for _, r := range s {
			if unicode.IsControl(r) {
				return fmt.Sprintf("has the control character U+%04X", r)
			}
		}
	}
	return ""
}
