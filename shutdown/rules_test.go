package shutdown_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of graceful node shutdown has a test that says its number, in this package
// or in the one of a trigger.
func TestEachRuleOfShutdownsIsNamedByATest(t *testing.T) {
	named := ruletest.Named(t, ruletest.Files(t, "*_test.go", "logind/*_test.go")...)
	ruletest.Check(t, named, nil, ruletest.Span{Kind: "sh", From: 1, To: 12}, ruletest.Span{Kind: "F", From: 62, To: 65}, ruletest.Span{Kind: "nq", From: 14, To: 14})
}
