package status_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// brief formats a container status: state, last state, restarts.
func brief(c v1.ContainerStatus) string {
	state := func(s v1.ContainerState) string {
		switch {
		case s.Running != nil:
			return "running"
		case s.Terminated != nil:
			return "exited(" + itoa(s.Terminated.ExitCode) + " " + s.Terminated.Reason + ")"
		case s.Waiting != nil:
			return "waiting(" + s.Waiting.Reason + ")"
		}
		return "-"
	}
	return state(c.State) + " last=" + state(c.LastTerminationState) + " restarts=" + itoa(c.RestartCount)
}

func TestContainerStatusFollowsTheInstances(t *testing.T) {
	const always, never = v1.RestartPolicyAlways, v1.RestartPolicyNever
	restarts := func(c v1.ContainerStatus, n int32) v1.ContainerStatus { c.RestartCount = n; return c }
	reported := func(c v1.ContainerStatus) v1.PodStatus {
		return v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{c}}
	}
	deleted := podOf(always, "a")
	deleted.DeletionTimestamp = new(metav1.NewTime(t0))
	lostCount := runningC("a", 1)
	lostCount.RestartCount = 0
	starting := runningC("a", 1)
	starting.Starting = true
	loop := map[string]v1.ContainerStateWaiting{"a": {Reason: "CrashLoopBackOff", Message: "back-off 10s"}}

	for name, tc := range map[string]struct {
		facts status.Facts
		want  string
	}{
		"st-1 nothing known":                      {status.Facts{Pod: podOf(always, "a"), Observed: seen()}, "waiting(ContainerCreating) last=- restarts=0"},
		"st-1 with init containers":               {status.Facts{Pod: withInit(podOf(always, "a"), "i"), Observed: seen()}, "waiting(PodInitializing) last=- restarts=0"},
		"st-2 count and last state are kept":      {status.Facts{Pod: podOf(always, "a"), Observed: seen(), Previous: reported(restarts(loops("a", 3), 4))}, "waiting(ContainerCreating) last=exited(3 ) restarts=4"},
		"st-3 newest is state, second last state": {status.Facts{Pod: podOf(always, "a"), Observed: seen(runningC("a", 2), exitedC("a", 1, 5), exitedC("a", 0, 6))}, "running last=exited(5 Error) restarts=2"},
		"st-4 created":                            {status.Facts{Pod: podOf(always, "a"), Observed: seen(instance("a", 1, runtime.ContainerCreated), exitedC("a", 0, 6))}, "waiting(ContainerCreating) last=exited(6 Error) restarts=1"},
		"st-4 created, with init containers":      {status.Facts{Pod: withInit(podOf(always, "a"), "i"), Observed: seen(instance("a", 0, runtime.ContainerCreated))}, "waiting(PodInitializing) last=- restarts=0"},
		"st-4 its postStart hook runs":            {status.Facts{Pod: podOf(always, "a"), Observed: seen(starting, exitedC("a", 0, 6))}, "waiting(ContainerCreating) last=exited(6 Error) restarts=1"},
		"st-4 exited":                             {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 0, 6))}, "exited(6 Error) last=- restarts=0"},
		"st-5 unknown after running":              {status.Facts{Pod: podOf(always, "a"), Observed: seen(instance("a", 0, runtime.ContainerUnknown)), Previous: reported(up("a"))}, "exited(137 ContainerStatusUnknown) last=- restarts=1"},
		"st-5 unknown otherwise":                  {status.Facts{Pod: podOf(always, "a"), Observed: seen(instance("a", 0, runtime.ContainerUnknown))}, "waiting() last=- restarts=0"},
		"st-5 unknown after its exit":             {status.Facts{Pod: podOf(always, "a"), Observed: seen(instance("a", 0, runtime.ContainerUnknown)), Previous: reported(done("a", 4))}, "exited(4 ) last=- restarts=0"},
		"st-6 gone after running":                 {status.Facts{Pod: podOf(always, "a"), Observed: seen(), Previous: reported(up("a"))}, "waiting(ContainerCreating) last=exited(137 ContainerStatusUnknown) restarts=1"},
		"st-6 gone after running, being deleted":  {status.Facts{Pod: deleted, Observed: seen(), Previous: reported(up("a"))}, "waiting(ContainerCreating) last=exited(137 ContainerStatusUnknown) restarts=0"},
		"st-7 gone after exit":                    {status.Facts{Pod: podOf(always, "a"), Observed: seen(), Previous: reported(done("a", 4))}, "exited(4 ) last=- restarts=0"},
		"st-7 gone after waiting":                 {status.Facts{Pod: podOf(always, "a"), Observed: seen(), Previous: reported(waits("a"))}, "waiting(ContainerCreating) last=- restarts=0"},
		"st-10 start error":                       {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 0, 6)), Waiting: loop}, "waiting(CrashLoopBackOff) last=exited(6 Error) restarts=0"},
		"st-10 start error, never started":        {status.Facts{Pod: podOf(always, "a"), Observed: seen(), Waiting: loop}, "waiting(CrashLoopBackOff) last=- restarts=0"},
		"st-10 not to be restarted":               {status.Facts{Pod: podOf(never, "a"), Observed: seen(exitedC("a", 0, 6)), Waiting: loop}, "exited(6 Error) last=- restarts=0"},
		"st-10 being deleted":                     {status.Facts{Pod: deleted, Observed: seen(exitedC("a", 0, 6)), Waiting: loop}, "exited(6 Error) last=- restarts=0"},
		"st-10 ended":                             {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 0, 6)), Waiting: loop, Termination: runtime.Termination{Terminal: true}}, "exited(6 Error) last=- restarts=0"},
		"st-10 a running one is not touched":      {status.Facts{Pod: podOf(always, "a"), Observed: seen(runningC("a", 0)), Waiting: loop}, "running last=- restarts=0"},
		"st-11 no start error":                    {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 0, 6)), Previous: reported(loops("a", 6))}, "exited(6 ) last=- restarts=0"},
		"st-16 the count never drops":             {status.Facts{Pod: podOf(always, "a"), Observed: seen(runningC("a", 1)), Previous: reported(restarts(up("a"), 5))}, "running last=- restarts=5"},
		"st-16 the runtime lost count":            {status.Facts{Pod: podOf(always, "a"), Observed: seen(lostCount), Previous: reported(restarts(done("a", 1), 3))}, "running last=exited(1 ) restarts=4"},
		"lq-12 a running one counts":              {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 1, 6), runningC("a", 0))}, "running last=exited(6 Error) restarts=0"},
		"an exit stands":                          {status.Facts{Pod: podOf(always, "a"), Observed: seen(exitedC("a", 0, 137)), Previous: reported(done("a", 4))}, "exited(4 ) last=- restarts=0"},
		"as last state, after collection":         {status.Facts{Pod: podOf(always, "a"), Observed: seen(runningC("a", 1)), Previous: reported(done("a", 4))}, "running last=exited(4 ) restarts=1"},
		"not observed":                            {status.Facts{Pod: podOf(always, "a"), Previous: reported(up("a"))}, "running last=- restarts=0"},
		"the source's word counts at first":       {status.Facts{Pod: func() *v1.Pod { p := podOf(always, "a"); p.Status = reported(done("a", 4)); return p }(), Observed: seen()}, "exited(4 ) last=- restarts=0"},
	} {
		t.Run(name, func(t *testing.T) {
			_, regular, _ := status.ContainerStatuses(tc.facts)
			require.Len(t, regular, 1)
			assert.Equal(t, tc.want, brief(regular[0]))
		})
	}
}

func TestALostExitIsReplacedByTheActualOne(t *testing.T) {
	pod := podOf(v1.RestartPolicyNever, "a")
	f := status.Facts{Pod: pod, Now: t0, Observed: seen(runningC("a", 0))}
	f.Previous = status.Compute(f)
	f.Observed = seen(instance("a", 0, runtime.ContainerUnknown))
	f.Previous = status.Compute(f)
	assert.Equal(t, int32(137), f.Previous.ContainerStatuses[0].State.Terminated.ExitCode)
	f.Previous.Phase = v1.PodRunning // as if held back
	f.Observed = seen(exitedC("a", 0, 3))
	assert.Equal(t, int32(3), status.Compute(f).ContainerStatuses[0].State.Terminated.ExitCode)
}

func TestInitContainerStatuses(t *testing.T) {
	pod := withInit(podOf(v1.RestartPolicyAlways, "a"), "i")
	side := withSidecar(podOf(v1.RestartPolicyAlways, "a"), "i")
	newSandbox := seen(exitedC("a", 0, 1))
	newSandbox.Sandboxes = append([]runtime.SandboxStatus{{ID: "x://new", State: runtime.SandboxReady, Attempt: 1}}, newSandbox.Sandboxes...)
	starts := map[string]v1.ContainerStateWaiting{"i": {Reason: "ErrImagePull"}}

	for name, tc := range map[string]struct {
		facts status.Facts
		want  string
		ready bool
	}{
		"st-8 gone, but a regular one was created": {status.Facts{Pod: pod, Observed: seen(runningC("a", 0))}, "exited(0 Completed) last=- restarts=0", true},
		"st-8 not for sidecars":                    {status.Facts{Pod: side, Observed: seen(runningC("a", 0))}, "waiting(PodInitializing) last=- restarts=0", false},
		"st-8 not for an older sandbox":            {status.Facts{Pod: pod, Observed: newSandbox}, "waiting(PodInitializing) last=- restarts=0", false},
		"st-8 not if its start failed":             {status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), Waiting: starts}, "waiting(ErrImagePull) last=- restarts=0", false},
		"st-9 success never waits":                 {status.Facts{Pod: pod, Observed: seen(exitedC("i", 0, 0)), Waiting: starts}, "exited(0 Completed) last=- restarts=0", true},
		"st-10 failure waits":                      {status.Facts{Pod: pod, Observed: seen(exitedC("i", 0, 1)), Waiting: starts}, "waiting(ErrImagePull) last=exited(1 Error) restarts=0", false},
		"st-10 a sidecar's success waits":          {status.Facts{Pod: side, Observed: seen(exitedC("i", 0, 0)), Waiting: starts}, "waiting(ErrImagePull) last=exited(0 Completed) restarts=0", false},
		"st-20 running":                            {status.Facts{Pod: pod, Observed: seen(runningC("i", 0))}, "running last=- restarts=0", false},
		"st-20 prober-69 a running sidecar":        {status.Facts{Pod: side, Observed: seen(runningC("i", 0))}, "running last=- restarts=0", true},
	} {
		t.Run(name, func(t *testing.T) {
			init, _, _ := status.ContainerStatuses(tc.facts)
			require.Len(t, init, 1)
			assert.Equal(t, tc.want, brief(init[0]))
			assert.Equal(t, tc.ready, init[0].Ready)
		})
	}
}

func TestStatusesAreSortedAndUnknownContainersOmitted(t *testing.T) { // st-3, st-13
	pod := withInit(podOf(v1.RestartPolicyAlways, "b", "a"), "z", "y")
	pod.Spec.EphemeralContainers = []v1.EphemeralContainer{
		{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "q"}},
		{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "p"}},
	}
	init, regular, ephemeral := status.ContainerStatuses(status.Facts{Pod: pod, Observed: seen(runningC("stranger", 0), runningC("p", 0))})
	names := func(list []v1.ContainerStatus) (s string) {
		for _, c := range list {
			s += c.Name
		}
		return s
	}
	assert.Equal(t, "zy ab pq", names(init)+" "+names(regular)+" "+names(ephemeral))
	assert.False(t, ephemeral[0].Ready)
	assert.Nil(t, ephemeral[0].Started)
}

func TestReadyAndStarted(t *testing.T) { // st-12, st-17, st-18
	plain, probed := podOf("", "a"), podOf("", "a")
	probed.Spec.Containers[0].ReadinessProbe = new(v1.Probe)
	probed.Spec.Containers[0].StartupProbe = new(v1.Probe)
	results := func(startup, readiness runtime.ProbeResult) map[string]runtime.ProbeStatus {
		return map[string]runtime.ProbeStatus{"a": {Startup: startup, Readiness: readiness}}
	}
	const none, ok, fail = runtime.ProbeUnknown, runtime.ProbeSuccess, runtime.ProbeFailure
	before := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{up("a")}}
	other := v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{up("a")}}
	other.ContainerStatuses[0].ContainerID = "x://other"

	for name, tc := range map[string]struct {
		pod            *v1.Pod
		probes         map[string]runtime.ProbeStatus
		previous       v1.PodStatus
		started, ready bool
	}{
		"no prober, no probes":                 {plain, nil, v1.PodStatus{}, true, true},
		"no prober, probes count as passed":    {probed, nil, v1.PodStatus{}, true, true},
		"prober, no probes":                    {plain, results(none, none), v1.PodStatus{}, true, true},
		"no results yet":                       {probed, map[string]runtime.ProbeStatus{}, v1.PodStatus{}, false, false},
		"startup passed":                       {probed, results(ok, none), v1.PodStatus{}, true, false},
		"both passed":                          {probed, results(ok, ok), v1.PodStatus{}, true, true},
		"readiness failed":                     {probed, results(ok, fail), v1.PodStatus{}, true, false},
		"not started is not ready":             {probed, results(fail, ok), v1.PodStatus{}, false, false},
		"st-12 started before":                 {probed, results(none, ok), before, true, true},
		"st-12 another instance had":           {probed, results(none, ok), other, false, false},
		"ready before, no result":              {probed, results(none, none), before, true, true},
		"ready before, but now it fails":       {probed, results(none, fail), before, true, false},
		"another instance was ready":           {probed, results(ok, none), other, true, false},
		"failed startup counts, though before": {probed, results(fail, ok), before, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			_, regular, _ := status.ContainerStatuses(status.Facts{Pod: tc.pod, Observed: seen(runningC("a", 0)), Probes: tc.probes, Previous: tc.previous})
			require.NotNil(t, regular[0].Started)
			assert.Equal(t, tc.started, *regular[0].Started, "started")
			assert.Equal(t, tc.ready, regular[0].Ready, "ready")
		})
	}
}

func TestVolumeMountsAreReportedOnce(t *testing.T) { // st-14
	pod := podOf("", "a")
	pod.Spec.Containers[0].VolumeMounts = []v1.VolumeMount{
		{Name: "rw", MountPath: "/rw"},
		{Name: "ro", MountPath: "/ro", ReadOnly: true},
		{Name: "all", MountPath: "/all", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyEnabled)},
		{Name: "perhaps", MountPath: "/perhaps", ReadOnly: true, RecursiveReadOnly: new(v1.RecursiveReadOnlyIfPossible)},
	}
	f := status.Facts{Pod: pod, Observed: seen()}
	first := status.Compute(f)
	var modes []string
	for _, m := range first.ContainerStatuses[0].VolumeMounts {
		mode := "-"
		if m.RecursiveReadOnly != nil {
			mode = string(*m.RecursiveReadOnly)
		}
		modes = append(modes, m.Name+":"+mode)
	}
	assert.Equal(t, "rw:- ro:Disabled all:Enabled perhaps:Disabled", strings.Join(modes, " "))

	f.RecursiveReadOnly = true
	can := status.Compute(f).ContainerStatuses[0].VolumeMounts[3]
	assert.Equal(t, v1.RecursiveReadOnlyEnabled, *can.RecursiveReadOnly, "where the handler can, it is possible")

	f.Previous, f.Pod = first, podOf("", "a")
	assert.Equal(t, first.ContainerStatuses[0].VolumeMounts, status.Compute(f).ContainerStatuses[0].VolumeMounts)
}

func TestTheUserOfAContainerIsThatOfTheInstance(t *testing.T) {
	me := &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1000, GID: 1000, SupplementalGroups: []int64{4, 27}}}
	c := runningC("a", 0)
	c.User = me
	f := status.Facts{Pod: podOf("", "a"), Observed: seen(c), Now: t0}
	f.Previous = status.Compute(f)
	assert.Equal(t, me, f.Previous.ContainerStatuses[0].User)
	assert.NotSame(t, me, f.Previous.ContainerStatuses[0].User, "the runtime's own is shared")

	f.Observed = seen(exitedC("a", 0, 1))
	f.Previous = status.Compute(f)
	assert.Equal(t, me, f.Previous.ContainerStatuses[0].User, "a runtime that forgets")
	f.Observed = seen(runningC("a", 1), exitedC("a", 0, 1))
	assert.Nil(t, status.Compute(f).ContainerStatuses[0].User, "the next one's is not known")
}

func TestTheStopSignalOfAContainerIsThatOfTheInstance(t *testing.T) {
	c := runningC("a", 0)
	c.StopSignal = v1.SIGQUIT
	f := status.Facts{Pod: podOf("", "a"), Observed: seen(c), Now: t0}
	f.Previous = status.Compute(f)
	assert.Equal(t, new(v1.SIGQUIT), f.Previous.ContainerStatuses[0].StopSignal)

	f.Observed = seen(exitedC("a", 0, 1))
	f.Previous = status.Compute(f)
	assert.Equal(t, new(v1.SIGQUIT), f.Previous.ContainerStatuses[0].StopSignal, "a runtime that forgets")
	f.Observed = seen(runningC("a", 1), exitedC("a", 0, 1))
	assert.Nil(t, status.Compute(f).ContainerStatuses[0].StopSignal, "the next one's is not known")
}

func TestTheHealthOfDevicesIsShown(t *testing.T) { // st-34
	sick := []v1.ResourceStatus{{Name: "example.com/gpu", Resources: []v1.ResourceHealth{{ResourceID: "0", Health: v1.ResourceHealthStatusUnhealthy}}}}
	f := status.Facts{Pod: podOf("", "a", "b"), Observed: seen(runningC("a", 0), runningC("b", 0)), Now: t0}
	f.DeviceHealth = map[string][]v1.ResourceStatus{"a": sick}
	f.Previous = status.Compute(f)
	assert.Equal(t, sick, f.Previous.ContainerStatuses[0].AllocatedResourcesStatus)
	assert.Nil(t, f.Previous.ContainerStatuses[1].AllocatedResourcesStatus)
	f.DeviceHealth = nil
	assert.Equal(t, sick, status.Compute(f).ContainerStatuses[0].AllocatedResourcesStatus, "not observed")
	f.DeviceHealth = map[string][]v1.ResourceStatus{}
	assert.Nil(t, status.Compute(f).ContainerStatuses[0].AllocatedResourcesStatus)
}
