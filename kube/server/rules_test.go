package server_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of the kubelet's server has a test that says its number, or a reason here
// why it has none.
func TestEachRuleOfTheServerIsNamedByATest(t *testing.T) {
	without := map[string]string{
		"sv-5": "the agent tells systemd; /healthz is what it asks itself",
	}
	named := ruletest.Named(t, ruletest.Files(t, "*_test.go", "../certs/*_test.go", "../../podworker/alive_test.go")...)
	ruletest.Check(t, named, without, ruletest.Span{Kind: "sv", From: 1, To: 19}, ruletest.Span{Kind: "F", From: 71, To: 72})
}
