package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/mod/semver"
)

// checkVersion accepts the versions that Go modules have.
func checkVersion(version string) error {
	if version == "" {
		return fmt.Errorf("no version; for example: hack/release v0.1.0")
	}
	if !semver.IsValid(version) || semver.Canonical(version) != version || semver.Build(version) != "" {
		return fmt.Errorf("%s: want a semantic version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	if semver.Major(version) > "v1" {
		return fmt.Errorf("%s: a major version above 1 needs module paths that end with it", version)
	}
	return nil
}

// check returns what prevents the release of a commit. Each message says what to do.
func check(ctx context.Context, c commit, version, changelog string) (problems []string) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if changes, err := c.git(ctx, "status", "--porcelain"); err != nil {
		add("%v", err)
	} else if changes != "" {
		add("the tree has changes that are not committed, which would not be released; commit or remove them:\n%s", changes)
	}
	for _, name := range tags(version) {
		if existing, _ := c.git(ctx, "tag", "--list", name); existing != "" {
			add("tag %s exists; choose another version: the module proxy keeps the first content of a version for ever", name)
		}
	}
	if _, err := releaseNotes(changelog, version, true); err != nil {
		add("%v", err)
	}
	for _, module := range modules {
		path := strings.TrimPrefix(module+"/go.mod", "/")
		text, err := c.file(ctx, path)
		if err != nil {
			add("%v", err)
			continue
		}
		if err := checkRequired(path, text, version); err != nil {
			add("%v", err)
		}
	}
	if green, err := os.ReadFile(filepath.Join(cacheDir(), "full")); err != nil || strings.TrimSpace(string(green)) != c.hash {
		add("the last green run of `bash .ci/run full` was not on commit %.12s; run it on the clean tree", c.hash)
	}
	return problems
}

// cacheDir is the directory in which .ci/run keeps its results.
func cacheDir() string {
	if dir := os.Getenv("KUBEPARTS_CACHE"); dir != "" {
		return dir
	}
	dir, _ := os.UserCacheDir()
	return filepath.Join(dir, "kubeparts")
}

var sibling = regexp.MustCompile(`(?m)^(?:require)?\s+(` + regexp.QuoteMeta(root) + `\S*) (v\S+)`)

// checkRequired checks that a go.mod requires the other modules at the version.
func checkRequired(path, gomod, version string) error {
	for _, m := range sibling.FindAllStringSubmatch(gomod, -1) {
		if m[2] != version {
			return fmt.Errorf("%s requires %s %s; docs/releasing.md has the command that sets the version to %s", path, m[1], m[2], version)
		}
	}
	return nil
}
