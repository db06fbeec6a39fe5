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
# shellcheck source=hack/kubernetes.sh
. "$here/kubernetes.sh"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cp "$here/podlayout.go.txt" "$dir/main.go"
cd "$dir"
require_kubernetes podlayout "$version"
go run . "$minor" ${manifests:+"$manifests"}
