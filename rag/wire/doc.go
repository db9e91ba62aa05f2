// Package wire is how the nouns of the document pipeline travel: the codecs of internal records and rows (protobuf in the
// envelope of package codecs), and the two surfaces that others read and write too: documents as JSON or as their own bytes,
// and dead letters as plain Kafka records.
//
// The generated code in wirepb is committed. To make it again after a change of a .proto file, install protoc (Debian:
// protobuf-compiler) and run go generate in this folder.
package wire

//go:generate proto/generate.sh
