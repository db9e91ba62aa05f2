// Package checkpoint is the row by which a stage recognises the messages that it has seen, beside the state that it keeps.
//
// A message may reach a stage more than once. After a crash, or when a partition moves, every message that was not
// committed is delivered again; a producer that did not get its answer sends again; an operator resets offsets. Rules.Apply
// looks at the row of the message's key and says what the message is:
//
//	the row says                           decision    what follows
//	nothing of it                          New         the step runs; its outputs are sent, the row is written
//	its very position                      Redelivery  the outcome is taken from the row; all outputs are sent and the row is
//	                                                   written AGAIN
//	its id at another position             Duplicate   nothing: whoever sent it got what it wanted the first time
//	nothing of its id, and ids at its      Old         nothing: it was committed long ago
//	position are forgotten already
//
// # The bug that this package prevents
//
//	if row != nil {
//		return // seen already
//	}
//
// A row that knows a message does not prove that the message is done. The row is stored locally before anybody has
// acknowledged the outputs, and the process may end in between. The message comes again, the row says "seen", the stage
// returns without its outputs, the offset is committed, and they are lost for good. What says that a message is done is
// its committed offset and nothing else. So a message that comes again at its own position was not finished as far as
// anybody knows: its outputs are sent again and its row is written again. Whoever reads them recognises the repetition by
// the message id, in the same way.
//
// # Outcomes
//
// Outputs that are sent again must be those of the first time, or their readers would see two truths. But by then the
// state has moved on: later messages of the key may have been applied before the crash. An output that tells the balance
// after a payment could not be made again. Therefore the row keeps what followed from each message, the outcome, as long
// as it remembers the message, and outputs are made from the outcome alone. State changes once, when the message is New.
//
// # Memory
//
// A message is remembered for a time and by number (Keep), and never forgotten before it is committed. The whole row is
// written for every message of its key, so memory costs: a key with a thousand remembered messages writes some hundred
// kilobytes a time.
//
// # Two writers
//
// A stopped process that wakes up may write an old row late, so rows are merged (Rules.Merge), never replaced: in any
// order, in any grouping and repeated, with one result. There are two ways, and the state decides which one is right:
//
//   - The state is a function of the log: it follows from the messages of one topic in their order, as a balance does. Of
//     two rows the one that is further along the log is right, as a whole. This is the default. It needs one input topic;
//     what else changes the state (a timer that fires) sends a record to that topic. And it needs a step that always decides
//     alike: what may fail for a passing reason, a call to a service, belongs into a stage of its own before it.
//   - The state holds the effect of each message by itself, as a set, a maximum or a map by message id does. Then states
//     can be merged (Rules.MergeState), and messages may come from several topics.
//
// Rows can be written as JSON if state and outcome can.
package checkpoint
