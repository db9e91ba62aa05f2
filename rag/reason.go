package rag

// Reasons why a version dies. They are API: stable, lower case, and each has a sentence in docs/reasons.md.
const (
	ReasonNoKey           = "no_key"
	ReasonBadKey          = "bad_key"
	ReasonBadMessageID    = "bad_message_id"
	ReasonMessageIDReused = "message_id_reused"
	ReasonIDMismatch      = "id_mismatch"
	ReasonBrokenJSON      = "broken_json"
	ReasonUnknownField    = "unknown_field"
	ReasonInvalidField    = "invalid_field"
	ReasonEmptyText       = "empty_text"
	ReasonUnsupportedType = "unsupported_type"
	ReasonBrokenFile      = "broken_file"
	ReasonNoText          = "no_text"
	ReasonScanWithoutText = "scan_without_text"
	ReasonEncrypted       = "encrypted"
	ReasonArchiveBomb     = "archive_bomb"
	ReasonTooLarge        = "too_large"
	ReasonTooManyChunks   = "too_many_chunks"
	ReasonTimeout         = "timeout"
	ReasonMemory          = "memory"
	ReasonPanic           = "panic"
	ReasonBadVector       = "bad_vector"
	ReasonEmbedderRefused = "embedder_refused"
	ReasonStoreRefused    = "store_refused"
	ReasonAttemptsSpent   = "attempts_spent"
	ReasonTooManyVersions = "too_many_versions"
	ReasonUnknownFormat   = "unknown_format"
	ReasonBlobMissing     = "blob_missing" // the content travelled by reference, and the blob store does not have it
	ReasonBlobCorrupt     = "blob_corrupt" // what the blob store has is not what was written
	ReasonRecordLost      = "record_lost"  // a retry found that the document record could not be kept
)
