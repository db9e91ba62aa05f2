// Package checker says, from outside, whether a run of the pipeline has kept the delivery contract: it reads the log as
// any Kafka client would, asks the HTTP API, and opens the store's file. It shares no code with the product's splitter,
// its rules or its sinks; what must be served is told by a sequential model of a few lines. The invariants:
//
//	I1 every submission has exactly one final status, and one that the model allows
//	I2 the store serves chunks 0 to n-1 of the version that the model expects, each equal to its slice of the text, all of
//	   them together everything but white space; a reader sees that at any moment
//	I3 the store holds no object of an older, dead or deleted version
//	I4 a vector is what the fake embedder gives for its text
//	I5 no offset is marked for commit above the lowest one whose outputs and rows are not acknowledged
//	I6 every dead version has one letter with the very bytes of its record
//	I7 no status and no served version ever goes back
//	I8 when the faults are over, everything is done within a bounded time, and no lag is left
//	I9 memory, file descriptors and goroutines stay bounded
package checker
