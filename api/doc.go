// Package api is the HTTP interface of Waymark: it takes documents in, says what became of them, searches what is
// served, and lets people look after dead letters.
//
// What it promises:
//
//   - A 202 is given only after the Publisher returned nil: the record is kept. Where it cannot promise that, it says 503.
//   - Every refusal is problem+json (RFC 9457) with a stable type, and names the field or the limit. The exceptions are
//     requests that are not HTTP: net/http answers those in plain text before this package sees them.
//   - Memory is bounded: bodies count against one budget from their first byte to the acknowledgement of their record,
//     and a body above its limit is never held.
//   - A reader never sees a mix of two versions: a search fixes the served revision of a document when it first meets it.
//
// A document id is everything after /v1/documents/, percent-decoded once. Slashes may stand as they are or as %2F: both
// name the same document. "%", "?" and "#" must be encoded; a trailing slash belongs to the id. The same holds for
// message ids after /v1/messages/.
//
// The package knows no broker and no store. It reads and writes through the one-method interfaces in deps.go; fakes of
// them are in apitest.
package api
