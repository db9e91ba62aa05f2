// Package blob keeps the content of large documents outside of the log: in a folder, or in a bucket.
//
// Content is written before the record that refers to it, under its own SHA-256 and the day of the writing, and is never
// changed. It is synced to disk in a folder; a bucket has acknowledged it. Reading verifies it. What nobody refers to any
// more is collected by a Collector.
//
// A store has a mark, written with its first blob. Where the mark is missing the store is away (a folder that is not
// mounted, another bucket), so that a document whose blob is not found there does not die. Who has seen the mark of a folder
// never writes it anew; who has not cannot tell a folder that was never mounted from a new store.
package blob
