package stage

// Delivery is the contract between a stage and the log it reads: what happens to a message when the process dies.
type Delivery string

// Contracts. docs/delivery.md tells how to choose.
const (
	// AtLeastOnce commits an offset once outputs and row are acknowledged: nothing is lost, and a message may be worked on
	// again, which the row recognises. The default.
	AtLeastOnce Delivery = "at-least-once"
	// AtMostOnce commits an offset before the work: nothing is worked on twice, and what was in hand when the process died
	// is lost.
	AtMostOnce Delivery = "at-most-once"
	// ExactlyOnce (Kafka to Kafka, by transactions) does not exist yet and is refused.
	ExactlyOnce Delivery = "exactly-once"
)
