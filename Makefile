# agentgraph: make demo shows it, make test proves it, make help lists the rest.

SHELL := /bin/sh
.DEFAULT_GOAL := help

BIN := bin/agentgraph
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/agentgraph
GO ?= go
# How long each fuzz target runs under make fuzz.
FUZZTIME ?= 20s

# The Go tool does not see that a linked archive changed; the keyed folder in
# its environment makes it link again.
link_native = native=$$(scripts/native.sh) && export CGO_LDFLAGS="-O2 -g -L$$native"
# A checkout that git will not read (another owner) still builds.
buildvcs := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

.PHONY: help demo build test test-clients check bench bench-peers fuzz native model generate clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: build ## build, fetch the small model, answer examples/reviews and show the answers
	@scripts/demo.sh

build: ## bin/agentgraph
	@scripts/deps.sh go
	@$(link_native) && $(GO) build -trimpath -ldflags=-w -buildvcs=$(buildvcs) -o $(BIN) ./cmd/agentgraph

test: ## every test: without cgo, then with it under the race detector
	@scripts/deps.sh go clients
	@$(link_native) && scripts/test.sh

test-clients: ## only the tests with clients in Python and TypeScript
	@scripts/deps.sh go clients
	@$(link_native) && scripts/test-clients.sh

check: ## formatting, vet with and without cgo, import rules, generated files
	@scripts/deps.sh go
	@$(link_native) && scripts/check.sh

bench: build ## how fast: answers, masks, runner
	@scripts/bench.sh

bench-peers: build ## the same answers on other engines, alternating (installs them into a scratch folder)
	@scripts/bench-peers.sh

fuzz: ## each fuzz target for FUZZTIME (20s)
	@scripts/deps.sh go
	@$(link_native) && scripts/fuzz.sh $(FUZZTIME)

native: ## the native library, once per content and machine
	@scripts/native.sh

model: ## the small model of the examples; MODEL=path.gguf uses another
	@scripts/model.sh

generate: ## tables and schemas that come from code
	@$(link_native) && $(GO) generate ./...

clean: ## what make made in this checkout; the cache stays
	rm -rf bin native/target
	rm -f native/lib
	@echo "the cache stays: $(CACHE)"
