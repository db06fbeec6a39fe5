# The steps themselves are in .ci/run, so that CI and people run the same ones.

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

check: ## gofmt, vet, staticcheck, all unit tests with -race, changes of the API
	@bash .ci/run fmt vet lint unit api

test: ## unit tests only, without -race
	go test work

bench: ## every benchmark, with allocations
	go test -run '^$$' -bench . -benchmem work

integration: ## suites against real containerds and clusters (root, Linux; docs/integration.md)
	@bash .ci/run containerd kubernetes integration cluster

fuzz: ## every fuzz target for a few seconds
	@bash .ci/run fuzz

tidy: ## go mod tidy in every module
	@bash hack/tidy.sh

ci: ## everything that CI runs (installs Debian packages)
	@bash .ci/run

.PHONY: help check test bench integration fuzz tidy ci
