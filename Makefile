# Trellis. `make up` starts a whole installation on this machine, `make help` tells the rest.

# Name of the local landscape; several of different names run side by side.
NAME ?= local
# Versions of Kubernetes that are built beside the default one, separated by commas, such as 1.35.4.
KUBERNETES_VERSIONS ?=

# How many nodes the landscape's runtime cluster has, such as 3: each is a zone of the seed. A new landscape has one,
# and one that runs keeps what it has.
NODES ?=

# How long each target is fuzzed.
TIME ?= 10m
# How many rows of end-to-end tests run side by side (docs/testing.md).
PARALLEL ?= 3

LANDSCAPE = bin/landscape --name $(NAME)
COUNT = $(if $(NODES),--nodes $(NODES))
VERSIONS = $(if $(KUBERNETES_VERSIONS),--kubernetes-version $(KUBERNETES_VERSIONS))
export CGO_ENABLED = 0
# Tests are compiled as programs are, so that both share what the Go command keeps, in whatever folder the tree lies.
# Without what debuggers need, a test is linked in little more than half the time.
TEST_FLAGS = -trimpath -ldflags=-s
# Once only, also where make calls make: programs that were built with other flags are not taken from the cache.
export GOFLAGS := $(filter-out $(TEST_FLAGS),$(GOFLAGS)) $(TEST_FLAGS)

# The checker of known vulnerabilities, which asks a database on the internet.
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.9.0

.PHONY: help up down status test test-race test-e2e test-browser test-upgrade test-nodes test-lost-seed test-outage \
	bench chaos fuzz generate check vulncheck images landscape browser release clean

help: ## Show this help
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: landscape ## Start the landscape, or go on where an earlier start stopped
	@$(LANDSCAPE) up $(VERSIONS) $(COUNT)

down: landscape ## End the landscape and remove all of it
	@$(LANDSCAPE) down

status: landscape ## Show the health of the landscape's parts
	@$(LANDSCAPE) status

images: landscape ## Build programs and images, and start nothing
	@$(LANDSCAPE) images $(VERSIONS)

# The packages that take longest come first: the go command keeps the order, and as they wait much of the time, the rest
# is built and run meanwhile; test/precedence gives them the processors when they want them. What go vet would say is
# said by make check. Memory is not short: with less garbage collection an API server starts with a seventh less of a
# processor's time. What go test -exec runs would never be taken for known.
test: bin/kubernetes ## Run unit and integration tests
	GOGC=400 go test -vet=off -p 6 -timeout 40m ./pkg/etcd \
		./test/integration/federation ./test/integration/garden ./test/integration/gardenlet ./test/kills ./...
	go -C test/schedulerfilters test -timeout 10m ./...
	go -C test/objectstores test -timeout 10m ./...
	go -C images/objectstore test -timeout 10m ./...
	go -C images/kubernetes test -timeout 10m ./await ./reconnect

test-race: bin/kubernetes ## Run the federation's, or PACKAGES', with the race detector; slow; needs a C compiler
	CGO_ENABLED=1 go test -race -count=1 -parallel 2 -timeout 90m \
		$(or $(PACKAGES),./pkg/federation/... ./test/integration/federation)

test-e2e: browser ## Run the end-to-end tests on the running landscape
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 78m -parallel $(PARALLEL) -tags e2e ./test/e2e

browser: landscape ## Get the browser of the end-to-end tests into .cache; nothing is installed
	@$(LANDSCAPE) browser

test-browser: browser ## Do in the dashboard what people do, also what takes minutes, and take pictures
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 60m -tags e2e \
		-run 'TestRows/browser|TestRows/member1/.*InABrowser|TestPeopleInABrowser' ./test/e2e -long-journeys

test-upgrade: ## Upgrade a shoot while requests are counted; the landscape needs KUBERNETES_VERSIONS=1.35.4
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 90m -tags e2e,upgrade -run TestUpgrade ./test/e2e

test-nodes: ## Drain a zone of the seed while requests are counted; the landscape needs NODES=3
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 60m -tags e2e,nodes \
		-run 'TestNodesOfTheLandscape|TestAZoneIsLost' ./test/e2e

test-lost-seed: ## Lose a managed seed, and restore its shoot on the landscape's own seed
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 60m -tags e2e,lostseed -run TestASeedIsLost ./test/e2e

test-outage: ## Take a seed away for OUTAGE (30m), and see that a shoot of it goes on
	TRELLIS_LANDSCAPE=$(NAME) go test -count=1 -v -timeout 90m -tags e2e,outage -run TestASeedIsAway ./test/e2e \
		-outage $(or $(OUTAGE),30m)

# AREAS are some of federation, fleet, placement, garden, dashboard, gateway, restore, up, shoot, growth, density,
# upgrade and fresh; the last three only by name. Flags come before them: AREAS='--density-count 20 density'. What each
# area measures and needs, `go run ./test/bench --help` tells.
bench: landscape bin/kubernetes ## Measure what matters, or AREAS of it, and write docs/benchmarks.md
	go run ./test/bench $(AREAS)

chaos: landscape ## Take both cores from two landscapes for ten minutes, then have 1,000 faults happen to an etcd; slow
	go build -o bin/chaos ./test/chaos
	bin/chaos
	go test -count=1 -v -timeout 0 -parallel 6 -run Linearizable ./pkg/etcd -faults 1000

fuzz: ## Fuzz every parser and validator, each for TIME=10m; hack/fuzz.sh chooses among them
	hack/fuzz.sh $(TIME)

generate: ## Write generated code and custom resource definitions anew
	hack/generate.sh

check: ## Check formatting, code, imports between layers, the dashboard's pages, and generated code
	hack/check.sh

vulncheck: ## Look for known vulnerabilities in what is built; needs the internet
	go run $(GOVULNCHECK) ./...

# BASE is where the archives will be offered; the manifest for Krew says so.
release: ## Build trellisctl for all platforms into bin/release: VERSION=v0.1.0 BASE=https://HOST/PATH
	go run ./hack/release bin/release "$(VERSION)" "$(BASE)"

clean: ## Remove what was built; landscapes must have been ended
	rm -rf bin .cache

landscape:
	@go build -o bin/landscape ./cmd/landscape

# Integration tests run the real kube-apiserver.
bin/kubernetes:
	@$(MAKE) --no-print-directory images
