package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/status"
)

func condition(t v1.PodConditionType, s v1.ConditionStatus, reason string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: s, Reason: reason}
}

func TestMergeKeepsConditionsOfOthers(t *testing.T) {
	yes, no := v1.ConditionTrue, v1.ConditionFalse
	ready, unready := condition(v1.PodReady, yes, ""), condition(v1.PodReady, no, "ContainersNotReady")
	theirDisruption, ourDisruption := condition(v1.DisruptionTarget, yes, "PreemptionByScheduler"), condition(v1.DisruptionTarget, yes, "TerminationByKubelet")
	foreign, older := condition("lb", yes, ""), condition("lb", no, "")

	of := func(phase v1.PodPhase, c ...v1.PodCondition) v1.PodStatus {
		return v1.PodStatus{Phase: phase, Conditions: c}
	}
	for name, tc := range map[string]struct{ theirs, ours, want v1.PodStatus }{
		"st-74: owned ones are ours, the others theirs": {
			of(v1.PodRunning, unready, foreign), of(v1.PodRunning, older, ready), of(v1.PodRunning, foreign, ready),
		},
		"st-74: entries they removed stay removed": {of(v1.PodRunning), of(v1.PodRunning, older, ready), of(v1.PodRunning, ready)},
		"st-75: ours with the end": {
			of(v1.PodRunning, theirDisruption), of(v1.PodFailed, ourDisruption, unready), of(v1.PodFailed, ourDisruption, unready),
		},
		"st-75: theirs before it": {
			of(v1.PodRunning, theirDisruption), of(v1.PodRunning, ourDisruption, unready), of(v1.PodRunning, theirDisruption, unready),
		},
		"st-75: theirs after it": {
			of(v1.PodFailed, theirDisruption), of(v1.PodFailed, ourDisruption, unready), of(v1.PodFailed, theirDisruption, unready),
		},
		"st-75: theirs, if ours is a copy": {
			of(v1.PodRunning), of(v1.PodFailed, theirDisruption, unready), of(v1.PodFailed, unready),
		},
		"st-33: their end stays, and st-78: then it is not ready": {
			v1.PodStatus{Phase: v1.PodFailed, Reason: "NodeLost", Message: "gone"}, of(v1.PodRunning, ready, condition(v1.ContainersReady, yes, "")),
			v1.PodStatus{Phase: v1.PodFailed, Reason: "NodeLost", Message: "gone", Conditions: []v1.PodCondition{
				condition(v1.PodReady, no, "PodFailed"), condition(v1.ContainersReady, no, "PodFailed"),
			}},
		},
		"inv-7: Succeeded is no Failed": {of(v1.PodFailed), of(v1.PodSucceeded, ready), of(v1.PodFailed, condition(v1.PodReady, no, "PodFailed"))},
		"st-78: completed":              {of(v1.PodRunning), of(v1.PodSucceeded, ready), of(v1.PodSucceeded, condition(v1.PodReady, no, "PodCompleted"))},
		"st-76: claims and nominations are theirs": {
			v1.PodStatus{NominatedNodeName: "n", ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "gpu"}}},
			v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "old"}}},
			v1.PodStatus{NominatedNodeName: "n", ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "gpu"}}},
		},
		"st-43: a generation does not go back": {v1.PodStatus{ObservedGeneration: 3}, v1.PodStatus{ObservedGeneration: 2}, v1.PodStatus{ObservedGeneration: 3}},
		"inv-10: restarts neither": {
			v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "a", RestartCount: 5}}},
			v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "a", RestartCount: 2, Ready: true}}},
			v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{{Name: "a", RestartCount: 5, Ready: true}}},
		},
		"st-38: foreign, resize, disruption, own": {
			of(v1.PodRunning, foreign),
			of(v1.PodFailed, condition(v1.PodResizePending, yes, ""), ourDisruption, unready),
			of(v1.PodFailed, foreign, condition(v1.PodResizePending, yes, ""), ourDisruption, unready),
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.Merge(tc.theirs, tc.ours)) })
	}
}
