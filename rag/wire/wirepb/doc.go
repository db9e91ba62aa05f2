// Package wirepb is the generated code of the .proto files in rag/wire/proto. Only rag/wire uses it.
package wirepb
