// Package processors holds the five groups of the document pipeline: what the chunker, the embedder, the indexer, the
// tracker and the dead-letter group do with one record. They decide with rag/ledger and return what must follow; the
// engine performs it. Which topics they read and write stands in package pipeline, on one screen.
package processors
