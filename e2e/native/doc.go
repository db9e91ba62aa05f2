// Package native runs scenarios against real processes of the binary on real Kafka brokers and a real Weaviate server: on
// those that KAFKA_BROKERS and WEAVIATE_URL name, else natively on brokers and a server that it starts itself, and what is
// killed there is killed for good. It checks from outside, through the API, the log and the store's own interface.
//
// Because that takes minutes, and Java and Maven, nothing runs unless E2E_NATIVE is set: to 1 for a selection of less than
// five minutes, to all for everything.
package native
