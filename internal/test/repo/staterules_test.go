package repo_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of statuses, of sources of pods and of images that are collected has a
// test that says its number, or a reason here why it has none. See
// TestEachRuleOfThePodEngineIsNamedByATest.
func TestEachRuleOfStatusesSourcesAndImagesIsNamedByATest(t *testing.T) {
	rules := []ruletest.Span{
		{Kind: "st", From: 1, To: 80}, {Kind: "src", From: 1, To: 34}, {Kind: "ig", From: 1, To: 19},
		{Kind: "lq", From: 19, To: 20}, {Kind: "lq", From: 23, To: 26}, {Kind: "lq", From: 31, To: 31}, {Kind: "nq", From: 8, To: 9}, // ways of the kubelet's that are not copied
		{Kind: "L", From: 28, To: 32}, {Kind: "L", From: 34, To: 36}, {Kind: "L", From: 38, To: 45}, {Kind: "F", From: 28, To: 34},
		{Kind: "inv", From: 6, To: 10}, {Kind: "inv", From: 13, To: 13},
	}
	const differs = "status/doc.go says how it is otherwise: "
	without := map[string]string{
		"st-26": "the rules of restarts of containers cannot be turned off",
		"st-48": differs + "a pod that is being deleted is not written for that alone",
		"st-55": differs + "readiness comes with a report",
		"st-56": differs + "so does startup",
		"st-64": differs + "there is no tick; what is due is delivered, what failed after a back-off of its own",
	}

	named := rulesNamedByTests(t, []string{"st", "src", "ig", "lq", "nq", "L", "F", "inv"})
	ruletest.Check(t, named, without, rules...)
}
