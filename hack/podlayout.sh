#!/usr/bin/env bash
# Prints the layout of the pods of a kubelet: see --help.
set -euo pipefail

usage() {
	cat <<'END2'
podlayout.sh prints the structs that a version of Kubernetes represents pods by, with
their fields in order, for internal/staticuid/layouts.

  hack/podlayout.sh v1.38.0 >internal/staticuid/layouts/1.38.txt

The file of an older version needs only the structs that differ from those of the next
newer one.

  hack/podlayout.sh v1.38.0 uids DIRECTORY >>uids.txt

prints the UIDs of the manifests *.yaml in the directory, for
podsource/manifest/testdata/static/uids.txt.

VERSION may be a pre-release. Modules that the proxy lacks are empty: those of a pre-release
which only tests require.
END2
}

die() { echo "podlayout.sh: $*" >&2; exit 1; }

[ $# -gt 0 ] || { usage >&2; exit 2; }
case $1 in --help | -h) usage; exit 0 ;; esac
version=$1
[[ $version =~ ^v(1\.[0-9]+)\.[0-9]+(-[a-z]+\.[0-9]+)?$ ]] || die "$version is no version, such as v1.38.0"
minor=${BASH_REMATCH[1]}
if [ $# -gt 1 ]; then
	[ "$2" = uids ] && [ $# = 3 ] || die "want VERSION, or VERSION uids DIRECTORY"
	manifests=$(cd "$3" && pwd)
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/podlayout.go.txt" "$dir/main.go"
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod CGO_ENABLED=0 GOTOOLCHAIN=auto
go mod init podlayout 2>/dev/null
go mod edit -require "k8s.io/kubernetes@$version"
gomod=$(GOFLAGS= go mod download -json "k8s.io/kubernetes@$version" | awk -F'"' '$2 == "GoMod" { print $4 }')
GOTOOLCHAIN=go$(awk '/^go / { print $2 }' "$gomod")

# replace PATH VERSION replaces a module by a version of it, or if the proxy lacks that, by the newest one of
# the same major version or by an empty module.
replace() {
	local newest
	if (cd .. && go mod download "$1@$2") 2>/dev/null; then
		go mod edit -replace "$1=$1@$2"
		return
	fi
	newest=$(cd .. && go list -m -versions "$1" 2>/dev/null | awk '{ print $NF }' || :)
	if [[ $1 =~ /v[0-9]+$ && $newest == v* ]]; then
		go mod edit -replace "$1=$1@$newest"
	else
		mkdir -p "absent/$1"
		echo "module $1" >"absent/$1/go.mod"
		go mod edit -replace "$1=./absent/$1"
	fi
}
while read -r part required; do
	[ "$required" != v0.0.0 ] || required=v0.${version#v1.}
	replace "$part" "$required"
done < <(awk '$1 ~ /^k8s.io\// && $2 == "v0.0.0" || $1 ~ /structured-merge-diff/ && $2 != "=>" { print $1, $2 }' "$gomod")
go run . "$minor" ${manifests:+"$manifests"}
