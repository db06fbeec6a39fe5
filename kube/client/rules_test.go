package client_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of what a node and an API server say to each other has a test that
// says its number, or else a reason here why it has none.
func TestEachRuleIsNamedByATest(t *testing.T) {
	rules := []ruletest.Span{
		{Kind: "src", From: 33, To: 34},                              // pods of the API
		{Kind: "st", From: 63, To: 80},                               // statuses go to the API, and what stays there
		{Kind: "mir", From: 1, To: 6},                                // mirror pods
		{Kind: "oc", From: 1, To: 8},                                 // Secrets and ConfigMaps
		{Kind: "F", From: 43, To: 44},                                // and what goes beyond it
		{Kind: "L", From: 33, To: 33}, {Kind: "L", From: 36, To: 37}, //
		{Kind: "pe", From: 1, To: 1}, {Kind: "pe", From: 12, To: 12}, // services
		{Kind: "rt", From: 20, To: 20}, {Kind: "inv", From: 7, To: 7}, //
		{Kind: "inv", From: 9, To: 9}, {Kind: "ps", From: 3, To: 3}, //
	}
	without := map[string]string{
		"st-63": "an agent without an API server has another sink, or none: package status",
		"st-64": "when a status is written is package status's to decide: at once, with a back-off of its own",
		"st-69": "what was delivered, and when, is in status.Hooks",
		"st-72": "pods are written in parallel by package status; TestAHundredPodsDrainInTime shows what comes of it",
		"st-73": "package status",
		"st-77": "a terminal phase is held back by package status, which sees the containers",
	}
	ruletest.Check(t, ruletest.Named(t, ruletest.Files(t, "*_test.go")...), without, rules...)
}
