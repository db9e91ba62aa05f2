# What a developer does here. `make` alone explains it. PKG restricts a target to some packages: make test PKG=./rag/...
SHELL := /bin/bash
PKG ?= ./...

.DEFAULT_GOAL := help
.PHONY: help build run test e2e e2e-native e2e-compose chart lint fmt generate bench bench-kafka bench-weaviate fuzz eval f1 parse-speed faults chaos soak cover mutants vuln clean

help: ## this list
	@echo "make TARGET [PKG=./some/package/...]"
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the binary, bin/waymark
	go build -o bin/waymark ./cmd/waymark

run: ## everything in one process, with the example articles, at http://127.0.0.1:8484
	go run ./cmd/waymark up examples/articles

test: ## every test that this machine can run, then the linters; says what it ran on (TEST_FLAGS="-short -run X")
	@tools/test $(PKG)

e2e: ## scenarios on the best servers that there are: given ones, Docker, native, embedded; says which (E2E_BACKEND=one of them)
	@tools/e2e

e2e-native: ## scenarios on three real Kafka brokers and a real Weaviate, natively: about 5 minutes (ALL=1: everything, 30; RUN=regexp)
	E2E_BACKEND=$(or $(E2E_BACKEND),native) E2E_NATIVE=$(if $(ALL),all,1) go test -count=1 -p 1 -parallel 3 -timeout 40m $(if $(RUN),-run '$(RUN)') -v ./e2e/kafkalocal ./e2e/native

e2e-compose: ## docker-compose.yml with three brokers, scaled, and killed one service at a time, in images that are built here where none can be pulled
	e2e/images/build.sh
	E2E_COMPOSE=1 go test -count=1 -timeout 20m -run '$(or $(RUN),Compose)' -v ./e2e/native

chart: ## the Helm chart, rendered and decoded as strictly as a Kubernetes API server would
	go -C deploy/test test -count=1 ./...

lint: ## gofmt, go vet, golangci-lint with the rules of import (built once into the cache)
	@tools/lint $(PKG)

fmt: ## format the Go files
	gofmt -w $$(git ls-files -co --exclude-standard -- '*.go')

generate: ## write the generated files again
	go generate $(PKG)

bench: ## the benchmarks (BENCH=regexp, BENCHTIME=1s)
	go test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime $(or $(BENCHTIME),1s) -benchmem $(PKG)

bench-kafka: ## the engine beside sarama, goka and Kafka Streams, and in 1, 2 and 4 processes, on a real broker (BENCH=Beside MESSAGES=300000)
	E2E_NATIVE=1 BENCH_MESSAGES=$(MESSAGES) go test -run '^$$' -bench '$(or $(BENCH),.)' -benchtime 1x -timeout 60m ./e2e/streams

bench-weaviate: ## the sink and the pipeline beside bare loops on real brokers and a real Weaviate (DOCUMENTS=1500 ROUNDS=3 NODES=1)
	E2E_BACKEND=native E2E_NATIVE=1 E2E_BENCH=1 BENCH_DOCUMENTS=$(DOCUMENTS) BENCH_ROUNDS=$(ROUNDS) BENCH_NODES=$(NODES) go test -count=1 -timeout 30m -run 'BesideABareLoop$$' -v ./e2e/native

eval: ## how well questions find their passages, per mode of search and splitter: docs/quality.md
	go run ./internal/eval/cmd/eval

fuzz: ## every fuzz target, FUZZTIME (10s) each
	@tools/fuzz $(PKG)

f1: ## how much of the text the parsers find beside pdftotext, pandoc and LibreOffice: the table of docs/formats.md
	@WAYMARK_F1=1 go test -count=1 -run '^TestF1AgainstReferences$$' -v ./rag/parse | grep -E '^\||FAIL|needed'

parse-speed: ## what parsing large files takes beside pdftotext, pandoc and LibreOffice (FILES=pattern, such as *.pdf)
	@PARSE_SPEED='$(or $(FILES),*)' go test -count=1 -run '^TestSpeedBesideTools$$' -v ./rag/parse | grep -E '^\||FAIL|speed_test'

faults: ## every row of the fault matrix in its full length, about 20 minutes
	@tools/chaos faults

chaos: ## random pairs and triples of faults: SEEDS=10 seeds FROM=1 on, or the one SEED=n that failed
	@SEEDS='$(SEEDS)' FROM='$(FROM)' SEED='$(SEED)' tools/chaos chaos

soak: ## changes and faults for MINUTES=30, and what long-lived processes hold in the end
	@MINUTES='$(MINUTES)' SEED='$(SEED)' tools/chaos soak

cover: ## test coverage: the total, and coverage.out for go tool cover -html
	go test -coverpkg=$$(go list $(PKG) | paste -sd ,) -coverprofile=coverage.out $(PKG)
	@go tool cover -func=coverage.out | tail -n 1

mutants: ## bring bugs back one at a time and show which test notices (ONLY=name,… ROTATE=5 by commit, ALL=1, OUTSIDE=1, WRITE=1: docs/mutants.md, docs/reliability.md)
	@tools/mutants $(if $(ONLY),-only $(ONLY)) $(if $(ROTATE),-rotate $(ROTATE)) $(if $(ALL),-all) $(if $(OUTSIDE),-outside) $(if $(WRITE),-write docs/$(if $(OUTSIDE),reliability,mutants).md)

vuln: ## known vulnerabilities in what is used; needs the database of vulnerabilities online
	$$(tools/tool govulncheck) $(PKG)

clean: ## remove what was built here; the cache of tools stays
	rm -rf bin dist coverage.out
