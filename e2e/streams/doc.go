// Package streams measures the engine on a real Kafka broker beside bare sarama, bare goka and Kafka Streams: the same work,
// in a process of its own each, in one run. `make bench-kafka` runs it; it needs
// Java and Maven.
package streams
