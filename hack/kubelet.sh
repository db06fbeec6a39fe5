#!/usr/bin/env bash
# Builds a real kubelet: see --help.
set -euo pipefail

usage() {
	cat <<'END'
kubelet.sh builds programs of Kubernetes, for comparisons, and prints the directory
that they are in.

  hack/kubelet.sh v1.37.2                     kubelet
  hack/kubelet.sh v1.37.2 kubelet e2e_node    and e2e_node.test, the suite of tests of nodes

They are built from the module k8s.io/kubernetes of that version, in a module of their
own, and kept in ~/.cache/kubeparts (or KUBEPARTS_CACHE), so that a second call takes no
time. The first one takes three to ten minutes on two cores, and 1 to 3 GB in Go's caches.
END
}

die() { echo "kubelet.sh: $*" >&2; exit 1; }

[ $# -gt 0 ] || { usage >&2; exit 2; }
case $1 in --help | -h) usage; exit 0 ;; esac
version=$1
shift
[[ $version =~ ^v1\.([0-9]+)\.[0-9]+$ ]] || die "$version is no version, such as v1.37.2"
minor=${BASH_REMATCH[1]}
[ $# -gt 0 ] || set -- kubelet
dir=${KUBEPARTS_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kubeparts}/kubelet-$version

export GOWORK=off GOFLAGS="-mod=mod -trimpath" CGO_ENABLED=0
of=k8s.io/component-base/version
flags="-s -w -X $of.gitVersion=$version -X $of.gitMajor=1 -X $of.gitMinor=$minor"

# module makes a module that requires Kubernetes: the versions of its parts, which it
# requires at v0.0.0, have to be replaced. After an interruption it completes the module.
module() {
	local part edits=(-require "k8s.io/kubernetes@$version")
	for part in $(GOFLAGS= go mod download -json "k8s.io/kubernetes@$version" |
		awk -F'"' '$2 == "GoMod" { print $4 }' | xargs awk '$1 ~ /^k8s.io\// && $2 == "v0.0.0" { print $1 }'); do
		edits+=(-replace "$part=$part@v0.${version#v1.}")
	done
	[ -f go.mod ] || go mod init kubelet
	go mod edit "${edits[@]}"
}

mkdir -p "$dir/module"
cd "$dir/module"
for program in "$@"; do
	case $program in
	kubelet)
		[ -x "$dir/kubelet" ] && continue
		module
		go build -ldflags "$flags" -o "$dir/kubelet" k8s.io/kubernetes/cmd/kubelet >&2
		;;
	e2e_node)
		[ -x "$dir/e2e_node.test" ] && continue
		module
		# To vet all that it is made of would take longer than to build it.
		go test -c -vet=off -ldflags "$flags" -o "$dir/e2e_node.test" k8s.io/kubernetes/test/e2e_node >&2
		;;
	*) die "$program: want kubelet or e2e_node" ;;
	esac
done
echo "$dir"
