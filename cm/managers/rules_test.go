package managers_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of the managers (sections 8.7 to 8.10) has a test that says its number,
// in the name of a case or in a comment, or else a reason here why it has none.
func TestEachRuleOfTheManagersIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"dra-1": "resource claims are refused: see TestRejections",
		"dra-2": "as dra-1",
		"dra-3": "as dra-1",
		"dra-4": "as dra-1",
		"plg-1": "device plugins register at their socket; the watcher of plugins_registry is not here",
	}
	var files []string
	for _, dir := range []string{"cpu", "memory", "topology", "device", "podresources", "managers"} {
		files = append(files, ruletest.Files(t, "../"+dir+"/*_test.go")...)
	}
	ruletest.Check(t, ruletest.Named(t, files...), without, []ruletest.Span{
		{Kind: "cpu", From: 1, To: 10}, {Kind: "mem", From: 1, To: 4}, {Kind: "top", From: 1, To: 7}, {Kind: "dev", From: 1, To: 13},
		{Kind: "pr", From: 1, To: 2}, {Kind: "dra", From: 1, To: 4}, {Kind: "plg", From: 1, To: 1},
		{Kind: "F", From: 51, To: 53}, {Kind: "F", From: 58, To: 59},
	}...)
}
