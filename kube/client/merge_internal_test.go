package client

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

var (
	then = metav1.NewTime(time.Unix(1_000_000_000, 0))
	now  = time.Unix(2_000_000_000, 5)
)

func cond(t v1.PodConditionType, s v1.ConditionStatus, reason string) v1.PodCondition {
	return v1.PodCondition{Type: t, Status: s, Reason: reason, LastTransitionTime: then}
}

func TestMerge(t *testing.T) { // section 7.8
	refreshed := cond(v1.DisruptionTarget, v1.ConditionTrue, "TerminationByKubelet")
	refreshed.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	completed := func(t v1.PodConditionType, reason string) v1.PodCondition {
		c := cond(t, v1.ConditionFalse, reason)
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		return c
	}
	for name, tc := range map[string]struct {
		old, reported, want v1.PodStatus
		mirror              bool
	}{
		"st-74: foreign conditions from old, owned ones from new": {
			old:      v1.PodStatus{Conditions: []v1.PodCondition{cond("gate", "True", ""), cond(v1.PodReady, "False", "a"), cond(v1.PodResizePending, "True", "")}},
			reported: v1.PodStatus{Conditions: []v1.PodCondition{cond("gate", "False", ""), cond("mine", "True", ""), cond(v1.PodReady, "True", "")}},
			want:     v1.PodStatus{Conditions: []v1.PodCondition{cond("gate", "True", ""), cond(v1.PodReady, "True", "")}},
		},
		"st-75: a disruption is not reported before the end": {
			old:      v1.PodStatus{Phase: v1.PodRunning},
			reported: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "TerminationByKubelet")}},
			want:     v1.PodStatus{Phase: v1.PodRunning},
		},
		"st-75: it is reported with the end, and the end's time": {
			old:      v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "EvictionByEvictionAPI")}},
			reported: v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "TerminationByKubelet")}},
			want:     v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{refreshed}},
		},
		"st-75: that of another stays": {
			old:      v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "EvictionByEvictionAPI")}},
			reported: v1.PodStatus{Phase: v1.PodFailed},
			want:     v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "EvictionByEvictionAPI")}},
		},
		"st-75: after the end it stays as it is": {
			old:      v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "PreemptionByScheduler")}},
			reported: v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "TerminationByKubelet")}},
			want:     v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.DisruptionTarget, "True", "PreemptionByScheduler")}},
		},
		"st-76: resource claims from old": {
			old:      v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "gpu"}}, ExtendedResourceClaimStatus: &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}},
			reported: v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "old"}}},
			want:     v1.PodStatus{ResourceClaimStatuses: []v1.PodResourceClaimStatus{{Name: "gpu"}}, ExtendedResourceClaimStatus: &v1.PodExtendedResourceClaimStatus{ResourceClaimName: "x"}},
		},
		"st-78: a failed pod is not ready": {
			reported: v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{cond(v1.PodReady, "True", ""), cond(v1.ContainersReady, "True", ""), cond(v1.PodInitialized, "True", "")}},
			want:     v1.PodStatus{Phase: v1.PodFailed, Conditions: []v1.PodCondition{completed(v1.PodReady, "PodFailed"), completed(v1.ContainersReady, "PodFailed"), cond(v1.PodInitialized, "True", "")}},
		},
		"st-78: nor one that is done": {
			reported: v1.PodStatus{Phase: v1.PodSucceeded, Conditions: []v1.PodCondition{cond(v1.PodReady, "True", "")}},
			want:     v1.PodStatus{Phase: v1.PodSucceeded, Conditions: []v1.PodCondition{completed(v1.PodReady, "PodCompleted")}},
		},
		"inv-7: a terminal phase is not taken back": {
			old:      v1.PodStatus{Phase: v1.PodFailed, Reason: "NodeLost", Message: "gone"},
			reported: v1.PodStatus{Phase: v1.PodRunning, PodIP: "10.0.0.1", Conditions: []v1.PodCondition{cond(v1.PodReady, "True", "")}},
			want:     v1.PodStatus{Phase: v1.PodFailed, Reason: "NodeLost", Message: "gone", PodIP: "10.0.0.1", Conditions: []v1.PodCondition{completed(v1.PodReady, "PodFailed")}},
		},
		"but a static pod may run again": {
			old: v1.PodStatus{Phase: v1.PodFailed}, reported: v1.PodStatus{Phase: v1.PodRunning}, want: v1.PodStatus{Phase: v1.PodRunning}, mirror: true,
		},
		"the order is that of old": {
			old:      v1.PodStatus{Conditions: []v1.PodCondition{cond(v1.PodReady, "True", ""), cond("gate", "True", ""), cond(v1.PodInitialized, "True", "")}},
			reported: v1.PodStatus{Conditions: []v1.PodCondition{cond(v1.PodInitialized, "True", ""), cond(v1.PodScheduled, "True", ""), cond(v1.PodReady, "True", "")}},
			want:     v1.PodStatus{Conditions: []v1.PodCondition{cond(v1.PodReady, "True", ""), cond("gate", "True", ""), cond(v1.PodInitialized, "True", ""), cond(v1.PodScheduled, "True", "")}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			old, reported := *tc.old.DeepCopy(), *tc.reported.DeepCopy()
			got := merge(&tc.old, &tc.reported, tc.mirror, now)
			assert.Equal(t, tc.want, got)
			assert.Equal(t, old, tc.old, "the inputs are not changed (lq-22)")
			assert.Equal(t, reported, tc.reported)

			// Applied, the patch results in that status, and the next patch is empty.
			data, err := patch("uid-1", &tc.old, &got)
			require.NoError(t, err)
			if data != nil {
				before, err := json.Marshal(v1.Pod{Status: tc.old})
				require.NoError(t, err)
				after, err := strategicpatch.StrategicMergePatch(before, data, v1.Pod{})
				require.NoError(t, err)
				var pod v1.Pod
				require.NoError(t, json.Unmarshal(after, &pod))
				assert.EqualValues(t, "uid-1", pod.UID)
				wantJSON, err := json.Marshal(got)
				require.NoError(t, err)
				gotJSON, err := json.Marshal(pod.Status)
				require.NoError(t, err)
				assert.JSONEq(t, string(wantJSON), string(gotJSON))
			}
			again := merge(&got, &tc.reported, tc.mirror, now.Add(time.Hour))
			data, err = patch("uid-1", &got, &again)
			require.NoError(t, err)
			assert.Nil(t, data, "the same status again needs no patch: %s", data)
		})
	}
}

func TestCut(t *testing.T) {
	assert.Equal(t, "abc", truncate("abc", 3))
	assert.Equal(t, "abc...", truncate("abcdefgh", 6))
	assert.Equal(t, "öö...", truncate("ööööööö", 8), "whole characters")
	assert.Empty(t, truncate("abcdefgh", 2))
}

func TestAClassThatTheServerGaveStays(t *testing.T) {
	old := v1.PodStatus{Phase: v1.PodRunning, QOSClass: v1.PodQOSBurstable}
	next := merge(&old, &v1.PodStatus{Phase: v1.PodRunning}, false, now)
	data, err := patch("uid", &old, &next)
	require.NoError(t, err)
	assert.Nil(t, data)
	assert.Equal(t, v1.PodQOSGuaranteed, merge(&old, &v1.PodStatus{QOSClass: v1.PodQOSGuaranteed}, false, now).QOSClass)
}
