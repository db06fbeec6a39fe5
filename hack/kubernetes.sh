# Functions of scripts that build from the module k8s.io/kubernetes; sourced by them.

# require_kubernetes NAME VERSION makes a module of that name in the working directory that requires
# a version of Kubernetes, or completes it after an interruption. The parts of Kubernetes, which it
# requires at v0.0.0, are replaced by their versions. The toolchain is the one that it requires.
require_kubernetes() {
	local gomod part required
	export GOWORK=off GOFLAGS="-mod=mod -trimpath" CGO_ENABLED=0 GOTOOLCHAIN=auto
	gomod=$(cd / && GOFLAGS= go mod download -json "k8s.io/kubernetes@$2" | awk -F'"' '$2 == "GoMod" { print $4 }')
	[ -f go.mod ] || go mod init "$1" 2>/dev/null
	go mod edit -go="$(awk '/^go / { print $2 }' "$gomod")" -require "k8s.io/kubernetes@$2"
	while read -r part required; do
		[ "$required" != v0.0.0 ] || required=v0.${2#v1.}
		replace_module "$part" "$required"
	done < <(awk '$1 ~ /^k8s.io\// && $2 == "v0.0.0" || $1 ~ /structured-merge-diff/ && $2 != "=>" { print $1, $2 }' "$gomod")
}

# replace_module PATH VERSION replaces a module by a version of it, or if the proxy lacks that, by the
# newest one of the same major version or by an empty module: pre-releases may require some that only
# their tests use.
replace_module() {
	local newest
	if (cd / && GOFLAGS= go mod download "$1@$2") >/dev/null 2>&1; then
		go mod edit -replace "$1=$1@$2"
		return
	fi
	newest=$(cd / && GOFLAGS= go list -m -versions "$1" 2>/dev/null | awk '{ print $NF }' || :)
	if [[ $1 =~ /v[0-9]+$ && $newest == v* ]]; then
		go mod edit -replace "$1=$1@$newest"
	else
		mkdir -p "absent/$1"
		echo "module $1" >"absent/$1/go.mod"
		go mod edit -replace "$1=./absent/$1"
	fi
}
