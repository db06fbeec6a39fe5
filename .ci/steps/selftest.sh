# The tests of this script.

# gate_test runs the script in a copy of the tree, changed in ways that have to make it red, or not.
gate_test() {
	local dir commit
	dir=$(mktemp -d)
	commit=$(git stash create)
	trap "git worktree remove --force '$dir/tree'; rm -rf '$dir'" EXIT
	git worktree add -q --detach "$dir/tree" "${commit:-HEAD}"
	cd "$dir/tree"
	export KUBEPARTS_PACKAGES="-run TestHelpListsEveryFlag ./kube/kubelet/config ./test/kubelet"

	expect 0 "summary of steps" unit generated # which fills the cache
	edit kube/kubelet/config/nodeflags.go 's/"hostname-override"/"hostname-instead"/'
	expect 1 "FAIL: TestHelpListsEveryFlag" unit
	git checkout -q .

	edit docs/configuration.md '$s/$/ edited/'
	expect 1 "go test ./kube/kubelet/config -update writes it" generated
	git checkout -q .

	edit pleg/doc.go '1s/^/ /'
	expect 1 "gofmt would change: pleg/doc.go" fmt
	git checkout -q .

	expect 3 "left behind: process" leaves_a_process
	expect 3 "left behind: file" leaves_a_file
	sed -n 's/^left behind: file //p' ../output | xargs -r rm -f
	expect 0 "FLAKY pleg TestThatPassesAgain" fails_once
	expect 1 "FAILED" fails_twice
	expect 1 "fails_early      FAILED" fails_early fails_once
	expect 2 "no step nonsense" nonsense
	goes_on_with_full
}

# goes_on_with_full fails if a full run would leave out a step that has not succeeded on this commit.
goes_on_with_full() {
	local run=full cache=$dir
	succeeded_before unit && return 1
	record_step unit
	succeeded_before unit || return 1
	succeeded_before uni && return 1
	edit pleg/doc.go '$s/$/ /'
	succeeded_before unit && return 1
	git checkout -q .
	run=gate
	succeeded_before unit && return 1
	echo "a full run goes on with the steps that have not succeeded"
}

# expect STATUS TEXT STEP… runs steps, and fails if their exit code or output is another one.
expect() {
	local want=$1 text=$2 status=0
	shift 2
	env -u KUBEPARTS_LEFTOVERS bash .ci/run "$@" >../output 2>&1 || status=$?
	if [ "$status" != "$want" ] || ! grep -qF -- "$text" ../output; then
		cat ../output
		echo "bash .ci/run $*: exit code $status instead of $want, or no text '$text'"
		return 1
	fi
	echo "bash .ci/run $*: exit code $status, as expected"
}

# edit changes a file, and fails if that changes nothing.
edit() {
	sed -i "$2" "$1"
	if git diff --quiet -- "$1"; then
		echo "nothing to edit in $1: $2"
		return 1
	fi
}

leaves_a_process() { setsid sleep 600 & }
leaves_a_file() { mktemp; }

fails_once() {
	fake_suite '[ -e "$0.again" ] || { touch "$0.again"; echo "--- FAIL: TestThatPassesAgain (0.01s)"; exit 1; }'
	run_suites Integration '' pleg
}

fails_twice() {
	fake_suite 'echo "--- FAIL: TestThatFailsAgain (0.01s)"; exit 1'
	run_suites Integration '' pleg
}

# fake_suite makes a shell script the test program of pleg.
fake_suite() {
	mkdir -p "$scratch/suites"
	printf '#!/bin/bash\n%s\n' "$1" >"$scratch/suites/pleg.test"
	chmod +x "$scratch/suites/pleg.test"
}

fails_early() {
	false
	echo "a failed command does not end a step"
}
