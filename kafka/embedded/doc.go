// Package embedded runs a Kafka broker inside this process, for one machine: no cluster, no replication, no security,
// loopback only. Its state lives in a folder and survives the end of the process, however it ends. Starting takes some
// milliseconds, also with 100,000 records in the log and after kill -9.
//
// What is acknowledged survives kill -9 of the process, because it has been given to the operating system. It survives
// the loss of power only with Options.SyncWrites, which flushes two files to the disk for each batch of each partition:
// like Kafka itself the broker does not wait for the disk by default, but Kafka has replicas.
//
// The broker never compacts or deletes by its own clock what has to stay: kafka.PlanOptions.Embedded sees to it. The
// folder grows.
package embedded
