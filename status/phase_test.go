package status_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestPhaseFollowsTheTable(t *testing.T) {
	const (
		always = v1.RestartPolicyAlways
		onFail = v1.RestartPolicyOnFailure
		never  = v1.RestartPolicyNever
	)
	list := func(c ...v1.ContainerStatus) []v1.ContainerStatus { return c }
	static := func(pod *v1.Pod) *v1.Pod {
		pod.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
		return pod
	}
	rule := func(pod *v1.Pod, action v1.ContainerRestartRuleAction, code int32) *v1.Pod {
		pod.Spec.Containers[0].RestartPolicy = new(v1.ContainerRestartPolicyNever)
		pod.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{
			Action:    action,
			ExitCodes: &v1.ContainerRestartRuleOnExitCodes{Operator: v1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{code}},
		}}
		return pod
	}
	restartingAll := done("a", 137)
	restartingAll.State.Terminated.Reason = "RestartingAllContainers"

	for name, tc := range map[string]struct {
		facts status.PhaseFacts
		want  v1.PodPhase
	}{
		"st-29 no statuses": {status.PhaseFacts{Pod: podOf(always, "a")}, v1.PodPending},
		"st-29 one running, one missing": {status.PhaseFacts{Pod: podOf(always, "a", "b"), Containers: list(up("a"))},
			v1.PodPending},
		"st-29 one running, one exited(0), Always": {status.PhaseFacts{Pod: podOf(always, "a", "b"), Containers: list(up("a"), done("b", 0))},
			v1.PodRunning},
		"st-29 all exited(0), Never": {status.PhaseFacts{Pod: podOf(never, "a", "b"), Containers: list(done("a", 0), done("b", 0))},
			v1.PodSucceeded},
		"st-29 exited 0 and 1, Never": {status.PhaseFacts{Pod: podOf(never, "a", "b"), Containers: list(done("a", 0), done("b", 1))},
			v1.PodFailed},
		"st-29 all exited, Always": {status.PhaseFacts{Pod: podOf(always, "a", "b"), Containers: list(done("a", 0), done("b", 1))},
			v1.PodRunning},
		"st-29 crash loop, Always": {status.PhaseFacts{Pod: podOf(always, "a"), Containers: list(loops("a", 1))},
			v1.PodRunning},
		"st-29 exit 1, OnFailure": {status.PhaseFacts{Pod: podOf(onFail, "a"), Containers: list(done("a", 1))},
			v1.PodRunning},
		"st-29 deleted, all exited(137), terminal": {status.PhaseFacts{Pod: podOf(always, "a", "b"), Terminal: true, Containers: list(done("a", 137), done("b", 137))},
			v1.PodFailed},

		"st-25.1 init failed for good":                        {status.PhaseFacts{Pod: withInit(podOf(never, "a"), "i"), Init: list(done("i", 1)), Containers: list(waits("a"))}, v1.PodFailed},
		"st-22 init failed, restartable":                      {status.PhaseFacts{Pod: withInit(podOf(onFail, "a"), "i"), Init: list(done("i", 1)), Containers: list(waits("a"))}, v1.PodPending},
		"st-22 init waits after a failure, Never":             {status.PhaseFacts{Pod: withInit(podOf(never, "a"), "i"), Init: list(loops("i", 1)), Containers: list(waits("a"))}, v1.PodFailed},
		"st-22 init waits after a success":                    {status.PhaseFacts{Pod: withInit(podOf(never, "a"), "i"), Init: list(loops("i", 0)), Containers: list(up("a"))}, v1.PodRunning},
		"st-22 init missing":                                  {status.PhaseFacts{Pod: withInit(podOf(always, "a"), "i"), Containers: list(up("a"))}, v1.PodPending},
		"st-22 init running":                                  {status.PhaseFacts{Pod: withInit(podOf(always, "a"), "i"), Init: list(up("i")), Containers: list(up("a"))}, v1.PodPending},
		"st-22 init empty":                                    {status.PhaseFacts{Pod: withInit(podOf(always, "a"), "i"), Init: list(v1.ContainerStatus{Name: "i"}), Containers: list(up("a"))}, v1.PodPending},
		"st-22 restart-all counts as restartable":             {status.PhaseFacts{Pod: podOf(never, "a"), Containers: list(restartingAll)}, v1.PodRunning},
		"st-25.2 sidecar not started, not initialized":        {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Init: list(notStarted(up("s"))), Containers: list(up("a"))}, v1.PodPending},
		"st-25.2 sidecar not started, initialized":            {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Init: list(notStarted(up("s"))), Containers: list(up("a")), Initialized: true}, v1.PodRunning},
		"st-23 sidecar missing":                               {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Containers: list(up("a"))}, v1.PodPending},
		"st-23 sidecar terminated is ignored":                 {status.PhaseFacts{Pod: withSidecar(podOf(never, "a"), "s"), Init: list(done("s", 1)), Containers: list(done("a", 0))}, v1.PodSucceeded},
		"st-23 sidecar crash-looping is ignored":              {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Init: list(loops("s", 1)), Containers: list(up("a"))}, v1.PodRunning},
		"st-23 sidecar waits for its first start":             {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Init: list(waits("s")), Containers: list(up("a")), Initialized: true}, v1.PodPending},
		"st-23 sidecar empty":                                 {status.PhaseFacts{Pod: withSidecar(podOf(always, "a"), "s"), Init: list(v1.ContainerStatus{Name: "s"}), Containers: list(up("a")), Initialized: true}, v1.PodPending},
		"st-23 sidecar runs after the others ended":           {status.PhaseFacts{Pod: withSidecar(podOf(never, "a"), "s"), Init: list(up("s")), Containers: list(done("a", 0))}, v1.PodRunning},
		"st-25.3 one waits":                                   {status.PhaseFacts{Pod: podOf(always, "a", "b"), Containers: list(up("a"), waits("b"))}, v1.PodPending},
		"st-24 empty status is unknown":                       {status.PhaseFacts{Pod: podOf(always, "a", "b"), Containers: list(up("a"), v1.ContainerStatus{Name: "b"})}, v1.PodPending},
		"st-24 waiting after success never counts as success": {status.PhaseFacts{Pod: podOf(never, "a"), Containers: list(loops("a", 0)), Terminal: true}, v1.PodFailed},
		"st-25.5 terminal, all succeeded, Always":             {status.PhaseFacts{Pod: podOf(always, "a"), Containers: list(done("a", 0)), Terminal: true}, v1.PodSucceeded},
		"st-25.5 terminal, never started":                     {status.PhaseFacts{Pod: podOf(always, "a"), Containers: list(waits("a")), Terminal: true}, v1.PodPending},
		"st-25.6 rule restarts":                               {status.PhaseFacts{Pod: rule(podOf(never, "a"), v1.ContainerRestartRuleActionRestart, 42), Containers: list(done("a", 42))}, v1.PodRunning},
		"st-25.6 rule restarts all":                           {status.PhaseFacts{Pod: rule(podOf(never, "a"), v1.ContainerRestartRuleActionRestartAllContainers, 42), Containers: list(done("a", 42))}, v1.PodRunning},
		"st-25.8 rule does not match":                         {status.PhaseFacts{Pod: rule(podOf(always, "a"), v1.ContainerRestartRuleActionRestart, 42), Containers: list(done("a", 41))}, v1.PodFailed},
		"st-25.7 OnFailure, success":                          {status.PhaseFacts{Pod: podOf(onFail, "a"), Containers: list(done("a", 0))}, v1.PodSucceeded},
		"st-25.9 nothing but unknown":                         {status.PhaseFacts{Pod: podOf(never, "a", "b"), Containers: list(done("a", 0))}, v1.PodPending},
		"st-27 Running goes back to Pending":                  {status.PhaseFacts{Pod: podOf(always, "a"), Containers: list(waits("a"))}, v1.PodPending},
		"st-28 static pods are not ended by row 5":            {status.PhaseFacts{Pod: static(podOf(always, "a")), Containers: list(done("a", 137)), Terminal: true}, v1.PodRunning},
		"st-28 static pods end by their policy":               {status.PhaseFacts{Pod: static(podOf(never, "a")), Containers: list(done("a", 0)), Terminal: true}, v1.PodSucceeded},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, status.Phase(tc.facts)) })
	}
}

func TestHasInitializedUsesTheNewestReadySandboxOnly(t *testing.T) { // st-21
	pod := withSidecar(podOf(v1.RestartPolicyAlways, "a"), "s")
	assert.False(t, status.HasInitialized(pod, nil))
	assert.False(t, status.HasInitialized(pod, seen(runningC("s", 0))), "a sidecar is no regular container")
	assert.True(t, status.HasInitialized(pod, seen(exitedC("a", 0, 1))), "in any state")
	assert.False(t, status.HasInitialized(pod, stopped(runningC("a", 0))), "rt-9: ready ones")

	two := seen(exitedC("a", 0, 137))
	two.Sandboxes = append([]runtime.SandboxStatus{{ID: "x://new", State: runtime.SandboxReady, Attempt: 1}}, two.Sandboxes...)
	assert.False(t, status.HasInitialized(pod, two), "rt-9: the newest")
}
