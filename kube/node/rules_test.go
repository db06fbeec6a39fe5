package node_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Each rule of node status and lease has a test that says its number, or a reason
// here why it has none.
func TestEachRuleIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"ns-20": "asking the runtime how it is belongs to podworker.Health; what follows its first answer is the agent's to wire",
		"ns-21": "metrics are built on Hooks by who serves them",
	}
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	named := map[string]bool{}
	for _, file := range files {
		if file == "rules_test.go" {
			continue
		}
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, rule := range regexp.MustCompile(`\b(ns|ls)-\d+\b`).FindAllString(string(data), -1) {
			named[rule] = true
		}
	}
	for kind, last := range map[string]int{"ns": 21, "ls": 4} {
		for i := range last {
			rule := fmt.Sprintf("%s-%d", kind, i+1)
			why, ok := without[rule]
			assert.NotEqual(t, ok, named[rule], "%s: named by a test: %v; reason why not: %q", rule, named[rule], why)
		}
	}
}
