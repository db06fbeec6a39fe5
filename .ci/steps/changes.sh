# What changed since the last green gate.

# base is the commit of the last green gate of this machine, or, on another one, an ancestor of
# some weeks ago.
base() { green || git rev-parse -q --verify HEAD~50 || git rev-list --max-parents=0 HEAD | tail -1; }

green() {
	local commit
	commit=$(cat "$cache/green" 2>/dev/null) && git merge-base --is-ancestor "$commit" HEAD 2>/dev/null && echo "$commit"
}

# record_green makes the tested commit the base of the next gate, or after a full run one that
# hack/release accepts.
record_green() {
	case $run in
	gate) [ "$KUBEPARTS_TREE" != committed ] || git rev-parse HEAD >"$cache/green" ;;
	full) [ -n "$(git status --porcelain)" ] || git rev-parse HEAD >"$cache/full" ;;
	esac
}

# record_step notes a step of full that succeeded on the commit of a clean tree, and
# succeeded_before reports whether that was noted: a full run that failed or was interrupted goes on
# where it ended.
record_step() {
	[ "$run" = full ] && [ -z "$(git status --porcelain)" ] || return 0
	echo "$(git rev-parse HEAD) $1" >>"$cache/full-steps"
}

succeeded_before() {
	[ "$run" = full ] && [ -z "$(git status --porcelain)" ] &&
		grep -qsx "$(git rev-parse HEAD) $1" "$cache/full-steps"
}

# run_in_copy runs the gate in a copy of the tree, at a path that is the same for all clones, in which
# files that did not change keep their times: the go command takes the result of a test from its
# cache only if path and time of the files that the test reads are the same.
run_in_copy() {
	local copy=$cache/tree commit index
	exec 9>"$cache/tree.lock"
	flock -n 9 || { echo "another gate runs in $copy; waiting"; flock 9; }
	KUBEPARTS_TREE=committed commit=$(git rev-parse HEAD)
	if [ -n "$(git status --porcelain)" ]; then
		KUBEPARTS_TREE=changed index=$(mktemp)
		cp "$(git rev-parse --git-path index)" "$index"
		commit=$(GIT_INDEX_FILE=$index git commit-tree -p HEAD -m "with what is not committed" \
			"$(GIT_INDEX_FILE=$index git add -A && GIT_INDEX_FILE=$index git write-tree)")
		rm "$index"
	fi
	git init -q "$copy"
	git -C "$copy" fetch -q --update-shallow "$PWD" "$commit"
	git -C "$copy" checkout -q -f --detach "$commit"
	git -C "$copy" clean -q -fdx
	export KUBEPARTS_TREE
	exec bash "$copy/.ci/run"
}

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

# changed_packages lists the packages of the workspace with a changed file, and, if there is a green
# gate, those that import them directly, also in tests. Those of the changes of weeks are almost all.
changed_packages() {
	local dirs importers=1
	green >/dev/null || importers=0
	dirs=$(changed_files | sed -n 's#/testdata/.*#/x#; s#/[^/]*$##p' | sort -u)
	go list -f '{{.ImportPath}}|{{.Dir}}|{{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}' work |
		awk -F'|' -v root="$PWD/" -v dirs="$dirs" -v importers=$importers '
			BEGIN { n = split(dirs, d, "\n"); for (i = 1; i <= n; i++) isChanged[root d[i]] = 1 }
			{ path[NR] = $1; imports[NR] = $3; if ($2 in isChanged) changed[$1] = wanted[$1] = 1 }
			END {
				for (i = 1; importers && i <= NR; i++) { n = split(imports[i], p, " "); for (j = 1; j <= n; j++) if (p[j] in changed) wanted[path[i]] = 1 }
				for (name in wanted) print name
			}'
}
