// Package ledger holds the rows of the five groups, their merges, and every decision of the delivery contract as a pure
// function of a row and a record. Nothing here reads a clock, a network or a disk; the processors do what is decided here.
package ledger
