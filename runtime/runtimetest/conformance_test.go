package runtimetest_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

var update = flag.Bool("update", false, "rewrite docs/conformance.md")

const conformanceHead = `# What the conformance kit checks

Made by ` + "`go test ./runtime/runtimetest -update`" + ` from runtimetest.Checks and runtime/runtimetest/testdata/results.md; the same test fails if it is out of date.

runtimetest.TestRuntime runs each check as a subtest of its own against a runtime.Runtime: ` + "`go test -run TestContract/KillObeysItsContext`" + ` picks one. A check whose needs are not there is not applicable. A promise that a runtime is known not to keep goes into Suite.Gaps with the reason: the check is run all the same, and fails once the promise is kept.

Rules (rt-, pleg-, lq- …) are numbers of our notes on what the kubelet does; where one stands beside a field, the kubelet's way is what is meant.

`

// docs/conformance.md has every check, as it is.
func TestTheDocumentOfTheKitIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString(conformanceHead)
	results, err := os.ReadFile(filepath.Join("testdata", "results.md"))
	require.NoError(t, err)
	b.WriteString(strings.ReplaceAll(string(results), "\r\n", "\n"))
	checks := runtimetest.Checks()
	fmt.Fprintf(&b, "## The checks\n\nThere are %d checks.\n\n| check | what is promised | the contract | needs | what is usually wrong |\n|---|---|---|---|---|\n", len(checks))
	for _, c := range checks {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", c.Name, c.Promise, c.Contract, strings.Join(c.Needs, ", "), c.Cause)
	}
	file := filepath.Join("..", "..", "docs", "conformance.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, strings.ReplaceAll(string(got), "\r\n", "\n"), b.String(), "go test ./runtime/runtimetest -update")
}

func TestEachCheckSaysAllThatAPersonNeeds(t *testing.T) {
	seen := map[string]bool{}
	name := regexp.MustCompile(`^([A-Z][a-zA-Z]*)$`)
	for _, c := range runtimetest.Checks() {
		assert.Regexp(t, name, c.Name)
		assert.False(t, seen[c.Name], "%s is there twice", c.Name)
		seen[c.Name] = true
		assert.True(t, strings.HasSuffix(c.Promise, "."), "%s: a sentence ends in a full stop", c.Name)
		for what, text := range map[string]string{"promise": c.Promise, "contract": c.Contract, "cause": c.Cause} {
			assert.NotEmpty(t, text, "%s has no %s", c.Name, what)
			assert.NotContains(t, text, "|", "%s: it would break the table", c.Name)
			assert.NotContains(t, text, "\n", c.Name)
		}
	}
	assert.GreaterOrEqual(t, len(seen), 102)
}

func TestChecksAreTheCallers(t *testing.T) {
	for _, c := range runtimetest.Checks() {
		clear(c.Needs)
	}
	for _, c := range runtimetest.Checks() {
		assert.NotContains(t, c.Needs, "", c.Name)
	}
}
