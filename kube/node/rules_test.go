package node_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of node status and lease has a test that says its number, or a reason
// here why it has none.
func TestEachRuleIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"ns-20": "asking the runtime how it is belongs to podworker.Health; what follows its first answer is the agent's to wire",
		"ns-21": "metrics are built on Hooks by who serves them",
	}
	named := ruletest.Named(t, ruletest.Files(t, "*_test.go")...)
	ruletest.Check(t, named, without, ruletest.Span{Kind: "ns", From: 1, To: 21}, ruletest.Span{Kind: "ls", From: 1, To: 4})
}
