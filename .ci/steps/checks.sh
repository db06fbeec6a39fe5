# Steps that read the source.

# The tree has no file for one architecture only, and of the packages of the operating systems
# only Linux's has types that differ between the two.
platforms=linux/arm64,darwin/arm64,windows/amd64 # besides linux/amd64

fmt() {
	local bad
	bad=$(git ls-files -z '*.go' | xargs -0r gofmt -l)
	[ -z "$bad" ] || { echo "gofmt would change:" "$bad"; return 1; }
}

# generated runs the tests of generated files, of the documents, and of names and prose. Their
# results are those that unit needs as well.
generated() {
	KUBEPARTS_CI=1 "${go_test[@]}" ./internal/test/repo
	"${go_test[@]}" ./internal/podfields ./runtime/runtimetest ./kube/metrics ./kube/kubelet/config ./kube/apitest/internal/conformance ./test/e2enode ./test/compare
}

# generate writes the documents and the expected results that tests compare.
generate() {
	local package
	go test ./internal/test/repo -run 'TestTheAPI|TestTheLogMessages|TestThePackages' -update
	for package in $(git grep -l 'flag.Bool("update"' -- '*_test.go' | xargs -n 1 dirname | sort -u); do
		[ "$package" = internal/test/repo ] || go test "./$package" -update || echo "$package: its tests fail otherwise"
	done
	git diff --stat
}

# vet compiles almost all that the gate needs.
vet() { GOGC=400 go vet work; }

# types checks types on the other systems that the core is for; vet would compile for each of
# them all that is imported.
types() {
	go_tool typecheck
	"$cache/bin/typecheck" -platforms "$platforms" work
}

# lint builds staticcheck outside of the workspace, since -modfile and go.work exclude each other,
# and runs it inside. actionlint checks the workflows of GitHub.
lint() {
	local staticcheck actionlint
	staticcheck=$(GOWORK=off go tool -n -modfile=tools/go.mod staticcheck)
	actionlint=$(GOWORK=off go tool -n -modfile=tools/go.mod actionlint)
	"$actionlint" -shellcheck= -pyflakes= .github/workflows/*.yml
	"$staticcheck" work
}

# api lists the changes of the exported API since the last release (or KUBEPARTS_API_BASE, any
# commit). A change that breaks a caller needs a line in CHANGELOG.md.
api() {
	local base apidiff dir module broken=0
	base=${KUBEPARTS_API_BASE:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || :)}
	[ -n "$base" ] || { echo "no release to compare with yet; KUBEPARTS_API_BASE=COMMIT names another base"; return 0; }
	apidiff=$(GOWORK=off go tool -n -modfile=tools/go.mod apidiff)
	dir=$(mktemp -d)
	trap "git worktree remove --force '$dir/base'; rm -rf '$dir'" EXIT
	git worktree add -q --detach "$dir/base" "$base"
	for module in . kube; do
		[ -f "$dir/base/$module/go.mod" ] || { echo "$module: new since $base"; continue; }
		(cd "$dir/base/$module" && GOWORK=off "$apidiff" -m -w "$dir/old" "$(GOWORK=off go list -m)")
		(cd "$module" && GOWORK=off "$apidiff" -m -w "$dir/new" "$(GOWORK=off go list -m)")
		"$apidiff" -m "$dir/old" "$dir/new" 2>&1 | grep -v '^Ignoring internal package' | tee "$dir/changes"
		grep -q '^Incompatible changes' "$dir/changes" && broken=1
	done
	[ $broken = 0 ] || ! git diff --quiet "$base" -- CHANGELOG.md ||
		{ echo "incompatible changes since $base, and no line about them in CHANGELOG.md"; return 1; }
}

# go_tool builds a program of tools/ into the cache.
go_tool() { (cd tools && GOWORK=off go build -o "$cache/bin/$1" "./$1"); }
