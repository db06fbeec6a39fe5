package server_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of how logs are read has a test that says its number, here or in logread,
// or a reason here why it has none.
func TestEachRuleOfContainerLogsIsNamedByATest(t *testing.T) {
	rules := []ruletest.Span{
		{Kind: "la", From: 1, To: 15},                                // what the kubelet does
		{Kind: "F", From: 36, To: 37}, {Kind: "F", From: 73, To: 73}, // and what goes beyond it
	}
	without := map[string]string{
		"la-5": "Config.Pods has each pod with its status of the moment; a static pod is known by its own name",
	}
	ruletest.Check(t, ruletest.Named(t, ruletest.Files(t, "containerlog*_test.go", "../internal/podlog/*_test.go", "../../runtime/cri/logread/*_test.go")...), without, rules...)
}
