// Package ingest sends files, folders and lines of JSON to the API and follows every document to its final status.
//
//	sources ──walk──> tasks ──workers──> accepted ──tracker──> outcomes
//
// A job is bounded in what it holds: some uploads at once, one batch per file of lines, and a number of documents that
// wait for their final status; when these are all taken, reading stops. Every submission has a message id that is made
// here, so that whatever is repeated after a broken connection counts once.
package ingest
