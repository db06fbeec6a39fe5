package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestATerminalPhaseIsWithheldWhileAnythingMayRun(t *testing.T) { // st-77
	of := func(phase v1.PodPhase, c ...v1.ContainerStatus) v1.PodStatus {
		return v1.PodStatus{Phase: phase, ContainerStatuses: c}
	}
	for name, tc := range map[string]struct {
		status   v1.PodStatus
		observed *runtime.PodStatus
		want     bool
	}{
		"not terminal":               {of(v1.PodRunning), seen(runningC("a", 0)), false},
		"a container runs":           {of(v1.PodFailed), stopped(runningC("a", 0)), true},
		"a container is unknown":     {of(v1.PodFailed), stopped(instance("a", 0, runtime.ContainerUnknown)), true},
		"the sandbox is ready":       {of(v1.PodSucceeded), seen(exitedC("a", 0, 0)), true},
		"all has stopped":            {of(v1.PodSucceeded), stopped(exitedC("a", 0, 0)), false},
		"not observed, one had run":  {of(v1.PodFailed, up("a")), nil, true},
		"not observed, none had run": {of(v1.PodFailed, waits("a")), nil, false},
		"rejected, not observed":     {of(v1.PodFailed), nil, false},
		"not observed, an init container had run": {
			v1.PodStatus{Phase: v1.PodFailed, InitContainerStatuses: []v1.ContainerStatus{up("init")}, ContainerStatuses: []v1.ContainerStatus{waits("a")}}, nil, true},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.MustWithhold(&tc.status, tc.observed)) })
	}
}

func TestWithholdKeepsThePublishedPhase(t *testing.T) { // st-75, st-77
	disrupted := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet"}
	theirs := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "EvictionByEvictionAPI"}
	failed := v1.PodStatus{Phase: v1.PodFailed, Reason: "Evicted", Conditions: []v1.PodCondition{disrupted, {Type: v1.PodReady}}}

	s := status.WithholdPhase(failed, status.PublishedPhase{Phase: v1.PodRunning, Reason: "R", Message: "M"}, &v1.PodStatus{})
	assert.Equal(t, "Running/R/M", string(s.Phase)+"/"+s.Reason+"/"+s.Message)
	assert.Equal(t, []v1.PodCondition{{Type: v1.PodReady}}, s.Conditions)
	assert.Len(t, failed.Conditions, 2, "left alone")

	s = status.WithholdPhase(failed, status.PublishedPhase{}, &v1.PodStatus{Conditions: []v1.PodCondition{theirs}})
	assert.Equal(t, v1.PodPending, s.Phase, "nothing was published yet")
	assert.Equal(t, []v1.PodCondition{theirs, {Type: v1.PodReady}}, s.Conditions, "the source's own disruption condition stays")
	assert.Equal(t, disrupted, failed.Conditions[0], "left alone")

	failed.ContainerStatuses = []v1.ContainerStatus{up("a")}
	assert.Equal(t, v1.PodRunning, status.WithholdPhase(failed, status.PublishedPhase{}, &v1.PodStatus{}).Phase)
}
