# Everything a newcomer needs: `make quickstart`, then `make test`.
BIN     := bin/plimsoll
TOOLS   := $(CURDIR)/.tools
# A semantic version, also before the first tag and without a repository.
VERSION := $(shell git describe --tags --dirty 2>/dev/null || echo v0.0.0-g$$(git describe --always --dirty 2>/dev/null || echo unknown))
export PATH := $(TOOLS)/bin:$(PATH)

.PHONY: build quickstart test agents cluster-test race lint web bench release clean

build: ## bin/plimsoll, the complete binary (the Go toolchain alone makes it)
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN) ./cmd/plimsoll

quickstart: build ## the main job on embedded systems: a run directory and its page, in about 100 seconds
	$(BIN) run quickstart

test: ## install what the tests need and may be installed, then run all of them; tests of what is missing are skipped
	XDG_DATA_HOME="$(TOOLS)/share" scripts/test-deps.sh
	go vet ./...
	XDG_DATA_HOME="$(TOOLS)/share" scripts/test.sh ./...

agents: ## the conformance suite on hosts that are reached through agents alone; AGENTS="./system/nginx": of some systems
	XDG_DATA_HOME="$(TOOLS)/share" PLIMSOLL_HOSTS=agents scripts/test.sh -p=1 -timeout=30m $(or $(AGENTS),./system/...)

cluster-test: build ## runs on a real Kubernetes of three nodes, made on this machine for it (root); CLUSTER=short: some of them
	XDG_DATA_HOME="$(TOOLS)/share" scripts/cluster/test.sh $(if $(CLUSTER),-$(CLUSTER))

race: ## the concurrent packages under the race detector
	CGO_ENABLED=1 scripts/test.sh -race -p=1 ./collect ./engine ./record ./testbed/link ./testbed/agent ./httpload

lint: ## gofmt, go vet, staticcheck, tsc, and the committed bundle against a fresh build
	scripts/lint.sh

web: ## rebuild the page's bundle from web/
	cd web && npm ci --no-audit --no-fund && npm run build

bench: build ## side-by-side figures against k6 and wrk, the recorder, links and page; simulations; kills
	scripts/bench.sh

release: ## dist/: archives for amd64 and arm64, bills of materials, checksums; the same commit and Go give the same bytes
	cd web && npm ci --no-audit --no-fund --ignore-scripts
	go run ./release -out dist

clean:
	rm -rf bin dist .tools web/node_modules
