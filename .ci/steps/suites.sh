# Steps that run suites with real components: containerds, clusters, emulated machines, other
# users. KUBEPARTS_CI makes a skip a failure.

# The tests with Integration in their names of these packages are run with a containerd.
integration_packages=(internal/lab runtime/cri/fakecri agent/statuspage/internal/page examples/agent test/internal/isolate test/kubelet
	test/integration/agent test/integration/cri test/integration/dra test/integration/imagegc test/integration/statuspage test/integration/volume)

# Those with Cluster as well need a control plane; those of the last two take minutes.
cluster_packages=(kube/client kube/apitest/internal/conformance test/kubelet test/envtest test/virtualnode)
cluster_packages_full=(test/chaos test/hollow)

# Those of these packages need cgroups: v1 on the machine itself, v2 in an emulated one.
cgroup_packages=(cm cm/cgroups/host kube/kubelet test/integration/notify test/integration/oom)

# The suites of these packages, and of those below them, run as an ordinary user too.
unprivileged_packages=(runtime/process test/kubelet)

# The gate leaves out what kills or stops an agent or a runtime many times, and waits for minutes.
slow='IsKilled|KilledContainer|WhileTheAgentIsKilled|Hang|OverRestarts|TestIntegrationCluster$/the_API_server_is_away'

# integration runs the suites with containerd 2.4, in full also with Debian's 1.6 at the same time.
integration() {
	local daemons=("$containerd_dir/containerd") daemon running=() failed=0 status i
	[ "$run" != full ] || daemons+=(/usr/bin/containerd)
	[ -z "${KUBEPARTS_CONTAINERD:-}" ] || daemons=("$KUBEPARTS_CONTAINERD")
	compile_suites "${integration_packages[@]}"
	node_program
	export KUBEPARTS_KUBELET
	for i in "${!daemons[@]}"; do
		KUBEPARTS_CONTAINERD=${daemons[i]} run_suites Integration Cluster "${integration_packages[@]}" >"$scratch/daemon$i" 2>&1 &
		running+=($!)
	done
	for i in "${!running[@]}"; do
		status=0
		wait "${running[i]}" || status=$?
		"${daemons[i]}" --version
		cat "$scratch/daemon$i"
		failed=$(worse "$failed" "$status")
	done
	return "$failed"
}

# cluster runs what needs a control plane.
cluster() {
	local packages=("${cluster_packages[@]}")
	[ "$run" != full ] || packages+=("${cluster_packages_full[@]}")
	compile_suites "${packages[@]}"
	node_program
	export KUBEPARTS_KUBELET KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd}
	run_suites 'Integration.*Cluster' '' "${packages[@]}"
}

# cgroups runs what needs cgroups of the machine, and of emulated machines with cgroup v2, one of
# them with systemd.
cgroups() {
	unless_unchanged cm/ eviction/notify/ shutdown/logind/ kube/kubelet/ internal/lab/ runtime/process/ test/integration/notify/ test/integration/oom/
	compile_suites "${cgroup_packages[@]}"
	run_suites Integration '' "${cgroup_packages[@]}"
}

# compile_suites builds the tests of packages into $scratch/suites.
compile_suites() {
	local p
	mkdir -p "$scratch/suites"
	for p in "$@"; do
		go test -c -o "$scratch/suites/${p//\//-}.test" "./$p"
	done
}

# run_suites RUN SKIP PACKAGE… runs the tests that match RUN and not SKIP. Tests that fail are noted
# for a second try (see repeat_tests); the status is $repeatable if only such tests failed.
run_suites() {
	local run_pattern=$1 skip_pattern=$2 p begun status failed=0
	[ "$run" = full ] || skip_pattern=$slow${skip_pattern:+|$skip_pattern}
	shift 2
	for p in "$@"; do
		begun=$SECONDS status=0
		run_suite "$p" -test.run "$run_pattern" ${skip_pattern:+-test.skip "$skip_pattern"} || status=$?
		echo "$p: $((SECONDS - begun)) s"
		failed=$(worse "$failed" "$status")
	done
	return "$failed"
}

run_suite() {
	local package=$1 suite=$scratch/suites/${1//\//-}.test output tests test
	shift
	output=$(mktemp "$scratch/output.XXXXXX")
	(cd "$package" && KUBEPARTS_CI=1 "$suite" -test.timeout 15m -test.parallel 8 "$@") >"$output" 2>&1 && {
		cat "$output"
		return 0
	}
	cat "$output"
	tests=$(grep -aoE '^--- FAIL: \w+' "$output" | cut -d' ' -f3)
	grep -aq '^panic: \|^fatal error: ' "$output" && tests=
	[ -n "$tests" ] || return 1
	for test in $tests; do
		printf '%s\t%s\t%s\t%s\t%s\n' "$package" "$test" "$suite" "${KUBEPARTS_CONTAINERD:-none}" "$output" >>"$scratch/repeat"
	done
	return "$repeatable"
}

# worse prints the worse of two statuses: a failure, repeatable tests, success.
worse() {
	[ "$1" != 0 ] && [ "$1" != "$repeatable" ] && { echo "$1"; return; }
	[ "$2" = 0 ] && echo "$1" || echo "$2"
}

# repeat_tests runs the tests that failed once more, each alone, and prints FLAKY and both outputs of
# those that pass. It fails if one fails again.
repeat_tests() {
	local package test suite daemon output failed=0
	while IFS=$'\t' read -r package test suite daemon output; do
		echo "=== again, alone: $package $test $daemon"
		if (cd "$package" && KUBEPARTS_CI=1 KUBEPARTS_CONTAINERD=$daemon "$suite" -test.timeout 15m -test.v -test.run "^$test\$") >"$output.again" 2>&1 </dev/null; then
			flaky+=("FLAKY $package $test")
			printf 'FLAKY %s %s\n' "$package" "$test"
			sed 's/^/  first:  /' "$output"
			sed 's/^/  second: /' "$output.again"
		else
			cat "$output.again"
			failed=1
		fi
	done <"$scratch/repeat"
	rm "$scratch/repeat"
	return $failed
}

# unprivileged runs suites as an ordinary user, in a copy, since the user may not be able to read the
# clone, and with programs that are built here, since it need not have the go command.
unprivileged() {
	local user=kubeparts-ci dir p out package
	id "$user" >/dev/null 2>&1 || useradd --system --create-home --shell /bin/sh "$user"
	dir=$(mktemp -d)
	trap "rm -rf '$dir'" EXIT
	cp -r docs examples "$dir" # which some tests read
	go build -o "$dir/kubelet" ./examples/kubelet
	for p in "${unprivileged_packages[@]}"; do
		for package in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "./$p/..."); do
			out=$dir/${package#github.com/kubeparts/kubeparts/}
			mkdir -p "$out/tmp"
			cp -r "${package#github.com/kubeparts/kubeparts/}/." "$out"
			go test -c -o "$out/suite.test" "$package"
			chown -R "$user:" "$dir"
			echo "$package as $user"
			(cd "$out" && runuser -u "$user" -- env -i PATH="$PATH" HOME="/home/$user" TMPDIR="$out/tmp" KUBEPARTS_PROCESSES=1 KUBEPARTS_KUBELET="$dir/kubelet" \
				./suite.test -test.timeout 10m -test.parallel 8)
		done
	done
}
