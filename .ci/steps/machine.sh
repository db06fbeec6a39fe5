# Steps that install and build what the other steps use. What is there already is kept.

debian=(dbus-daemon containerd runc containernetworking-plugins busybox-static iproute2 iptables gcc libc6-dev etcd-server
	curl chromium fonts-dejavu-core w3m qemu-system-x86 systemd netcat-openbsd rpm bind9-dnsutils)

containerd_version=v2.4.2
containerd_dir=$cache/containerd-$containerd_version

kubernetes_version=v1.37.2 # as in internal/lab and tools/kubernetes/go.mod
kubernetes_dir=$cache/kubernetes-$kubernetes_version

metrics_server_version=v0.9.0 # as in internal/lab
metrics_server_dir=$cache/metrics-server-$metrics_server_version

coredns_version=v1.14.6 # as kubeadm of kubernetes_version, and in test/kubeadm
coredns_dir=$cache/coredns-$coredns_version

conformance_dir=$cache/conformance-$kubernetes_version

packages() {
	local missing=() p
	for p in "${debian[@]}"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
	done
	echo "missing Debian packages: ${missing[*]:-none}"
	[ ${#missing[@]} -eq 0 ] || install_debian "${missing[@]}"
	# No later step downloads modules of the tests.
	go list -deps -test work >/dev/null
	# These modules are not in go.work, because they are three times as large.
	(cd kube/controllers && GOWORK=off go list -deps -test ./... >/dev/null)
	(cd kube/provider/virtualkubelet && go list -deps -test ./... >/dev/null)
}

install_debian() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q
	apt-get install -q -y --no-install-recommends "$@"
}

# programs builds what runs pods and clusters, and the complete node. The compiler takes a tenth less
# time if it may use more memory.
programs() {
	local -x GOGC=400
	containerd
	kubernetes
	kernel
	node_program
}

# suites builds the programs of the long steps of `full`.
suites() {
	conformance_tools
	dra_tools
	cluster_tools
	metrics_server
	coredns
	bash hack/kubelet.sh "$kubernetes_version" kubelet e2e_node
}

# containerd builds the newer of the two versions; the older one is Debian's.
containerd() {
	local module=github.com/containerd/containerd/v2/cmd name
	for name in containerd containerd-shim-runc-v2 ctr; do
		[ -x "$containerd_dir/$name" ] || GOBIN=$containerd_dir go install "$module/$name@$containerd_version"
	done
	"$containerd_dir/containerd" --version
}

# version_flags are the linker flags that set the version of a program of Kubernetes, which
# clients parse.
version_flags() {
	local package=k8s.io/component-base/version minor=${kubernetes_version#v1.}
	echo "-s -w -X $package.gitVersion=$kubernetes_version -X $package.gitMajor=1 -X $package.gitMinor=${minor%.*}"
}

# kubernetes builds the control plane, kube-proxy, kubectl, kubeadm and etcd: one program with seven names.
kubernetes() {
	local name
	if [ ! -x "$kubernetes_dir/kubeadm" ]; then
		(cd tools/kubernetes && GOWORK=off go build -o "$kubernetes_dir/kube-apiserver" -ldflags "$(version_flags)" .)
		for name in kube-controller-manager kube-scheduler kube-proxy kubectl kubeadm; do
			ln -sf kube-apiserver "$kubernetes_dir/$name"
		done
	fi
	"$kubernetes_dir/kube-apiserver" --version
	"$kubernetes_dir/kubectl" version --client
}

# kernel gets Debian's kernel for clouds, which has cgroup v2 built in, for the emulated machines.
kernel() {
	local dir=$cache/kernel work package
	if [ ! -s "$dir/vmlinuz" ]; then
		mkdir -p "$dir"
		work=$(mktemp -d)
		trap "rm -rf '$work'" EXIT
		apt-get update -q
		package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image/ {print $2}')
		(cd "$work" && apt-get download -q "$package" && dpkg -x ./*.deb x)
		cp "$work"/x/boot/vmlinuz-* "$dir/vmlinuz.new"
		mv "$dir/vmlinuz.new" "$dir/vmlinuz"
	fi
	qemu-system-x86_64 --version | head -1
	ls -l "$dir/vmlinuz"
}

# node_program builds the complete node for the tests that run it as a process, in a directory
# that is named after its content: the go command takes the result of such a test from its
# cache as long as KUBEPARTS_KUBELET is the same.
node_program() {
	local work
	work=$(mktemp -d "$cache/node.XXXXXX")
	go build -o "$work/kubelet" ./examples/kubelet
	KUBEPARTS_KUBELET=$cache/node/$(sha256sum "$work/kubelet" | cut -c1-16)/kubelet
	if [ ! -x "$KUBEPARTS_KUBELET" ]; then
		mkdir -p "${KUBEPARTS_KUBELET%/*}"
		find "$cache/node" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} + # but not that of another run
		mv "$work/kubelet" "$KUBEPARTS_KUBELET"
	fi
	rm -rf "$work"
	echo "$KUBEPARTS_KUBELET"
}

metrics_server() {
	[ -x "$metrics_server_dir/metrics-server" ] ||
		GOBIN=$metrics_server_dir go install -ldflags '-s -w' "sigs.k8s.io/metrics-server/cmd/metrics-server@$metrics_server_version"
}

coredns() {
	[ -x "$coredns_dir/coredns" ] ||
		GOBIN=$coredns_dir go install -ldflags '-s -w' "github.com/coredns/coredns@$coredns_version"
}

# conformance_images builds the programs in the images of Kubernetes' suites, and ginkgo, from
# their source, in a module of their own.
conformance_images() {
	local images=k8s.io/kubernetes/test/images
	[ ! -s "$conformance_dir/localhost.key" ] || [ ! -x "$conformance_dir/hostpathplugin" ] || return 0
	(
		export GOWORK=off
		cd tools/conformance
		go build -ldflags '-s -w' -o "$conformance_dir/" $images/agnhost $images/nonewprivs $images/sample-device-plugin ./hostpathplugin github.com/onsi/ginkgo/v2/ginkgo
		cp --no-preserve=mode "$(go list -m -f '{{.Dir}}' k8s.io/kubernetes)"/test/images/agnhost/porter/localhost.* "$conformance_dir"
	)
}

conformance_tools() { conformance_images && kubernetes_suite node; }
dra_tools() { conformance_images && kubernetes_suite dra; }
cluster_tools() { conformance_images && kubernetes_suite cluster; }

# kubernetes_suite builds a suite of Kubernetes: node, its tests of nodes in clusters, dra, those of
# dynamic resource allocation, or cluster, those of workloads and networks. To vet all that it is made
# of would take longer than to build it.
kubernetes_suite() {
	[ ! -x "$conformance_dir/$1.test" ] || return 0
	(cd tools/conformance && GOWORK=off go test -c -vet=off -o "$conformance_dir/$1.test" -ldflags "$(version_flags)" "./suite/$1")
}
