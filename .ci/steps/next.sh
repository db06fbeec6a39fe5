# The next minor version of Kubernetes.

# next tests a copy of the tree with the newest version of Kubernetes, pre-releases included, or with
# KUBEPARTS_NEXT: its modules replace those of go.work, its feature gates those of package
# kube/kubelet/config, and the files of hack/next are added, which only the next minor compiles. All
# packages are type-checked; the tests of KUBEPARTS_PACKAGES run, by default those of the core and kube.
next() {
	local version staging dir module failed=0
	version=${KUBEPARTS_NEXT:-$(go list -m -versions k8s.io/kubernetes | awk '{ print $NF }')}
	staging=v0.${version#v1.}
	dir=$cache/next
	rm -rf "$dir"
	mkdir -p "$dir"
	git ls-files -co --exclude-standard -z | tar -c --null -T - | tar -x -C "$dir"
	cd "$dir"
	export GOTOOLCHAIN=go$(required_go "k8s.io/api@$staging")
	echo "Kubernetes $version, $(go version)"

	(cd tools && GOWORK=off go run ./gates -version "$version" -out "$dir")
	mv kubernetesgates.go kube/kubelet/config/
	mv kubelet-gates.txt kube/kubelet/config/testdata/
	for module in $(go list -m all | awk '$1 ~ /^k8s.io\// && $2 ~ /^v0\.[0-9]+\.[0-9]+$/ && $2 !~ /^v0\.0\./ { print $1 }'); do
		[ "$module" = k8s.io/utils ] || next_module "$module" "$staging"
	done
	for module in $(indirect_modules "$staging"); do
		next_module "${module%@*}" "${module#*@}"
	done
	go work edit -go="${GOTOOLCHAIN#go}"
	adapt
	(cd tools && GOWORK=off go build -o "$dir/typecheck" ./typecheck)
	./typecheck -platforms linux/amd64 ./... ./kube/... ./examples/... || failed=1
	update_made || failed=1
	# shellcheck disable=SC2086
	go test -vet=off -timeout 15m ${KUBEPARTS_PACKAGES:-$(go list ./... ./kube/... | grep -v internal/test/repo)} || failed=1
	return $failed
}

# required_go prints the version of Go that a module requires.
required_go() {
	local gomod
	gomod=$(cd "$scratch" && GOWORK=off GOTOOLCHAIN=auto go mod download -json "$1" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
	awk '/^go / { print $2 }' "$gomod"
}

# indirect_modules lists the modules of SIGs and of staging that the next minor requires and this one
# does not.
indirect_modules() {
	local cached
	cached=$(go env GOMODCACHE)/cache/download
	for module in apimachinery client-go apiserver; do
		(cd "$scratch" && GOWORK=off go mod download "k8s.io/$module@$1")
		awk '$1 ~ /^(k8s\.io|sigs\.k8s\.io)\// && $2 ~ /^v/ { print $1 "@" $2 }' "$cached/k8s.io/$module/@v/$1.mod"
	done | grep -E "@$1|structured-merge-diff" | sort -u
}

# next_module replaces a module by a version of it; if the proxy lacks that, by the newest one that it
# has of the same major version, or by an empty module: pre-releases may require some that only
# their tests use.
next_module() {
	local path=$1 version=$2 newest
	if ! (cd "$scratch" && GOWORK=off go mod download "$path@$version") 2>/dev/null; then
		newest=$(cd "$scratch" && GOWORK=off go list -m -versions "$path" 2>/dev/null | awk '{ print $NF }' || :)
		if [[ $path =~ /v[0-9]+$ && $newest == v* ]]; then
			echo "the proxy lacks $path@$version; $newest takes its place"
			version=$newest
		else
			echo "the proxy lacks $path@$version; an empty module takes its place"
			mkdir -p ".absent/$path"
			printf 'module %s\n' "$path" >".absent/$path/go.mod"
			go work edit -replace="$path=./.absent/$path"
			return
		fi
	fi
	go work edit -replace="$path=$path@$version"
}

# adapt makes the changes that the next minor requires: it sets the parameter of the minor, adds the files of
# hack/next, and appends those that end with .append.
adapt() {
	local file minor
	minor=${version#v1.}
	minor=${minor%%.*}
	sed -i -E "s#(KubernetesVersion = )\"[^\"]*\"#\1\"$version\"#; s#(KubernetesMajorMinor = )\"[^\"]*\"#\1\"1.$minor\"#; s#(KubernetesMinor = )[0-9]+#\1$minor#" runtime/kubernetes.go
	while read -r file; do
		cp "hack/next/$file" "${file%.txt}"
	done < <(cd hack/next && find . -name '*.go.txt')
	while read -r file; do
		cat "hack/next/$file" >>"${file%.append}"
	done < <(cd hack/next && find . -name '*.append')
	LC_ALL=C sort -o sim/record/testdata/reviewed.txt sim/record/testdata/reviewed.txt
	git -C "$OLDPWD" grep -lz 'structured-merge-diff/v6' -- '*.go' | xargs -0r sed -i 's#structured-merge-diff/v6#structured-merge-diff/v7#'
}

# update_made updates what is made from the source and the libraries of Kubernetes: the validations of the
# kubelet, and documents. Bash ignores set -e in it, because its status is tested.
update_made() {
	(
		cd tools/kubernetes && rm go.mod go.sum && source ../../hack/kubernetes.sh &&
			require_kubernetes github.com/kubeparts/kubeparts/tools/kubernetes "$version" && go test ./facts -update
	) &&
		go test -vet=off ./internal/podfields ./kube/apitest/internal/conformance -run 'TestTheDocument|TestServer' -update &&
		go test -vet=off ./kube/kubelet -run TestValidations -checks
}
