// Package rag holds the nouns of the document pipeline: documents and their versions, chunks, vectors, the records
// that travel between the groups, statuses, reasons and the deterministic ids that make a repeated write harmless.
//
// It performs nothing and imports the standard library only (and a UUID), so that every other package can share it.
package rag
