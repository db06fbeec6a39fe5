#!/usr/bin/env bash
# Runs go mod tidy in each module. The nested modules require released versions of the
# modules beside them, which go.work replaces by this repository's directories; go mod
# tidy does not read go.work, so the replacements are in go.mod while it runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOWORK=off

core=github.com/kubeparts/kubeparts
go mod tidy
(
	cd kube
	trap 'go mod edit -dropreplace "$core"' EXIT
	go mod edit -replace "$core=../"
	go mod tidy
)
# Outside of go.work: it has its replacements in go.mod.
(cd kube/controllers && go mod tidy)
for dir in examples kube/provider/virtualkubelet test; do
	(
		cd "$dir"
		root=$(git rev-parse --show-cdup)
		trap 'go mod edit -dropreplace "$core" -dropreplace "$core/kube"' EXIT
		go mod edit -replace "$core=$root" -replace "$core/kube=${root}kube"
		go mod tidy
	)
done
