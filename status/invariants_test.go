package status_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/status"
)

// anything returns random facts, not necessarily consistent ones.
func anything(r *rand.Rand) status.Facts {
	pick := func(n int) int { return r.IntN(n) }
	names := []string{"a", "b", "c", "i", "j", "e"}
	policies := []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever, ""}
	pod := podOf(policies[pick(4)], names[:pick(4)]...)
	pod.Generation = int64(pick(3))
	pod.Spec.HostNetwork = pick(4) == 0
	if pick(2) == 0 {
		withInit(pod, "i")
	}
	if pick(2) == 0 {
		withSidecar(pod, "j")
	}
	if pick(2) == 0 && len(pod.Spec.Containers) > 0 {
		restarts42(pod).Spec.Containers[0].RestartPolicyRules[0].ExitCodes.Values = []int32{2}
	}
	if pick(3) == 0 {
		pod.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: "e"}}}
	}
	for i := range pod.Spec.Containers {
		if pick(2) == 0 {
			pod.Spec.Containers[i].Resources = v1.ResourceRequirements{Requests: list("cpu", "1"), Limits: list("memory", "1Gi")}
		}
	}
	if pick(4) == 0 {
		pod.DeletionTimestamp = new(metav1.NewTime(t0))
	}
	if pick(4) == 0 {
		pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "gate"}}
	}
	f := status.Facts{Pod: pod, Now: t0.Add(time.Duration(pick(1e9)))}
	if pick(8) > 0 {
		f.Observed = new(runtime.PodStatus)
		for n := pick(3); n > 0; n-- {
			f.Observed.Sandboxes = append(f.Observed.Sandboxes, runtime.SandboxStatus{ID: fmt.Sprint("x://s", n), State: runtime.SandboxState(pick(3))})
		}
		for n := pick(8); n > 0; n-- {
			c := instance(names[pick(len(names))], int32(pick(4)), runtime.ContainerState(pick(4)))
			c.ID, c.SandboxID = fmt.Sprint("x://", c.Name, n), fmt.Sprint("x://s", pick(3)) // IDs are unique in any runtime
			c.ExitCode, c.Message = int32(pick(3)), string(make([]byte, pick(20000)))
			if pick(2) == 0 {
				c.User, c.StopSignal = &v1.ContainerUser{Linux: &v1.LinuxContainerUser{UID: 1}}, v1.SIGINT
			}
			f.Observed.Containers = append(f.Observed.Containers, c)
		}
		if pick(2) == 0 {
			f.Observed.IPs = []string{"10.0.0.7", "fd00::7", "junk"}[pick(3):]
		}
	}
	if pick(2) == 0 {
		f.Waiting = map[string]v1.ContainerStateWaiting{names[pick(len(names))]: {Reason: "CrashLoopBackOff"}}
	}
	f.Termination = runtime.Termination{Terminal: pick(4) == 0, Failed: pick(8) == 0, Reason: "Evicted"}
	if f.Termination.Failed && pick(2) == 0 {
		f.Termination.Disruption = why
	}
	if pick(2) == 0 {
		f.HostIPs = []string{"192.168.0.1", "fd00::1"}[pick(2):]
	}
	if pick(2) == 0 {
		f.Probes = map[string]runtime.ProbeStatus{"a": {Readiness: runtime.ProbeResult(pick(3)), Startup: runtime.ProbeResult(pick(3))}}
	}
	if pick(2) == 0 { // the status of an earlier pod
		before := anything(r)
		f.Previous = status.Compute(before)
		if pick(2) == 0 {
			pod.Status, f.Previous = f.Previous, v1.PodStatus{}
		}
	}
	return f
}

// checkCompute computes a status and checks the invariants of any facts.
func checkCompute(t *testing.T, f status.Facts) {
	pod, observed, previous := f.Pod.DeepCopy(), cloneObserved(f.Observed), f.Previous.DeepCopy()
	s := status.Compute(f)
	require.Equal(t, pod, f.Pod, "the pod is left alone")
	require.Equal(t, observed, f.Observed, "the observation is left alone")
	require.Equal(t, *previous, f.Previous, "the previous status is left alone")
	require.Equal(t, s, status.Compute(f), "equal facts, equal status")

	again := f
	again.Previous = s
	require.Equal(t, s, status.Compute(again), "a fixed point")

	require.False(t, status.Terminal(s.Phase) && status.IsReady(&s), "inv-8")
	if p := f.Pod.Status.Phase; status.Terminal(p) {
		require.Equal(t, p, s.Phase, "inv-7")
	} else if p := f.Previous.Phase; status.Terminal(p) {
		require.Equal(t, p, s.Phase, "inv-7")
	}
	for _, c := range f.Previous.ContainerStatuses {
		for _, now := range s.ContainerStatuses {
			require.False(t, now.Name == c.Name && now.RestartCount < c.RestartCount, "inv-10")
		}
	}
	prev := &f.Previous
	if prev.Phase == "" {
		prev = &f.Pod.Status
	}
	for _, c := range s.Conditions {
		if was := status.Condition(prev.Conditions, c.Type); was != nil && was.Status == c.Status {
			require.Equal(t, was.LastTransitionTime, c.LastTransitionTime, "st-51: %s", c.Type)
		}
	}
	checkHistory(t, prev.ContainerStatuses, s.ContainerStatuses)
	checkHistory(t, prev.InitContainerStatuses, s.InitContainerStatuses)
	checkMerge(t, *prev, s)
	checkMerge(t, s, *prev)
	final := status.Terminate(f.Pod, s, f.Now)
	require.False(t, status.IsReady(&final) && status.Terminal(final.Phase), "inv-8")
	status.Describe(&f.Previous, &s)
}

// checkHistory checks that published exits are not retracted: an exited container
// stays exited, and the details of an instance stay as first published.
func checkHistory(t *testing.T, was, is []v1.ContainerStatus) {
	exits := func(c v1.ContainerStatus) (list []*v1.ContainerStateTerminated) {
		for _, e := range []*v1.ContainerStateTerminated{c.State.Terminated, c.LastTerminationState.Terminated} {
			if e != nil {
				list = append(list, e)
			}
		}
		return list
	}
	for _, old := range was {
		i := slices.IndexFunc(is, func(c v1.ContainerStatus) bool { return c.Name == old.Name })
		if i < 0 {
			continue // not in the spec any more
		}
		now := exits(is[i])
		for _, e := range exits(old) {
			// A runtime may correct the details of an instance.
			require.True(t, len(now) > 0 || e.ContainerID == is[i].ContainerID, "the end of %s is forgotten", old.Name)
			for _, n := range now {
				if e.ContainerID != "" && e.ContainerID == n.ContainerID && e.Reason != "ContainerStatusUnknown" && e.Reason != "RestartingAllContainers" {
					require.Equal(t, e.ExitCode, n.ExitCode, "%s", old.Name)
				}
			}
		}
	}
}

// checkMerge checks the invariants of merging any two statuses.
func checkMerge(t *testing.T, theirs, ours v1.PodStatus) {
	a, b := theirs.DeepCopy(), ours.DeepCopy()
	s := status.Merge(theirs, ours)
	require.Equal(t, a, &theirs, "left alone")
	require.Equal(t, b, &ours, "left alone")
	require.Equal(t, s, status.Merge(s, ours), "once merged, merged")
	require.False(t, status.Terminal(s.Phase) && status.IsReady(&s), "inv-8")
	if status.Terminal(theirs.Phase) {
		require.Equal(t, theirs.Phase, s.Phase, "inv-7")
	}
}

func cloneObserved(s *runtime.PodStatus) *runtime.PodStatus {
	if s == nil {
		return nil
	}
	c := *s
	c.IPs, c.Sandboxes, c.Containers = slices.Clone(s.IPs), slices.Clone(s.Sandboxes), slices.Clone(s.Containers)
	return &c
}

func TestComputeKeepsItsInvariants(t *testing.T) {
	first := seedrun.Seed(t)
	for i := range uint64(2000) {
		seed := first + i
		if i == 0 {
			seed = 2601670065123457252 // a pod that fails while it starts over
		}
		if !t.Run("", func(t *testing.T) { checkCompute(t, anything(rand.New(rand.NewPCG(seed, 0)))) }) {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzCompute(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, seed*seed)
	}
	f.Fuzz(func(t *testing.T, a, b uint64) { checkCompute(t, anything(rand.New(rand.NewPCG(a, b)))) })
}

// A checkingSink is a sink that fails half of the time and checks the statuses against the
// invariants.
type checkingSink struct {
	t      *testing.T
	r      *rand.Rand
	mu     sync.Mutex
	runs   bool // something of the pod runs, as last reported
	ended  bool // Finish or Forget was called
	last   v1.PodStatus
	deaths int
}

func (j *checkingSink) UpdatePodStatus(_ context.Context, _ *v1.Pod, s v1.PodStatus) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if status.Terminal(s.Phase) {
		assert.False(j.t, j.runs, "inv-6: %s while it runs", s.Phase)
		assert.False(j.t, status.IsReady(&s), "inv-8")
	}
	if j.r.IntN(2) == 0 {
		return errors.New("try again")
	}
	if status.Terminal(j.last.Phase) {
		assert.Equal(j.t, j.last.Phase, s.Phase, "inv-7")
	}
	for i, c := range j.last.ContainerStatuses {
		assert.GreaterOrEqual(j.t, s.ContainerStatuses[i].RestartCount, c.RestartCount, "inv-10")
	}
	assert.Zero(j.t, j.deaths, "inv-9: after its deletion")
	j.last = s
	return nil
}

func (j *checkingSink) DeletePod(context.Context, *v1.Pod) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	assert.True(j.t, j.ended, "inv-9")
	assert.True(j.t, status.Terminal(j.last.Phase), "inv-9: the final status comes first")
	if j.r.IntN(2) == 0 {
		return errors.New("try again")
	}
	j.deaths++
	return nil
}

func (j *checkingSink) set(change func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change()
}

func TestPublishedStatusesKeepTheInvariants(t *testing.T) { // inv-6 … inv-10
	first := seedrun.Seed(t)
	for i := range uint64(200) {
		seed := first + i
		if !t.Run("", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { life(t, rand.New(rand.NewPCG(seed, 0))) }) }) {
			t.Fatalf("seed %d", seed)
		}
	}
}

// life reports a pod through a random lifecycle until its end.
func life(t *testing.T, r *rand.Rand) {
	j := &checkingSink{t: t, r: rand.New(rand.NewPCG(r.Uint64(), 0))}
	m := started(t, status.Config{Sink: j, RetryMax: 4 * time.Second})
	policies := []v1.RestartPolicy{v1.RestartPolicyAlways, v1.RestartPolicyOnFailure, v1.RestartPolicyNever}
	pod := podOf(policies[r.IntN(3)], "a", "b")
	observed, end := seen(), runtime.Termination{}

	for range 5 + r.IntN(30) {
		i := slices.IndexFunc(observed.Containers, func(c runtime.ContainerStatus) bool { return c.Name == pod.Spec.Containers[r.IntN(2)].Name })
		starts := map[string]v1.ContainerStateWaiting{}
		switch {
		case i < 0:
			observed.Containers = slices.Insert(observed.Containers, 0, runningC(pod.Spec.Containers[r.IntN(2)].Name, 0))
		case observed.Containers[i].State == runtime.ContainerRunning:
			observed.Containers[i] = exitedC(observed.Containers[i].Name, observed.Containers[i].RestartCount, int32(r.IntN(2)))
		case r.IntN(3) == 0:
			observed.Containers = slices.Delete(observed.Containers, i, i+1)
		case r.IntN(2) == 0:
			starts[observed.Containers[i].Name] = v1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}
		default:
			observed.Containers = slices.Insert(observed.Containers, 0, runningC(observed.Containers[i].Name, min(9, observed.Containers[i].RestartCount+1)))
		}
		if r.IntN(20) == 0 {
			end = runtime.Termination{Failed: true, Reason: "Evicted"}
		}
		j.set(func() { j.runs = observed.Running() })
		m.Report(pod, cloneObserved(observed), starts, end)
		time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
	}
	for i := range observed.Containers {
		if c := &observed.Containers[i]; c.State == runtime.ContainerRunning {
			*c = exitedC(c.Name, c.RestartCount, 143)
		}
	}
	observed.Sandboxes[0].State = runtime.SandboxNotReady
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = new(metav1.Now())
	j.set(func() { j.runs = false })
	m.Report(pod, observed, nil, runtime.Termination{Terminal: true})
	j.set(func() { j.ended = true })
	m.Finish(pod)
	if r.IntN(2) == 0 {
		forget(m, pod.UID)
	}
	require.NoError(t, m.Flush(t.Context()))
	j.set(func() { assert.Equal(t, 1, j.deaths, "inv-9: once") })
}
