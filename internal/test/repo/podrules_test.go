package repo_test

import (
	"testing"

	"github.com/kubeparts/kubeparts/internal/ruletest"
)

// Each rule of how a pod's life is led has a test that says its number, or a
// reason here why it has none. See TestEachRuleOfThePodEngineIsNamedByATest.
func TestEachRuleOfPodLivesIsNamedByATest(t *testing.T) {
	rules := []ruletest.Span{
		{Kind: "pw", From: 1, To: 71}, {Kind: "sl", From: 1, To: 66}, {Kind: "ps", From: 1, To: 7}, {Kind: "mir", From: 1, To: 6}, {Kind: "adm", From: 1, To: 15}, // rules
		{Kind: "lq", From: 6, To: 11}, {Kind: "lq", From: 22, To: 22}, {Kind: "lq", From: 28, To: 28}, {Kind: "lq", From: 30, To: 30}, // ways of the kubelet's that are not copied
		{Kind: "L", From: 15, To: 15}, {Kind: "L", From: 18, To: 19}, {Kind: "L", From: 21, To: 28}, {Kind: "L", From: 30, To: 30}, {Kind: "L", From: 54, To: 54}, {Kind: "L", From: 56, To: 56}, {Kind: "L", From: 60, To: 64}, {Kind: "F", From: 77, To: 77},
		{Kind: "inv", From: 1, To: 5}, {Kind: "inv", From: 14, To: 14}, {Kind: "inv", From: 17, To: 18},
	}
	const (
		runtimes = "the runtime's engine does it: "
		other    = "it is of another package: "
		noLoop   = "there is no one loop that all has to go through: "
	)
	without := map[string]string{
		"pw-4":  "kinds of updates are methods of Workers, and inputs of step",
		"pw-19": "a Kill always ends the pod, so that its options always mean something",
		"pw-45": runtimes + "runtime.SyncResult.RetryAt is the earliest",
		"sl-2":  noLoop + "a runtime that is down fails the calls of its pods, and nothing else waits (L-4)",
		"sl-6":  noLoop + "what needs the runtime waits for it itself",
		"sl-7":  "sources are not a channel",
		"sl-9":  "the embedder decides which events make a pod due; package agent leaves ContainerRemoved out",
		"sl-12": other + "prober tells an Inbox",
		"sl-14": noLoop + "Explain tells since when a call is in flight",
		"sl-22": "the update is applied; nobody warns of it",
		"sl-24": "allocation.Manager.Release is its trigger (al-7)",
		"sl-26": "allocation's triggers (al-7)",
		"sl-30": other + "cm's Ensure",
		"sl-33": runtimes + "its directories",
		"sl-35": runtimes + "runtime/cri/credentials",
		"sl-38": runtimes + "and the relist after its actions makes the pod due",
		"sl-39": runtimes + "its back-off",
		"sl-50": noLoop + "each subsystem keeps house itself, by Loop.State and GCPolicy.Removed",
		"sl-51": "the order matters to one pass over all; pods are ended one by one, by a list that is older than the wanted set",
		"sl-52": "pleg keeps the last list that could be had",
		"sl-57": other + "volume's directories",
		"sl-58": other + "cm's cgroups; Loop.State tells",
		"sl-63": "a sync begins with a look that is newer than the last one (pw-36)",
		"sl-64": "status shows a sandbox as soon as pleg has seen it",
		"sl-66": other + "kube/server's choice of a log",
		"adm-2": "allocation.Request says so to whoever decides",
		"adm-6": other + "kube/client has the node to read anew; admission.Check is asked again",
	}

	named := rulesNamedByTests(t, []string{"pw", "sl", "ps", "mir", "adm", "lq", "L", "F", "inv"})
	ruletest.Check(t, named, without, rules...)
}
