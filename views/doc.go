// Package views holds what the API reads: local copies of three tables, kept up to date from Kafka and never written to
// by it. Documents, Messages and Letters are typed and answer without asking anybody.
//
// A view is a goka view with three things added:
//
//   - it merges: a record that is older than the row (a stopped process that goes on writes such) changes nothing,
//   - it has indexes in memory, by status, time and the like, which are filled from the local store when it opens and
//     kept up with every record: a goka view can be asked by key only. One entry takes up to 200 bytes and its key,
//   - it knows how fresh it is: everything that was acknowledged before FreshAsOf is in it.
//
// Life of a view, all of it inside Run:
//
//	open stores, fill indexes -> recover (not ready) -> follow (ready) -> end of ctx
//	        ^                                               |
//	        +------- pause, growing <---- any error --------+
//
// Rows that cannot be decoded are skipped and counted. A row in a newer format holds the view where it is, not ready:
// a newer release has written it, and this one would lose it.
package views
