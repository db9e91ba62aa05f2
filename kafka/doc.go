// Package kafka is how the rest of the project meets Kafka: client settings that keep the delivery contract, the
// partitioner, the plan of topics, reading and writing single records, local stores for tables, and the check that the
// cluster is still the one whose offsets are stored.
//
// Where to find what:
//
//	config.go, security.go   Config: a fresh sarama configuration for each client
//	partition.go             murmur2, the one way from a key to a partition
//	plan.go                  Topics and the plan: names, partitions, settings
//	admin.go                 Diff and Apply: the plan against a cluster
//	cluster.go               CheckCluster: the epoch, topic ids and partition counts
//	record.go, reader.go     Record, and reading one record by its position
//	producer.go              Producer: acknowledged sends, bounded in time, count and bytes
//	stores.go, store.go      Stores: LevelDB below goka's tables and views
//	balance.go               StickyCopartition: partitions stay where their tables are
//
// What is not obvious:
//
//   - goka's *BuilderWithConfig functions change the configuration that they are given: call Config.Sarama once for each.
//   - Net.ReadTimeout must stay above Rebalance.Timeout: a join is answered only when all members have joined.
//   - A topic's max.message.bytes bounds batches, not records: a producer must not build batches above the smallest
//     limit, which is why Producer keeps one sarama producer for each limit.
package kafka
