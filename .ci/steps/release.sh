# Steps that make a release and run its files.

# release runs the files of hack/release as their users do: in the gate those that the tests use, for
# this machine; in full all of them, some twice.
release() {
	unless_unchanged hack/release tools/release/ tools/goproxy/ test/release/ examples/ kube/kubelet/ runtime/kubernetes.go go.mod kube/go.mod
	local version dir here wanted=()
	version=$(awk '$1 == "github.com/kubeparts/kubeparts" { print $2 }' kube/go.mod)
	here=linux/$(go env GOARCH)
	if [ "$run" = full ]; then
		install_debian qemu-user-static # for the archives of arm64
	else
		wanted=(--programs kubelet,agent,fakecri --platforms "$here")
	fi
	dir=$(mktemp -d)
	trap "rm -rf '$dir'" EXIT
	(cd tools/release && export GOWORK=off && go vet ./... && go test ./...)
	go test -c -o "$dir/release.test" ./test/release
	hack/release --skip-checks "${wanted[@]}" --out "$dir/files" "$version"
	(cd test/release && KUBEPARTS_CI=1 KUBEPARTS_RELEASE=$dir/files KUBEPARTS_CONTAINERD=${KUBEPARTS_CONTAINERD:-$containerd_dir/containerd} \
		"$dir/release.test" -test.timeout 10m -test.v) | grep -v '^===\|^PASS'
	ls -l "$dir/files"
	[ "$run" != full ] || reproducible "$dir" "$version" "$here"
}

# reproducible makes some of the files again, from a clone, with an empty build cache and at another
# path: they have to be the same bytes.
reproducible() {
	local dir=$1 version=$2 platform=$3 file
	git clone -q . "$dir/clone"
	GOCACHE=$dir/cache TMPDIR=$dir "$dir/clone/hack/release" --skip-checks --programs kubelet,fakecri --platforms "$platform" --out "$dir/again" "$version"
	for file in "$dir"/again/*.{tar.gz,deb,rpm,spdx.json}; do
		cmp "$file" "$dir/files/${file##*/}"
		echo "${file##*/}: twice the same"
	done
}
