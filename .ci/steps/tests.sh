# Steps that run tests without a container runtime or a cluster.

# Results in the cache of the go command apply only to a command with the same flags.
go_test=(go test -timeout 15m)
[ "${KUBEPARTS_FRESH_SEEDS:-}" != 1 ] || go_test+=(-count=1)

# unit runs the README's test command. Results are
# taken from the cache of the go command where nothing changed: it sees files of a test's own
# module and the variables that the test reads, of which KUBEPARTS_SOURCES and KUBEPARTS_KUBELET
# stand for the rest.
unit() {
	grep -qxF '$ go test work' README.md || { echo "README.md has another test command"; return 1; }
	node_program
	export KUBEPARTS_SOURCES KUBEPARTS_KUBELET
	KUBEPARTS_SOURCES=$(git ls-files -co --exclude-standard '*.go' '*.mod' README.md | sort | xargs -d '\n' cat 2>/dev/null | sha256sum)
	# shellcheck disable=SC2086
	"${go_test[@]}" ${KUBEPARTS_PACKAGES:-work}
}

# always_raced are the packages with the most concurrency.
always_raced=(podworker pleg status prober volume agent runtime/cri kube/client)

# race runs tests with the race detector: for changed packages, their importers, and those with the most
# concurrency; in full for all. It waits a second at the end of each process, of which
# the tests start hundreds.
race() {
	local packages=(work)
	if [ "$run" != full ]; then
		mapfile -t packages < <({ changed_packages; printf 'github.com/kubeparts/kubeparts/%s\n' "${always_raced[@]}"; } | sort -u)
		echo "${#packages[@]} packages"
	fi
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=10 "${go_test[@]}" -race "${packages[@]}"
}

# simulate runs more seeds than the unit tests do. Most of what a run leaves is garbage, of which
# there may be more here than usual.
simulate() {
	if [ "$run" = gate ]; then
		seeds 0 1500 ./sim
		seeds 0 200 ./sim/simcri
		return
	fi
	seeds 0 "${KUBEPARTS_SEEDS:-10000}" ./sim
	seeds 0 600 ./sim/simcri
	seeds "$(date +%s)" 2000 ./sim
	seeds "$(date +%s)" 600 ./sim/simcri
	CGO_ENABLED=1 seeds 10000 200 -race ./sim
	CGO_ENABLED=1 seeds 1000 60 -race ./sim/simcri
}

seeds() {
	echo "$2 seeds from $1: ${*:3}"
	GOGC=400 KUBEPARTS_SIM_FROM=$1 KUBEPARTS_SIM_SEEDS=$2 \
		"${go_test[@]}" -timeout 60m -v -run '^TestInvariantsHold|^TestASeedIsARun' "${@:3}" | grep -v '^ *---\|^==='
}

# mutants plants defects in copies of the code, one at a time, and fails if the simulation or the tests
# of the package do not find each of them; in the gate only those in changed packages. In full,
# recordings of defective agents are shrunk to tests as well.
mutants() {
	if [ "$run" = gate ]; then
		export KUBEPARTS_MUTANTS_CHANGED
		KUBEPARTS_MUTANTS_CHANGED=$(changed_files)
		[ -n "$KUBEPARTS_MUTANTS_CHANGED" ] || exit "$skipped"
	fi
	go test -count=1 -timeout 60m -tags mutants -v -run 'TestTheSimulationCatches|TestTheUnitTestsCatch' ./internal/mutants | grep -v '^===\|^PASS'
	[ "$run" = gate ] || go test -count=1 -timeout 60m -run '^TestDefectsAreShrunkToTests$' ./sim/replay -defects
}

# fuzz gives each target ten seconds of a processor (KUBEPARTS_FUZZ: another time, as -fuzztime
# takes it). An input that fails is printed; in testdata/fuzz of the package the unit tests try it
# from then on.
fuzz() {
	local targets failed=0
	targets=$(git ls-files '*_test.go' | xargs -r grep -oE '^func Fuzz[A-Za-z0-9_]+' /dev/null | sed 's/:func / /' || :)
	[ -n "$targets" ] || { echo "no fuzz targets"; return 1; }
	export -f fuzz_target
	xargs -P "$(nproc)" -L 1 bash -c 'fuzz_target "$0" "$1"' <<<"$targets" || failed=1
	echo "$(wc -l <<<"$targets") fuzz targets"
	return $failed
}

# fuzz_target fuzzes one target. If the end of the time interrupts an execution, the go command fails with
# "context deadline exceeded" and without an input; then it is repeated once.
fuzz_target() {
	local out run=(go test -run '^$' -fuzz "^$2\$" -fuzztime "${KUBEPARTS_FUZZ:-10s}" -parallel 1 -timeout 15m "./$(dirname "$1")")
	out=$("${run[@]}" 2>&1) || {
		grep -q '^    context deadline exceeded$' <<<"$out" && ! grep -q 'Failing input' <<<"$out" && out=$("${run[@]}" 2>&1)
	} || {
		printf '%s %s FAILED\n%s\n' "$1" "$2" "$out"
		return 1
	}
	printf '%s %s: %s\n' "$(dirname "$1")" "$2" "$(grep -oE 'execs: [0-9]+' <<<"$out" | tail -1)"
}

# flood opens 20,000 idle connections to each listener of an agent, and 5,500 with bad tokens to
# the kubelet's API, and measures the effect on other clients.
flood() {
	KUBEPARTS_FLOOD=1 go test -count=1 -v -timeout 10m -run '^(TestIdleConnections|TestGoodTokensAreAnsweredDuringAFloodOfBadOnes)$' \
		-p 1 ./kube/server ./test/kubelet | grep -v '^==='
}

# controllers tests a module outside of go.work, in memory and with the API server.
controllers() {
	unless_unchanged kube/controllers/ kube/apitest/ kube/fakenode/ kube/client/ go.mod kube/go.mod
	(cd kube/controllers && GOWORK=off KUBEPARTS_CI=1 go test -vet=all -timeout 15m ./...)
}

# virtualkubelet checks a module outside of go.work.
virtualkubelet() {
	unless_unchanged kube/provider/ kube/metrics/ cm/stats/ runtime/runtime.go go.mod kube/go.mod
	local staticcheck
	staticcheck=$(GOWORK=off go tool -n -modfile=tools/go.mod staticcheck)
	cd kube/provider/virtualkubelet
	go vet ./... && "$staticcheck" ./... && go test -timeout 10m ./...
}
