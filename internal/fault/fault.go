// Package fault lets a test build (build tag faults) do what no test can do from outside: kill or stop the process at the
// n-th time that it comes to a named point, shift its clock, break its parser, and write down what it delivers and
// commits. In an ordinary build every function does nothing and costs nothing.
//
// The test build reads these variables:
//
//	FAULT_POINT   <point>:<n>[:kill|stop] what happens at the n-th hit of a point; several are separated by commas. What the store
//	              does wrong is scheduled here too, without kill and stop
//	FAULT_LOG     a file that gets a line for every fault, before it happens: a fault that was not seen shows nothing
//	FAULT_TRACE   a file that gets a line of JSON for every event of Trace
//	FAULT_FORMATS ReadNext or WriteNext: what the release is that the process stands for
//	FAULT_CLOCK   how far the clock of the process is off, such as 1h or -1h
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
	BeforeReply     = "before-reply"      // Kafka has a record that the API accepted; the client does not know it yet
	AfterBlob       = "after-blob"        // a blob was written; the record that refers to it is not yet sent
)

// Names of what the store does wrong at the n-th write, in place of killing the process.
const (
	StoreTakesAPart = "store-takes-a-part" // one object of the batch is refused, the others are written
	StoreIsUnheard  = "store-is-unheard"   // nothing is written, and nobody knows: the answer is lost
)

// Points lists those that all documents come to: not AfterBlob, which only large ones do.
func Points() []string {
	return []string{
		BeforeEmit, AfterEmit, BeforeLocalRow, BeforeTableSend, AfterTableSend, BeforeSaid, BeforeCommit,
		BeforeUpsert, AfterUpsert, BeforeReceipt, BeforeRemoval, AfterRemoval, BeforeLetter, BeforeReply,
	}
}

// Values of FAULT_FORMATS.
const (
	ReadNext  = "read-next"  // it reads the next format of records and rows, and writes today's
	WriteNext = "write-next" // it writes the next format
)

// Events of Trace. A message is delivered, then finished or abandoned; meanwhile it is held by everything that is sent
// on its behalf. Marked is the offset that may be committed: the next one to read.
const (
	Claimed   = "claimed"
	Delivered = "delivered"
	Held      = "held"
	Acked     = "acked"
	Failed    = "failed"
	Finished  = "finished"
	Abandoned = "abandoned"
	Marked    = "marked"
)

// Texts that make the parser of a test build panic, or kill the process, when a document contains them.
const (
	PanicText = "«the parser panics»"
	KillText  = "«the parser kills the process»"
)
