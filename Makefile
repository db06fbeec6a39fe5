# The steps themselves are in .ci, so that CI and developers run the same ones.

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

check: ## gofmt, generated files, vet, types, staticcheck, all unit tests, and with -race what has changed
	@bash .ci/run fmt generated vet types lint unit race

test: ## unit tests only, without -race
	go test work

generate: ## write all generated documents and expected results anew; read the difference
	@bash .ci/run generate

rules: ## write docs/rules/index.md, which is not committed
	go test ./internal/test/repo -run TestTheRuleBook -update

bench: ## every benchmark, with allocations
	go test -run '^$$' -bench . -benchmem work

integration: ## suites against a real containerd and a cluster (root, Linux; docs/integration.md)
	@bash .ci/run programs integration cluster

fuzz: ## every fuzz target for a few seconds
	@bash .ci/run fuzz

tidy: ## go mod tidy in every module
	@bash hack/tidy.sh

ci: ## what CI runs (installs Debian packages); `bash .ci/run full` is everything
	@bash .ci/run

.PHONY: help check test generate rules bench integration fuzz tidy ci
