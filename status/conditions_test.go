package status_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestConditionsHaveReasons(t *testing.T) {
	const always = v1.RestartPolicyAlways
	list := func(c ...v1.ContainerStatus) []v1.ContainerStatus { return c }
	of := func(phase v1.PodPhase, init, regular []v1.ContainerStatus) *v1.PodStatus {
		return &v1.PodStatus{Phase: phase, InitContainerStatuses: init, ContainerStatuses: regular}
	}
	gated := func(conditions ...v1.PodCondition) *v1.Pod {
		pod := podOf(always, "a")
		pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "lb"}, {ConditionType: "dns"}}
		pod.Status.Conditions = conditions
		return pod
	}
	succeededInit := done("i", 0)
	succeededInit.Ready = true

	for name, tc := range map[string]struct {
		pod    *v1.Pod
		status *v1.PodStatus
		typ    v1.PodConditionType
		want   string
	}{
		"st-39 no statuses":         {podOf(always, "a"), of(v1.PodPending, nil, nil), v1.ContainersReady, "False UnknownContainerStatuses: "},
		"st-39 failed":              {podOf(always, "a"), of(v1.PodFailed, nil, list(up("a"))), v1.ContainersReady, "False PodFailed: "},
		"st-39 succeeded":           {podOf(always, "a"), of(v1.PodSucceeded, nil, list(done("a", 0))), v1.ContainersReady, "False PodCompleted: "},
		"st-39 unknown and unready": {podOf(always, "a", "b", "c"), of(v1.PodPending, nil, list(waits("c"))), v1.ContainersReady, "False ContainersNotReady: containers with unknown status: [a b], containers with unready status: [c]"},
		"st-39 sidecars count":      {withSidecar(podOf(always, "a"), "s"), of(v1.PodRunning, list(notStarted(up("s"))), list(up("a"))), v1.ContainersReady, "False ContainersNotReady: containers with unready status: [s]"},
		"st-39 ready":               {podOf(always, "a"), of(v1.PodRunning, nil, list(up("a"))), v1.ContainersReady, "True : "},

		"st-40 as the containers": {podOf(always, "a"), of(v1.PodRunning, nil, list(waits("a"))), v1.PodReady, "False ContainersNotReady: containers with unready status: [a]"},
		"st-40 gates":             {gated(v1.PodCondition{Type: "dns", Status: v1.ConditionUnknown}), of(v1.PodRunning, nil, list(up("a"))), v1.PodReady, `False ReadinessGatesNotReady: corresponding condition of pod readiness gate "lb" does not exist., the status of pod readiness gate "dns" is not "True", but Unknown`},
		"st-40 gates open":        {gated(v1.PodCondition{Type: "dns", Status: v1.ConditionTrue}, v1.PodCondition{Type: "lb", Status: v1.ConditionTrue}), of(v1.PodRunning, nil, list(up("a"))), v1.PodReady, "True : "},

		"st-41 no statuses":             {withInit(podOf(always, "a"), "i"), of(v1.PodPending, nil, nil), v1.PodInitialized, "False UnknownContainerStatuses: "},
		"st-41 succeeded":               {withInit(podOf(always, "a"), "i"), of(v1.PodSucceeded, list(done("i", 0)), list(done("a", 0))), v1.PodInitialized, "True PodCompleted: "},
		"st-41 a regular one ran":       {withInit(podOf(always, "a"), "i"), of(v1.PodRunning, list(waits("i")), list(up("a"))), v1.PodInitialized, "True : "},
		"st-41 incomplete":              {withInit(podOf(always, "a"), "i", "j"), of(v1.PodPending, list(waits("i")), list(waits("a"))), v1.PodInitialized, "False ContainersNotInitialized: containers with unknown status: [j], containers with incomplete status: [i]"},
		"st-41 done":                    {withInit(podOf(always, "a"), "i"), of(v1.PodPending, list(succeededInit), list(waits("a"))), v1.PodInitialized, "True : "},
		"st-41 sidecar started is done": {withSidecar(podOf(always, "a"), "s"), of(v1.PodPending, list(up("s")), list(waits("a"))), v1.PodInitialized, "True : "},
		"st-41 sidecar not started":     {withSidecar(podOf(always, "a"), "s"), of(v1.PodPending, list(notStarted(up("s"))), list(waits("a"))), v1.PodInitialized, "False ContainersNotInitialized: containers with incomplete status: [s]"},
		"st-38 scheduled":               {podOf(always, "a"), of(v1.PodPending, nil, nil), v1.PodScheduled, "True : "},
	} {
		t.Run(name, func(t *testing.T) {
			c := status.Condition(status.Conditions(status.ConditionFacts{Pod: tc.pod, Status: tc.status, Now: t0}), tc.typ)
			require.NotNil(t, c)
			assert.Equal(t, tc.want, string(c.Status)+" "+c.Reason+": "+c.Message)
			assert.Equal(t, t0, c.LastTransitionTime.Time)
		})
	}
}

func TestConditionsOfOthersComeFirstAndUntouched(t *testing.T) { // st-35, st-37, st-38, st-43
	pod := podOf("", "a")
	pod.Generation = 7
	foreign := v1.PodCondition{Type: "lb", Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0.Add(-time.Hour))}
	stale := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionUnknown}
	disrupted := v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "TerminationByKubelet"}
	pod.Status.Conditions = []v1.PodCondition{stale, foreign}

	s := status.Compute(status.Facts{
		Pod: pod, Observed: seen(runningC("a", 0)), Now: t0,
		Previous: v1.PodStatus{Phase: v1.PodRunning, Conditions: []v1.PodCondition{disrupted}},
	})
	var order []v1.PodConditionType
	for _, c := range s.Conditions {
		order = append(order, c.Type)
		if status.Owned(c.Type) {
			assert.Equal(t, int64(7), c.ObservedGeneration, c.Type)
		}
	}
	assert.Equal(t, []v1.PodConditionType{"lb", v1.DisruptionTarget, v1.PodReadyToStartContainers,
		v1.PodInitialized, v1.PodReady, v1.ContainersReady, v1.PodScheduled}, order)
	assert.Equal(t, foreign, s.Conditions[0])
	assert.Equal(t, disrupted, s.Conditions[1])
	assert.True(t, status.IsReady(&s))
}

func TestConditionKeepsItsTransitionTime(t *testing.T) { // st-42, st-51
	pod := withInit(podOf("", "a"), "i")
	f := status.Facts{Pod: pod, Observed: seen(runningC("a", 0), exitedC("i", 0, 0)), Now: t0}
	f.Previous = status.Compute(f)
	f.Now = t0.Add(time.Minute)
	f.Observed = seen(exitedC("a", 0, 1), exitedC("i", 0, 0))
	f.Previous = status.Compute(f)
	assert.Equal(t, t0, status.Condition(f.Previous.Conditions, v1.PodInitialized).LastTransitionTime.Time)
	assert.Equal(t, f.Now, status.Condition(f.Previous.Conditions, v1.PodReady).LastTransitionTime.Time)

	f.Observed = seen() // everything collected, all starts over
	s := status.Compute(f)
	assert.Equal(t, v1.ConditionTrue, status.Condition(s.Conditions, v1.PodInitialized).Status, "st-42")
}

func TestReadyToStartNeedsTheRightSandbox(t *testing.T) { // rt-25, rt-27
	host := podOf("", "a")
	host.Spec.HostNetwork = true
	with := func(change func(*runtime.PodStatus)) *runtime.PodStatus {
		s := seen()
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		pod      *v1.Pod
		observed *runtime.PodStatus
		want     string // the message; empty if the condition is true
	}{
		"ready":             {podOf("", "a"), seen(), ""},
		"none":              {podOf("", "a"), &runtime.PodStatus{}, "no pod sandbox exists"},
		"stopped":           {podOf("", "a"), stopped(), "pod sandbox is not ready"},
		"two ready":         {podOf("", "a"), with(func(s *runtime.PodStatus) { s.Sandboxes = append(s.Sandboxes, s.Sandboxes[0]) }), "multiple pod sandboxes are ready and need to be reconciled"},
		"no address":        {podOf("", "a"), with(func(s *runtime.PodStatus) { s.Sandboxes[0].IPs = nil }), "pod sandbox has no IP address"},
		"network not known": {podOf("", "a"), with(func(s *runtime.PodStatus) { s.Sandboxes[0].IPs, s.Sandboxes[0].NetworkReported = nil, false }), ""},
		"host network":      {host, with(func(s *runtime.PodStatus) { s.Sandboxes[0].IPs, s.Sandboxes[0].HostNetwork = nil, true }), ""},
		"the wrong network": {host, seen(), "network namespace mode changed and sandbox needs to be recreated"},
		"not observed":      {podOf("", "a"), nil, "no pod sandbox exists"},
		"an older one ready": {podOf("", "a"), with(func(s *runtime.PodStatus) {
			s.Sandboxes = append([]runtime.SandboxStatus{{ID: "x://new"}}, s.Sandboxes...)
		}), "pod sandbox is not ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := status.Compute(status.Facts{Pod: tc.pod, Observed: tc.observed, Now: t0})
			want := v1.PodCondition{Type: v1.PodReadyToStartContainers, ObservedGeneration: 1, Status: v1.ConditionTrue, LastTransitionTime: metav1.NewTime(t0)}
			if tc.want != "" {
				want.Status, want.Reason, want.Message = v1.ConditionFalse, "PodSandboxNotReady", tc.want
			}
			assert.Equal(t, want, *status.Condition(s.Conditions, v1.PodReadyToStartContainers))
		})
	}
}

// A reason of the pod itself takes precedence.
func TestAPodThatTheNodeIsAboutToTerminateIsNotReady(t *testing.T) {
	why := status.Unready{Reason: "NodeShutdown", Message: "node is shutting down"}
	for want, containers := range map[string]v1.ContainerStatus{
		"False NodeShutdown: node is shutting down":                     up("a"),
		"False ContainersNotReady: containers with unready status: [a]": waits("a"),
	} {
		s := &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{containers}}
		all := status.Conditions(status.ConditionFacts{Pod: podOf(v1.RestartPolicyAlways, "a"), Status: s, Unready: why, Now: t0})
		c := status.Condition(all, v1.PodReady)
		assert.Equal(t, want, string(c.Status)+" "+c.Reason+": "+c.Message)
	}
	m := started(t, status.Config{Sink: new(status.MemorySink), Facts: []func(*status.Facts){func(f *status.Facts) { f.Unready = why }}})
	s := m.Report(podOf(v1.RestartPolicyAlways, "a"), seen(instance("a", 0, runtime.ContainerRunning)), nil, runtime.Termination{})
	assert.False(t, status.IsReady(&s))
	assert.Equal(t, v1.ConditionTrue, status.Condition(s.Conditions, v1.ContainersReady).Status)
}
