# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list.
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

.PHONY: up
up: ## Start a real one-node cluster with everything in it, and show the main job. Root.
	@hack/up.sh real --tour

.PHONY: down
down: ## Remove that cluster and all that it left on the machine. Root.
	@hack/down.sh real

.PHONY: up-light
up-light: ## Start a cluster of simulated nodes, in seconds, with both programs beside it. Root.
	@hack/up.sh light

.PHONY: down-light
down-light: ## Remove that cluster. Root.
	@hack/down.sh light

.PHONY: test
test: ## Run all tests. Those that need a cluster start it. Root.
	@hack/test.sh

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	@hack/test.sh unit

.PHONY: test-integration
test-integration: ## Run the tests on light clusters, which they start. Root.
	@hack/test.sh integration

.PHONY: test-invariants
test-invariants: ## Claim at random against several servers while things fail; INVARIANTS="-seed=1 -claims=100000" for another run. Root.
	@hack/test.sh invariants

.PHONY: test-e2e
test-e2e: ## Run the tests on the real cluster, which is started and left up. Root.
	@hack/test.sh e2e

.PHONY: test-recovery
test-recovery: ## End all processes of the real cluster and see it come back, then go without a trace. A new one is left up. Root.
	@hack/test.sh recovery

.PHONY: fuzz
fuzz: ## Fuzz each fuzz target for ten seconds.
	@hack/fuzz.sh

.PHONY: scale
scale: ## Count what 2,000 Sandboxes cost on a light cluster, and fail if it is more than it must be. Root.
	@hack/scale.sh

.PHONY: bench
bench: ## Measure claims on a light cluster, then latencies on the real one. Root.
	@hack/bench.sh

.PHONY: build
build: ## Build the programs into _output/bin.
	@hack/build.sh

.PHONY: generate
generate: ## Regenerate all generated code.
	@hack/update-codegen.sh

.PHONY: lint
lint: ## Check style, imports, licence headers and shell scripts.
	@hack/lint.sh

.PHONY: verify
verify: ## Check that generated code is what the sources say, then lint.
	@hack/verify.sh
