#!/bin/sh
# Makes wirepb/*.pb.go from the .proto files in waymark/v1. Needs protoc (Debian: protobuf-compiler, 3.21 or later);
# protoc-gen-go is built from the version of google.golang.org/protobuf that go.mod names.
set -eu
cd "$(dirname "$0")/.."
command -v protoc >/dev/null || { echo "protoc is missing: apt-get install protobuf-compiler" >&2; exit 1; }
plugin=$(mktemp -d)
trap 'rm -rf "$plugin"' EXIT
go build -o "$plugin/protoc-gen-go" google.golang.org/protobuf/cmd/protoc-gen-go
rm -f wirepb/*.pb.go
protoc --plugin="$plugin/protoc-gen-go" --proto_path=proto \
	--go_out=. --go_opt=module=github.com/waymarkhq/waymark/rag/wire \
	proto/waymark/v1/records.proto proto/waymark/v1/rows.proto
