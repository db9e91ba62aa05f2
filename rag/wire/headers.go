package wire

import "github.com/waymarkhq/waymark/stage"

// Headers of a record of the documents topic. Where a name stands twice, the first one counts.
const (
	HeaderMessageID   = "message-id"
	HeaderContentType = "content-type"
	HeaderTitle       = "title"
	HeaderSource      = "source"
	// HeaderRaw with the value "true" says that the value is the document's own bytes whatever its content type is: a JSON
	// file, or bytes whose type nobody declared.
	HeaderRaw = "waymark-raw"
	// HeaderBlob names the content of a document that travels by reference, as rag.Blob.Key, and HeaderBlobSize its bytes as a
	// number. The value is then the document's JSON without text and content. Waymark alone writes them.
	HeaderBlob     = "waymark-blob"
	HeaderBlobSize = "waymark-blob-size"

	// CloudEvents in binary mode: source and id together name the submission.
	HeaderCESource      = "ce_source"
	HeaderCEID          = "ce_id"
	HeaderCEContentType = "ce_datacontenttype"
)

// Headers of a record of the dead-letters topic, behind those of the original. The first ones are Kafka Connect's.
const (
	HeaderErrorTopic     = "__connect.errors.topic"
	HeaderErrorPartition = "__connect.errors.partition"
	HeaderErrorOffset    = "__connect.errors.offset"
	HeaderErrorStage     = "__connect.errors.stage"
	HeaderErrorClass     = "__connect.errors.exception.class.name"
	HeaderErrorMessage   = "__connect.errors.exception.message"

	HeaderLetterMessageID   = "waymark-message-id"
	HeaderLetterDocumentID  = "waymark-document-id"
	HeaderLetterClass       = "waymark-class"
	HeaderLetterReason      = "waymark-reason"
	HeaderLetterAttempts    = "waymark-attempts"   // runs of this generation, from 1
	HeaderLetterVersion     = "waymark-version"    // rag.Version as a number
	HeaderLetterGeneration  = "waymark-generation" // from 0
	HeaderLetterEpoch       = "waymark-epoch"
	HeaderLetterFirstFailed = "waymark-first-failed-at" // RFC 3339, UTC
	HeaderLetterLastFailed  = "waymark-last-failed-at"  // RFC 3339, UTC
	HeaderLetterLost        = "waymark-lost"            // why the original could not be kept

	HeaderOriginalKey       = "waymark-key"                // absent: the original's key is null
	HeaderOriginalTimestamp = "waymark-original-timestamp" // Unix milliseconds, as Kafka has it
	HeaderOriginalHeaders   = "waymark-original-headers"   // how many of the leading headers are the original's
)

// first is the value of the first header of that name.
func first(headers []stage.Header, name string) (value []byte, ok bool) {
	for _, h := range headers {
		if string(h.Key) == name {
			return h.Value, true
		}
	}
	return nil, false
}

func header(name, value string) stage.Header {
	return stage.Header{Key: []byte(name), Value: []byte(value)}
}
