package status_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

func TestPhaseFollowsThePublishedOne(t *testing.T) {
	run := seen(runningC("a", 0))
	evicted := runtime.Termination{Failed: true, Reason: "Evicted", Message: "low on memory"}
	reported := func(phase v1.PodPhase, reason string) v1.PodStatus {
		return v1.PodStatus{Phase: phase, Reason: reason, Message: "m", ContainerStatuses: []v1.ContainerStatus{up("a")}}
	}
	for name, tc := range map[string]struct {
		source, previous v1.PodStatus
		observed         *runtime.PodStatus
		end              runtime.Termination
		want             string
	}{
		"st-25 computed":                            {observed: run, want: "Running//"},
		"st-30 cached terminal phase stays":         {previous: reported(v1.PodFailed, "X"), observed: run, want: "Failed/X/m"},
		"st-30 terminal phase of the source stays":  {source: reported(v1.PodSucceeded, "Y"), observed: run, want: "Succeeded/Y/m"},
		"st-31 same phase keeps its reason":         {previous: reported(v1.PodRunning, "X"), observed: run, want: "Running/X/m"},
		"st-31 a new phase has none":                {previous: reported(v1.PodPending, "X"), observed: run, want: "Running//"},
		"st-31 the source's, if none was published": {source: reported(v1.PodRunning, "Y"), observed: run, want: "Running/Y/m"},
		"st-32 forced":                              {previous: reported(v1.PodRunning, "X"), observed: run, end: evicted, want: "Failed/Evicted/low on memory"},
		"st-33 the source's takes precedence":       {source: reported(v1.PodSucceeded, "Y"), previous: reported(v1.PodFailed, "X"), observed: run, end: evicted, want: "Succeeded/Y/m"},
		"inv-7 Succeeded does not become Failed":    {previous: reported(v1.PodSucceeded, ""), observed: run, end: evicted, want: "Succeeded//m"},
		"the first reason of a failure stays":       {previous: reported(v1.PodFailed, "X"), observed: run, end: evicted, want: "Failed/X/m"},
		"an eviction is not undone by exits with 0": {previous: reported(v1.PodFailed, "Evicted"), observed: seen(exitedC("a", 0, 0)), end: runtime.Termination{Terminal: true}, want: "Failed/Evicted/m"},
		"a rejected pod has no container statuses":  {end: evicted, want: "Failed/Evicted/low on memory"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf(v1.RestartPolicyAlways, "a")
			pod.Status = tc.source
			s := status.Compute(status.Facts{Pod: pod, Observed: tc.observed, Previous: tc.previous, Termination: tc.end, Now: t0})
			assert.Equal(t, tc.want, string(s.Phase)+"/"+s.Reason+"/"+s.Message)
			assert.False(t, status.Terminal(s.Phase) && status.IsReady(&s), "inv-8, st-78")
			if tc.observed == nil {
				assert.Empty(t, s.ContainerStatuses)
			}
		})
	}
}

// sl-18: also when it has terminated, and after a restart of the agent.
func TestARejectedPodHasNoContainers(t *testing.T) {
	pod, nothing := podOf(v1.RestartPolicyAlways, "a"), &runtime.PodStatus{}
	f := status.Facts{
		Pod: pod, Termination: runtime.Termination{Failed: true, Reason: "NodeAffinity", Message: "Pod was rejected: no"},
		Observed: nothing, HostIPs: []string{"192.168.0.1"}, Now: t0,
	}
	f.Previous = status.Compute(f)
	f.Termination.Terminal = true
	s := status.Terminate(pod, status.Compute(f), t0)
	assert.Empty(t, s.ContainerStatuses)
	assert.Equal(t, "NodeAffinity", s.Reason)
	assert.Empty(t, s.Conditions)
	assert.Empty(t, s.HostIP)
	assert.Nil(t, s.Resources)

	reported := v1.PodStatus{Phase: v1.PodPending, HostIPs: []v1.HostIP{{IP: "192.168.0.1"}}, Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue}}}
	before := status.Compute(status.Facts{Pod: pod, Termination: f.Termination, Previous: reported, HostIPs: f.HostIPs, Now: t0})
	assert.Equal(t, "192.168.0.1", before.HostIP, "reported before")
	require.Len(t, before.Conditions, 1)
	assert.Equal(t, v1.ConditionFalse, before.Conditions[0].Status)

	pod.Status = s
	s = status.Terminate(pod, status.Compute(status.Facts{Pod: pod, Observed: nothing, Termination: runtime.Termination{Terminal: true}, Now: t0}), t0)
	assert.Empty(t, s.ContainerStatuses, "after a start of the agent")

	pod.Status, f.Previous = v1.PodStatus{}, v1.PodStatus{Phase: v1.PodPending, ContainerStatuses: []v1.ContainerStatus{waits("a")}}
	assert.Len(t, status.Compute(f).ContainerStatuses, 1, "the end of containers published before is reported (st-59)")
}

func TestTimesAreWholeSecondsAndStartTimeStays(t *testing.T) { // st-52, st-53
	c := exitedC("a", 0, 1)
	c.StartedAt = c.StartedAt.Add(123 * time.Millisecond).In(time.FixedZone("x", 3600))
	c.FinishedAt = c.FinishedAt.Add(999 * time.Millisecond)
	f := status.Facts{Pod: podOf("", "a"), Observed: seen(c), Now: t0.Add(456 * time.Millisecond)}
	s := status.Compute(f)
	end := s.ContainerStatuses[0].State.Terminated
	for _, at := range []time.Time{s.StartTime.Time, end.StartedAt.Time, end.FinishedAt.Time, s.Conditions[0].LastTransitionTime.Time} {
		assert.Zero(t, at.Nanosecond())
		assert.Equal(t, time.UTC, at.Location())
	}
	f.Previous, f.Now = s, t0.Add(time.Hour)
	assert.Equal(t, t0, status.Compute(f).StartTime.Time)

	f.Pod.Status.StartTime, f.Previous = new(metav1.NewTime(t0.Add(-time.Hour))), v1.PodStatus{}
	assert.Equal(t, t0.Add(-time.Hour), status.Compute(f).StartTime.Time, "given")
}

func TestStartTimeWithoutAPreviousStatus(t *testing.T) {
	observed := seen(runningC("a", 0))
	observed.Sandboxes = []runtime.SandboxStatus{
		{ID: "new", CreatedAt: t0}, {ID: "old", CreatedAt: t0.Add(-time.Minute)}, {ID: "undated"},
	}
	f := status.Facts{Pod: podOf("", "a"), Observed: observed, Now: t0.Add(time.Hour)}
	s := status.Compute(f)
	assert.Equal(t, t0.Add(-time.Minute), s.StartTime.Time)
	f.Previous, observed.Sandboxes = s, nil
	assert.Equal(t, t0.Add(-time.Minute), status.Compute(f).StartTime.Time, "it never changes")
}

func TestMessagesShareABudget(t *testing.T) { // st-53, pe-20
	pod := withInit(podOf("", "a", "b"), "i")
	c := exitedC("a", 0, 1)
	c.Message = strings.Repeat("é", 12288)
	s := status.Compute(status.Facts{Pod: pod, Observed: seen(c)})
	got := s.ContainerStatuses[0].State.Terminated.Message
	assert.Len(t, got, 12288/3)
	assert.True(t, utf8.ValidString(got))
	assert.Len(t, c.Message, 2*12288, "the observation is left alone")

	pod = podOf("", "a", "b", "c", "d", "e") // a share that ends inside a character
	s = status.Compute(status.Facts{Pod: pod, Observed: seen(c)})
	got = s.ContainerStatuses[0].State.Terminated.Message
	assert.Len(t, got, 12288/5-1)
	assert.True(t, utf8.ValidString(got))
}

func TestPodIPs(t *testing.T) { // st-44, st-45
	dual := []string{"192.168.0.1", "fd00::1"}
	reported := v1.PodStatus{Phase: v1.PodRunning, PodIPs: []v1.PodIP{{IP: "10.0.0.9"}}, ContainerStatuses: []v1.ContainerStatus{up("a")}}
	reportedHost := reported
	reportedHost.PodIPs = []v1.PodIP{{IP: "192.168.0.9"}}
	for name, tc := range map[string]struct {
		host, sandbox []string
		hostNetwork   bool
		previous      v1.PodStatus
		end           runtime.Termination
		want          string
	}{
		"st-45 the primary family first":       {host: dual, sandbox: []string{"fd00::7", "10.0.0.7"}, want: "10.0.0.7 fd00::7"},
		"st-45 at most one of each":            {host: dual, sandbox: []string{"10.0.0.7", "10.0.0.8", "fd00::7", "fd00::8"}, want: "10.0.0.7 fd00::7"},
		"st-45 without host addresses":         {sandbox: []string{"fd00::7", "10.0.0.7"}, want: "fd00::7 10.0.0.7"},
		"st-45 canonical":                      {sandbox: []string{"FD00:0::7", "::ffff:10.0.0.7", "junk"}, want: "fd00::7 10.0.0.7"},
		"st-44 host network":                   {host: dual, hostNetwork: true, want: "192.168.0.1 fd00::1"},
		"st-44 host network, first stays":      {host: dual, hostNetwork: true, previous: reportedHost, want: "192.168.0.9 fd00::1"},
		"st-44 host network, address unknown":  {hostNetwork: true, want: ""},
		"a lost sandbox has no address":        {previous: reported, want: ""},
		"sl-40 an ending pod keeps its own":    {previous: reported, end: runtime.Termination{Terminal: true}, want: "10.0.0.9"},
		"sl-40 the sandbox's address is newer": {previous: reported, sandbox: []string{"10.0.0.7"}, end: runtime.Termination{Terminal: true}, want: "10.0.0.7"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podOf("", "a")
			pod.Spec.HostNetwork = tc.hostNetwork
			observed := seen(runningC("a", 0))
			observed.IPs = tc.sandbox
			s := status.Compute(status.Facts{Pod: pod, Observed: observed, Previous: tc.previous, HostIPs: tc.host, Termination: tc.end})
			var ips []string
			for _, ip := range s.PodIPs {
				ips = append(ips, ip.IP)
			}
			assert.Equal(t, tc.want, strings.Join(ips, " "))
			if len(ips) > 0 {
				assert.Equal(t, ips[0], s.PodIP)
			}
			if tc.host != nil {
				assert.Equal(t, tc.host[0], s.HostIP)
				assert.Len(t, s.HostIPs, 2)
			}
		})
	}
}

func TestQOSClass(t *testing.T) { // st-46
	list := func(cpu, memory string) v1.ResourceList {
		l := v1.ResourceList{}
		if cpu != "" {
			l[v1.ResourceCPU] = resource.MustParse(cpu)
		}
		if memory != "" {
			l[v1.ResourceMemory] = resource.MustParse(memory)
		}
		return l
	}
	type r = v1.ResourceRequirements
	full := r{Requests: list("1", "1Gi"), Limits: list("1000m", "1Gi")}
	for name, tc := range map[string]struct {
		pod        *r
		containers []r
		want       v1.PodQOSClass
	}{
		"nothing":              {nil, []r{{}}, v1.PodQOSBestEffort},
		"zero is nothing":      {nil, []r{{Requests: list("0", "0")}}, v1.PodQOSBestEffort},
		"other resources":      {nil, []r{{Limits: v1.ResourceList{"gpu": resource.MustParse("1")}}}, v1.PodQOSBestEffort},
		"all equal":            {nil, []r{full, full}, v1.PodQOSGuaranteed},
		"limits only":          {nil, []r{{Limits: list("1", "1Gi")}}, v1.PodQOSGuaranteed},
		"one without":          {nil, []r{full, {}}, v1.PodQOSBurstable},
		"request below limit":  {nil, []r{{Requests: list("1", "1Gi"), Limits: list("2", "1Gi")}}, v1.PodQOSBurstable},
		"cpu only":             {nil, []r{{Limits: list("1", "")}}, v1.PodQOSBurstable},
		"requests only":        {nil, []r{{Requests: list("1", "1Gi")}}, v1.PodQOSBurstable},
		"of the pod, full":     {&full, []r{{}}, v1.PodQOSGuaranteed},
		"of the pod, limits":   {&r{Limits: list("1", "1Gi")}, []r{full}, v1.PodQOSBurstable},
		"of the pod, others":   {&r{Limits: v1.ResourceList{"gpu": resource.MustParse("1")}}, []r{full}, v1.PodQOSGuaranteed},
		"of the pod, partial":  {&r{Requests: list("1", "")}, []r{full}, v1.PodQOSBurstable},
		"of the pod, but none": {&r{}, []r{full}, v1.PodQOSGuaranteed},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{Resources: tc.pod}}
			for _, res := range tc.containers {
				pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Resources: res})
			}
			assert.Equal(t, tc.want, status.QOSClass(pod))
		})
	}
}

func TestTerminateCompletesUnknownContainers(t *testing.T) {
	list := func(c ...v1.ContainerStatus) []v1.ContainerStatus { return c }
	static := podOf("", "a")
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	for name, tc := range map[string]struct {
		pod           *v1.Pod
		phase         v1.PodPhase
		init, regular []v1.ContainerStatus
		want          string
	}{
		"st-59 no init containers":          {podOf("", "a"), v1.PodRunning, nil, list(up("a")), "Failed a=137"},
		"st-59 an exit that was seen stays": {podOf("", "a", "b"), v1.PodRunning, nil, list(done("a", 0), waits("b")), "Failed a=0 b=137"},
		"st-59 a regular one ran":           {withInit(podOf("", "a", "b"), "i"), v1.PodRunning, list(done("i", 0)), list(up("a"), waits("b")), "Failed i=0 a=137 b=137"},
		"st-59 a regular one had run":       {withInit(podOf("", "a"), "i"), v1.PodRunning, list(waits("i")), list(loops("a", 1)), "Failed i=137 a=137"},
		"st-59 the last init was ok":        {withInit(podOf("", "a"), "i"), v1.PodPending, list(done("i", 0)), list(waits("a")), "Failed i=0 a=137"},
		"st-59 not initialized":             {withInit(podOf("", "a"), "i"), v1.PodPending, list(up("i")), list(waits("a")), "Failed i=137 a=-"},
		"st-60 up to the last that started": {withInit(podOf("", "a"), "i", "j", "k"), v1.PodPending, list(waits("i"), up("j"), waits("k")), list(waits("a")), "Failed i=137 j=137 k=- a=-"},
		"st-60 at least the first":          {withInit(podOf("", "a"), "i", "j"), v1.PodPending, list(waits("i"), waits("j")), list(waits("a")), "Failed i=137 j=- a=-"},
		"st-61 a good end stays":            {podOf("", "a"), v1.PodSucceeded, nil, list(done("a", 0)), "Succeeded a=0"},
		"st-61 a static pod's phase stays":  {static, v1.PodRunning, nil, list(up("a")), "Running a=137"},
		"a pod without a published status":  {podOf("", "a"), "", nil, nil, "Failed"},
		"the same with init containers":     {withInit(podOf("", "a"), "i"), "", nil, nil, "Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			last := v1.PodStatus{Phase: tc.phase, InitContainerStatuses: tc.init, ContainerStatuses: tc.regular}
			kept := last.DeepCopy()
			s := status.Terminate(tc.pod, last, t0)
			got := string(s.Phase)
			for _, c := range append(s.InitContainerStatuses, s.ContainerStatuses...) {
				got += " " + c.Name + "="
				if end := c.State.Terminated; end != nil {
					got += itoa(end.ExitCode)
				} else {
					got += "-"
				}
			}
			assert.Equal(t, tc.want, got)
			assert.Equal(t, *kept, last, "not changed")
			assert.Equal(t, s, status.Terminate(tc.pod, s, t0.Add(time.Hour)), "idempotent")
			assert.False(t, status.IsReady(&s))
		})
	}
}

func TestSameLooksAtOwnedContentOnly(t *testing.T) { // st-49
	base := status.Compute(status.Facts{Pod: podOf("", "a"), Observed: seen(runningC("a", 0)), Now: t0})
	for name, tc := range map[string]struct {
		change func(*v1.PodStatus)
		same   bool
	}{
		"nothing":             {func(*v1.PodStatus) {}, true},
		"transition time":     {func(s *v1.PodStatus) { s.Conditions[0].LastTransitionTime = metav1.Now() }, true},
		"order of conditions": {func(s *v1.PodStatus) { s.Conditions[0], s.Conditions[1] = s.Conditions[1], s.Conditions[0] }, true},
		"foreign condition":   {func(s *v1.PodStatus) { s.Conditions = append(s.Conditions, v1.PodCondition{Type: "lb"}) }, true},
		"resource claims":     {func(s *v1.PodStatus) { s.ResourceClaimStatuses = []v1.PodResourceClaimStatus{{Name: "x"}} }, true},
		"time zone":           {func(s *v1.PodStatus) { s.StartTime = new(metav1.NewTime(s.StartTime.Local())) }, true},
		"phase":               {func(s *v1.PodStatus) { s.Phase = v1.PodFailed }, false},
		"condition":           {func(s *v1.PodStatus) { s.Conditions[0].Status = v1.ConditionUnknown }, false},
		"condition missing":   {func(s *v1.PodStatus) { s.Conditions = s.Conditions[1:] }, false},
		"disruption": {func(s *v1.PodStatus) {
			s.Conditions = append(s.Conditions, v1.PodCondition{Type: v1.DisruptionTarget, Reason: "TerminationByKubelet"})
		}, false},
		"another's disruption": {func(s *v1.PodStatus) { s.Conditions = append(s.Conditions, v1.PodCondition{Type: v1.DisruptionTarget}) }, true},
		"restart count":        {func(s *v1.PodStatus) { s.ContainerStatuses[0].RestartCount++ }, false},
		"observed generation":  {func(s *v1.PodStatus) { s.ObservedGeneration++ }, false},
		"exit of another time": {func(s *v1.PodStatus) { s.ContainerStatuses[0].State = done("a", 1).State }, false},
	} {
		t.Run(name, func(t *testing.T) {
			other := *base.DeepCopy()
			tc.change(&other)
			assert.Equal(t, tc.same, status.Equal(&base, &other))
			assert.Equal(t, tc.same, status.Equal(&other, &base))
		})
	}
}

func TestCheckTransition(t *testing.T) { // st-50
	policy := func(p v1.RestartPolicy) *v1.Pod { return withInit(podOf(p, "a"), "i") }
	all := policy(v1.RestartPolicyNever)
	all.Spec.Containers[0].RestartPolicyRules = []v1.ContainerRestartRule{{Action: v1.ContainerRestartRuleActionRestartAllContainers}}
	side := withSidecar(podOf(v1.RestartPolicyNever, "a"), "i")
	regular := func(c v1.ContainerStatus) *v1.PodStatus {
		return &v1.PodStatus{ContainerStatuses: []v1.ContainerStatus{c}}
	}
	init := func(c v1.ContainerStatus) *v1.PodStatus {
		return &v1.PodStatus{InitContainerStatuses: []v1.ContainerStatus{c}}
	}
	for name, tc := range map[string]struct {
		pod      *v1.Pod
		old, new *v1.PodStatus
		refused  bool
	}{
		"Always":                  {policy(v1.RestartPolicyAlways), regular(done("a", 0)), regular(up("a")), false},
		"OnFailure, failure":      {policy(v1.RestartPolicyOnFailure), regular(done("a", 1)), regular(up("a")), false},
		"OnFailure, success":      {policy(v1.RestartPolicyOnFailure), regular(done("a", 0)), regular(up("a")), true},
		"Never":                   {policy(v1.RestartPolicyNever), regular(done("a", 1)), regular(waits("a")), true},
		"Never, still exited":     {policy(v1.RestartPolicyNever), regular(done("a", 1)), regular(done("a", 2)), false},
		"Never, ran before":       {policy(v1.RestartPolicyNever), regular(up("a")), regular(done("a", 2)), false},
		"restart-all":             {all, regular(done("a", 1)), regular(up("a")), false},
		"init success, Never":     {policy(v1.RestartPolicyNever), init(done("i", 0)), init(up("i")), true},
		"init success, OnFailure": {policy(v1.RestartPolicyOnFailure), init(done("i", 0)), init(up("i")), true},
		"init failure, Never":     {policy(v1.RestartPolicyNever), init(done("i", 1)), init(up("i")), true},
		"sidecar":                 {side, init(done("i", 0)), init(up("i")), false},
		"an empty status":         {policy(v1.RestartPolicyNever), regular(done("a", 1)), &v1.PodStatus{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := status.CheckTransition(tc.pod, tc.old, tc.new)
			if tc.refused {
				require.Error(t, err)
				assert.Contains(t, err.Error(), "must not be restarted")
			} else {
				require.NoError(t, err)
			}
		})
	}
}

func TestTheHealthOfVolumesIsReported(t *testing.T) {
	pod := podOf(v1.RestartPolicyAlways, "a")
	health := []v1.PodVolumeHealth{{Name: "data", HealthConditions: []v1.VolumeHealthCondition{{Status: v1.VolumeHealthDegraded, Reason: "Slow"}}}}
	s := status.Compute(status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), VolumeHealth: health, Now: t0})
	assert.Equal(t, health, s.VolumeHealth)
	pod.Status.VolumeHealth = health
	s = status.Compute(status.Facts{Pod: pod, Observed: seen(runningC("a", 0)), Previous: s, Now: t0})
	assert.Empty(t, s.VolumeHealth, "the node owns the field")
}
