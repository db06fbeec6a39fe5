#!/usr/bin/env bash
# Builds a real kubelet: see --help.
set -euo pipefail

usage() {
	cat <<'END'
kubelet.sh builds programs of Kubernetes, for comparisons, and prints the directory
that they are in.

  hack/kubelet.sh v1.37.2                     kubelet
  hack/kubelet.sh v1.37.2 kubelet e2e_node    and e2e_node.test, the suite of tests of nodes
  hack/kubelet.sh v1.38.0-beta.0              a version before its release

They are built from the module k8s.io/kubernetes of that version, in a module of their
own, with the Go version that it requires, and kept in ~/.cache/kubeparts (or
KUBEPARTS_CACHE), so that a second call takes no time. The first one takes three to ten
minutes on two cores, and 1 to 3 GB in Go's caches.
END
}

die() { echo "kubelet.sh: $*" >&2; exit 1; }

[ $# -gt 0 ] || { usage >&2; exit 2; }
case $1 in --help | -h) usage; exit 0 ;; esac
version=$1
shift
[[ $version =~ ^v1\.([0-9]+)\.[0-9]+(-(alpha|beta|rc)\.[0-9]+)?$ ]] || die "$version is no version, such as v1.37.2 or v1.38.0-beta.0"
minor=${BASH_REMATCH[1]}
[ $# -gt 0 ] || set -- kubelet
# shellcheck source=hack/kubernetes.sh
. "$(dirname "${BASH_SOURCE[0]}")/kubernetes.sh"
dir=${KUBEPARTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubeparts}/kubelet-$version

of=k8s.io/component-base/version
flags="-s -w -X $of.gitVersion=$version -X $of.gitMajor=1 -X $of.gitMinor=$minor"

mkdir -p "$dir/module"
cd "$dir/module"
for program in "$@"; do
	case $program in
	kubelet)
		[ -x "$dir/kubelet" ] && continue
		require_kubernetes kubelet "$version"
		go build -ldflags "$flags" -o "$dir/kubelet" k8s.io/kubernetes/cmd/kubelet >&2
		;;
	e2e_node)
		[ -x "$dir/e2e_node.test" ] && continue
		require_kubernetes kubelet "$version"
		# To vet all that it is made of would take longer than to build it.
		go test -c -vet=off -ldflags "$flags" -o "$dir/e2e_node.test" k8s.io/kubernetes/test/e2e_node >&2
		;;
	*) die "$program: want kubelet or e2e_node" ;;
	esac
done
echo "$dir"
