# Steps that use the project as its users do.

# readme runs the README's first command for some seconds: it must be alive at the end of them, exit
# successfully when it is interrupted, print the address of its status page, and serve it. The
# program is built first, because `go run` itself fails when it is interrupted.
readme() {
	local command dir agent started
	command=$(grep -m1 -oE 'go run [^`#]*examples/agent[^`#]*' README.md) || { echo "README.md does not run examples/agent"; return 1; }
	echo "$command"
	dir=$(mktemp -d)
	trap "rm -rf '$dir'" EXIT
	agent=$dir/agent
	go build -o "$agent" ./examples/agent
	started=$SECONDS
	(sleep 10; curl -sS -o "$dir/page.html" http://127.0.0.1:10258/) &
	# In the foreground, since timeout otherwise signals its process group as well: the agent would
	# get two signals, and the second one ends it at once.
	timeout --foreground --preserve-status --signal=INT --kill-after=30 20 bash -c "$agent ${command#*examples/agent}" | tee "$dir/output"
	[ $((SECONDS - started)) -ge 19 ] || { echo "the agent ended by itself"; return 1; }
	grep -q 'http://127.0.0.1:10258/ shows what runs here' "$dir/output" || { echo "the address of the status page is not printed"; return 1; }
	grep -q '<h2 id="pods">' "$dir/page.html" || { echo "the status page is not served"; return 1; }
}

# modules packs the modules into a file-system module proxy, at the version that they
# require of each other, and uses them from empty directories outside of the repository:
# each go get and go install of docs/install.md, the README's program, a kubelet of 30 lines,
# a controller test, and a virtual-kubelet provider.
modules() {
	unless_unchanged go.mod kube/go.mod internal/test/repo/testdata/api/ examples/ README.md docs/install.md hack/kubelet.go.txt kube/fakenode/ kube/controllers/doc.go kube/controllers/example_test.go kube/provider/virtualkubelet/ tools/goproxy/
	local version work proxy
	version=$(awk '$1 == "github.com/kubeparts/kubeparts" { print $2 }' kube/go.mod)
	work=$(mktemp -d)
	forget_release "$version"
	trap "forget_release '$version'; unmount_below '$work'; rm -rf '$work'" EXIT
	(cd tools && GOWORK=off go run ./goproxy -version "$version" -out "$work/proxy" ..)
	proxy=file://$work/proxy,$(go env GOPROXY)
	export GOWORK=off GOFLAGS="-mod=mod $GOFLAGS" GOPROXY=$proxy GONOSUMDB=github.com/kubeparts/* GODEBUG=goindex=0

	documented "$work" "$version"
	"$work/bin/kubelet" --help >"$work/help" 2>&1 || [ -s "$work/help" ]
	grep -q -- --pod-manifest-path "$work/help" || { echo "the installed kubelet prints no help"; return 1; }

	consumer "$work/tiny" "github.com/kubeparts/kubeparts@$version"
	cp examples/tiny/main.go "$work/tiny"
	(cd "$work/tiny" && go mod tidy && go build -o tiny . && TMPDIR=$work ./tiny)
	! grep -q k8s.io/client-go "$work/tiny/go.mod" || { echo "the core requires client-go"; return 1; }
	echo "the README's program: ok"

	consumer "$work/agent" "github.com/kubeparts/kubeparts@$version"
	cp examples/agent/main.go "$work/agent"
	(cd "$work/agent" && go mod tidy && go build -o agent . && ./agent --help >help 2>&1 && grep -q -- -manifests help)
	echo "a copy of examples/agent: ok"

	# The program has to terminate by itself, with code 0.
	consumer "$work/kubelet" "github.com/kubeparts/kubeparts/kube@$version"
	cp hack/kubelet.go.txt "$work/kubelet/main.go"
	(cd "$work/kubelet" && go mod tidy && go build -o kubelet . && TMPDIR=$work timeout 120 ./kubelet)
	echo "a kubelet of 30 lines: ok"

	consumer "$work/controller" "github.com/kubeparts/kubeparts/kube@$version"
	cp kube/fakenode/example_test.go "$work/controller"
	(cd "$work/controller" && go mod tidy && go test ./...)
	echo "a controller test: ok"

	consumer "$work/virtualkubelet" "github.com/kubeparts/kubeparts/kube/provider/virtualkubelet@$version"
	cp kube/provider/virtualkubelet/examples/processes/main.go "$work/virtualkubelet"
	(cd "$work/virtualkubelet" && go mod tidy && go build -o processes . && ./processes --help >help 2>&1 && grep -q -- -kubeconfig help)
	echo "a virtual-kubelet provider: ok"

	# The go.mod needs the replacements that the documentation lists.
	mkdir "$work/deployment"
	cp kube/controllers/example_test.go "$work/deployment"
	(cd "$work/deployment" && go mod init example.com/consumer &&
		sed -n 's#^//\t##p' "$OLDPWD/kube/controllers/doc.go" | sed -n '/^require /p; /^replace (/,/^)/p' >>go.mod &&
		go mod tidy && go test ./...)
	echo "a Deployment in memory: ok"
}

# documented runs each go get and go install of docs/install.md, which are those of the version, each
# go get in a module of its own.
documented() {
	local work=$1 version=$2 verb module count=0
	while read -r verb module; do
		[ "${module##*@}" = "$version" ] || { echo "docs/install.md has $module, not $version"; return 1; }
		if [ "$verb" = install ]; then
			GOBIN=$work/bin go install "$module"
		else
			consumer "$work/get$count" "$module"
		fi
		count=$((count + 1))
		echo "go $verb $module: ok"
	done < <(sed -nE 's/^\$ go (get|install) (github\.com.*)$/\1 \2/p' docs/install.md)
	[ "$count" -ge 7 ] || { echo "docs/install.md has $count commands only"; return 1; }
}

# unmount_below unmounts what a kubelet has mounted in a directory: it leaves its root
# directory mounted for the next one.
unmount_below() {
	awk -v dir="$1/" 'index($2, dir) == 1 { print $2 }' /proc/mounts | sort -r | xargs -r -n 1 umount
}

# consumer makes a module in an empty directory that requires another one.
consumer() {
	mkdir "$1"
	(cd "$1" && go mod init example.com/consumer && go get "$2")
}

# forget_release removes what the module cache holds of the modules at a version:
# they may have been packed from another commit. GODEBUG=goindex=0 has the go command
# read their directories, which it takes for unchangeable otherwise.
forget_release() {
	local at=github.com/kubeparts version=$1 cache
	cache=$(go env GOMODCACHE)
	[ ! -d "$cache/$at" ] || {
		chmod -R u+w "$cache/$at"
		find "$cache/$at" -depth -type d -name "*@$version" -exec rm -rf {} +
	}
	[ ! -d "$cache/cache/download/$at" ] ||
		find "$cache/cache/download/$at" -path '*/@v/*' -name "$version.*" -delete
}
