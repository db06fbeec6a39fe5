# Long steps, for `full`: suites of Kubernetes, and comparisons with a kubelet. Each runs alone by its
# name as well, after `bash .ci/run packages programs suites`.

# facts compares the lists of the code that come from Kubernetes (feature gates, sysctls, refusals of
# configurations) with the source of that version.
facts() { (cd tools/kubernetes && GOWORK=off GOFLAGS=-trimpath go test -count=1 ./facts); }

# run_test runs a command of test/ with the containerd of the other steps.
run_test() { KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd} go run ./test "$@"; }

# conformance runs Kubernetes' tests of nodes in clusters: all but those that
# test/conformance/excluded.txt names. One that fails fails the step.
conformance() {
	programs
	conformance_tools
	# shellcheck disable=SC2086
	run_test conformance ${KUBEPARTS_CONFORMANCE:-}
}

# dra does the same for dynamic resource allocation.
dra() {
	programs
	dra_tools
	# shellcheck disable=SC2086
	run_test conformance --suite dra ${KUBEPARTS_DRA:-}
}

# e2e_node runs Kubernetes' suite of tests of kubelets against a kubelet and against the node: those
# of node conformance, or those that match KUBEPARTS_E2E_NODE or the further arguments of .ci/run. A
# test that passes only with the kubelet fails the step unless test/e2enode/differences.txt names it.
e2e_node() {
	programs
	conformance_images
	bash hack/kubelet.sh "$kubernetes_version" kubelet e2e_node
	run_test e2enode --focus "${KUBEPARTS_E2E_NODE:-\[NodeConformance\]}"
}

# compare runs the same pods on a kubelet and on the node, and compares what they request from
# containerd, report and leave on the machine. It writes docs/differences.md; a difference without a
# reason in test/compare/reasons.txt fails it.
compare() {
	programs
	bash hack/kubelet.sh "$kubernetes_version"
	# shellcheck disable=SC2086
	run_test compare ${KUBEPARTS_COMPARE:---report docs/differences.md}
}

# oracle plays scenarios, for each of which Kubernetes' kubelet violates an invariant, on that kubelet and on
# the node, which must violate none.
oracle() {
	local scenarios=test/oracle/scenarios
	programs
	bash hack/kubelet.sh "$kubernetes_version"
	go run ./test oracle known $scenarios/{completed-restart,ephemeral-removed,init-restart-count,succeeded-then-failed}.txt \
		--ours "$KUBEPARTS_KUBELET"
}

# modern compares pods on a kubelet and on the node as compare does, in an emulated machine with cgroup v2,
# once with each cgroup driver.
modern() {
	programs
	bash hack/kubelet.sh "$kubernetes_version"
	run_test modern
}

# adopt changes nodes over from real kubelets, which it builds, and back. KUBEPARTS_KUBELETS=v1.37.2
# is that version only.
adopt() {
	local versions=${KUBEPARTS_KUBELETS:-v1.34.4,v1.35.4,v1.36.3,v1.37.2} version
	programs
	for version in ${versions//,/ }; do
		bash hack/kubelet.sh "$version" || return 1
	done
	KUBEPARTS_CI=1 KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd} KUBEPARTS_KUBELETS=$versions \
		go test -count=1 -v -timeout 170m -run Integration ./test/adopt
}

# kubeadm makes a cluster of two machines, which are namespaces of this one, with kubeadm and the node in
# the kubelet's place: init, join, CoreDNS, tests of conformance, upgrade, the way back to the kubelet,
# reset, a second control plane; and a cluster of one node on an emulated machine with systemd and cgroup v2.
kubeadm() {
	programs
	coredns
	cluster_tools
	bash hack/kubelet.sh "$kubernetes_version"
	export KUBEPARTS_KUBELET
	KUBEPARTS_CI=1 KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd} \
		go test -count=1 -v -timeout 60m ./test/kubeadm
}

# observe runs what reads the metrics of a node: kubectl top, with a metrics-server.
observe() {
	metrics_server
	KUBEPARTS_CI=1 KUBEPARTS_OBSERVE=1 KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd} \
		go test -count=1 -timeout 10m -v -run 'IntegrationClusterObserved|IntegrationClusterWorkloadsOnMachines' ./test/kubelet ./test/virtualnode
}

# footprint runs the script that compares the agent with a kubelet, in a short form.
footprint() { bash hack/footprint.sh --short; }
