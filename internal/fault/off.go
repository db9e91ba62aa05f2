// Package fault lets a test build kill the process at the n-th time that it comes to a named point. In an ordinary build it
// does nothing and costs nothing.
package fault

// Names of the points.
const (
	BeforeEmit      = "before-emit"       // an output is handed to the producer
	AfterEmit       = "after-emit"        // all outputs of a message were handed over
	BeforeLocalRow  = "before-local-row"  // a row is about to be stored in LevelDB
	BeforeTableSend = "before-table-send" // the row is stored locally and not yet sent
	AfterTableSend  = "after-table-send"  // the row was handed to the producer
	BeforeSaid      = "before-said"       // the row was acknowledged; what it says is not yet sent
	BeforeCommit    = "before-commit"     // everything was acknowledged; the offset is not yet marked
	BeforeUpsert    = "before-upsert"     // a batch is about to go to the store
	AfterUpsert     = "after-upsert"      // the store has answered
	BeforeReceipt   = "before-receipt"    // the outputs of a batch are about to be sent
	BeforeRemoval   = "before-removal"    // a due removal is about to be done
	AfterRemoval    = "after-removal"     // the removal was done; its record is not yet sent
	BeforeLetter    = "before-letter"     // a dead letter is about to be said
)
