// Package engine runs stages on goka under the delivery contract: it commits in order, sends outputs and rows before a
// message counts as done, follows its own table, retries, holds during outages, fires timers and rebuilds what ends.
//
// One record's way through it:
//
//	claim.Messages -> gate.deliver -> goka -> partition.receive -> handler (or batch)
//	    -> outputs sent -> row merged, stored and sent -> all acknowledged -> said sent -> acknowledged -> gate.finish
//
// States of a message: in flight, then finished (may be committed once all before it are) or abandoned (the partition
// was lost, or this process cannot finish it: the next owner gets it again). Invariants:
//
//   - an offset is marked only when every delivered record before it is finished;
//   - a finished record's outputs and row have been acknowledged by Kafka;
//   - nothing is applied by a partition whose session is over, or whose process slept for half a session;
//   - goroutines of a partition end before goka closes its storage.
package engine
