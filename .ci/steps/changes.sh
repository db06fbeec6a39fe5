# What changed since the last green gate.

# base is the commit of the last green gate of this machine, or, on another one, an ancestor of
# some weeks ago.
base() {
	local commit
	commit=$(cat "$cache/green" 2>/dev/null)
	if [ -n "$commit" ] && git merge-base --is-ancestor "$commit" HEAD 2>/dev/null; then
		echo "$commit"
	else
		git rev-parse -q --verify HEAD~50 || git rev-list --max-parents=0 HEAD | tail -1
	fi
}

# record_green makes the present commit the base of the next gate. A tree with uncommitted changes
# is none.
record_green() { [ -n "$(git status --porcelain)" ] || git rev-parse HEAD >"$cache/green"; }

# changed_files lists the files that differ from the base, also uncommitted ones.
changed_files() {
	git diff --name-only "$(base)"
	git ls-files --others --exclude-standard
}

# unless_unchanged FILE… ends the step successfully if the gate runs and none of the files, or
# files below the directories, differs from the base.
unless_unchanged() {
	[ "$run" = gate ] || return 0
	local file path
	while read -r file; do
		for path in "$@" .ci/; do
			case $file in "$path"*) echo "run because of $file"; return 0 ;; esac
		done
	done < <(changed_files)
	echo "nothing that it tests has changed since $(base)"
	exit "$skipped"
}

# changed_packages lists the packages of the workspace with a changed file, and those that import
# them directly, also in tests.
changed_packages() {
	local dirs
	dirs=$(changed_files | sed -n 's#/testdata/.*#/x#; s#/[^/]*$##p' | sort -u)
	go list -f '{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' work |
		awk -F'|' -v root="$PWD/" -v dirs="$dirs" '
			BEGIN { n = split(dirs, d, "\n"); for (i = 1; i <= n; i++) isChanged[root d[i]] = 1 }
			{ path[NR] = $1; imports[NR] = $3; if ($2 in isChanged) changed[$1] = wanted[$1] = 1 }
			END {
				for (i = 1; i <= NR; i++) { n = split(imports[i], p, " "); for (j = 1; j <= n; j++) if (p[j] in changed) wanted[path[i]] = 1 }
				for (name in wanted) print name
			}'
}
