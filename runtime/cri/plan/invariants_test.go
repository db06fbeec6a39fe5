package plan_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// checkPlan checks the invariants of every plan, and returns the plan.
func checkPlan(t testing.TB, s *model) plan.Plan {
	t.Helper()
	pod, status, probes, counts := s.pod.DeepCopy(), cloneStatus(s.status), cloneProbes(s.probes), maps.Clone(s.counts)
	p := s.plan()
	require.Equal(t, pod, s.pod, "inv-15: the pod is not changed")
	require.Equal(t, status, s.status, "inv-15: the status is not changed")
	require.Equal(t, probes, s.probes, "inv-15: the results are not changed")
	require.Equal(t, counts, s.counts, "inv-15: the record is not changed")
	require.Equal(t, p, s.plan(), "inv-15: same input, same plan")
	require.NotEmpty(t, p.String())
	checkJSON(t, p)
	checkRemovals(t, s, p)
	checkResizes(t, s, p)
	checkRestore(t, s, p)

	stopped := make(map[string]bool)
	for _, k := range p.Kill {
		require.False(t, stopped[k.ID], "stopped once")
		stopped[k.ID] = true
		require.Equal(t, k.Name, s.instance(k.ID).Name)
		require.NotEmpty(t, k.Reason)
		require.NotEmpty(t, k.Message)
		require.Same(t, s.spec(k.Name), k.Container)
	}
	for _, r := range p.Replaced {
		require.True(t, stopped[r.ID] || p.KillPod && p.CreateSandbox, "%s is not stopped", r.ID)
		require.Equal(t, r.Name, s.instance(r.ID).Name)
	}
	if p.KillPod {
		require.Empty(t, p.Kill)
		require.NotEmpty(t, p.KillReason)
	}
	if p.KillPod && !p.CreateSandbox || s.pod.DeletionTimestamp != nil {
		require.Empty(t, p.Start, "rt-31, rt-50")
	}
	if s.pod.DeletionTimestamp != nil {
		require.False(t, p.CreateSandbox, "rt-31")
	}
	if len(p.Start) > 0 {
		require.True(t, p.CreateSandbox != (p.SandboxID != ""), "either a sandbox exists or one is created")
	}
	started := make(map[string]bool)
	for _, st := range p.Start {
		require.Equal(t, s.status.Container(st.Name) == nil, st.NoStatus)
		require.False(t, started[st.Name], "started once")
		started[st.Name] = true
		require.Same(t, s.spec(st.Name), st.Container)
		require.NotEmpty(t, st.Why)
		for i := range s.status.Containers {
			inst := &s.status.Containers[i]
			if inst.Name != st.Name {
				continue
			}
			if inst.State == runtime.ContainerRunning {
				require.True(t, p.KillPod || stopped[inst.ID], "%s is started while %s runs", st.Name, inst.ID)
			}
			if st.Resume == "" {
				require.Greater(t, st.RestartCount, inst.RestartCount, "inv-10")
			} else {
				require.GreaterOrEqual(t, st.RestartCount, inst.RestartCount, "inv-10")
			}
		}
		if n, ok := s.counts[st.Name]; ok {
			require.True(t, st.RestartCount > n || st.Resume != "" && st.RestartCount == n)
		}
		if st.Resume != "" {
			require.Equal(t, runtime.ContainerCreated, s.instance(st.Resume).State)
			require.Equal(t, p.SandboxID, s.instance(st.Resume).SandboxID)
			require.False(t, st.InBackoff())
		}
	}
	return p
}

// checkJSON checks that a plan survives a JSON round trip, except for its pointers
// to pod and containers.
func checkJSON(t testing.TB, p plan.Plan) {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var back plan.Plan
	require.NoError(t, json.Unmarshal(text, &back), string(text))
	again, err := json.Marshal(back)
	require.NoError(t, err)
	require.Equal(t, string(text), string(again))
	require.Equal(t, p.String(), back.String())
}

// checkRemovals checks that a restart of all containers does nothing else, and removes
// each instance once.
func checkRemovals(t testing.TB, s *model, p plan.Plan) {
	t.Helper()
	if len(p.Remove) == 0 {
		return
	}
	require.False(t, p.KillPod || p.CreateSandbox || len(p.Kill)+len(p.Start)+len(p.Resize) > 0, "rt-40")
	require.False(t, s.ignore)
	require.Nil(t, s.pod.DeletionTimestamp)
	removed := make(map[string]bool)
	for _, r := range p.Remove {
		require.False(t, removed[r.ID], "removed once")
		removed[r.ID] = true
		require.NotEqual(t, plan.Ephemeral, r.Kind)
		require.Same(t, s.spec(r.Name), r.Container)
		state := s.instance(r.ID).State
		require.False(t, r.Running && state == runtime.ContainerExited)
		require.False(t, !r.Running && state == runtime.ContainerRunning)
		require.False(t, r.Trigger && (state != runtime.ContainerExited || r.Ended == nil))
		require.True(t, r.Ended == nil || r.Ended == s.instance(r.ID) && state == runtime.ContainerExited)
	}
	require.True(t, p.Remove[len(p.Remove)-1].Trigger, "the trigger is removed last")
	for _, inst := range s.status.Containers {
		if inst.Name != "e0" {
			require.True(t, removed[inst.ID], "rt-140: %s is not removed", inst.ID)
		}
	}
	// If it is interrupted at any step, the next plan removes the rest.
	for n := range p.Remove {
		cut := *s
		status := cloneStatus(s.status)
		cut.status, cut.counts = status, maps.Clone(s.counts)
		for _, r := range p.Remove[:n] {
			cut.note(r)
			cut.remove(r.ID)
		}
		require.Equal(t, p.Remove[n:], cut.plan().Remove)
	}
}

// checkRestore checks that a plan restores only what was never complete, and all of it.
func checkRestore(t testing.TB, s *model, p plan.Plan) {
	t.Helper()
	if p.Restore == "" || !p.CreateSandbox {
		for _, st := range p.Start {
			require.NotEqual(t, plan.StartRestored, st.Reason)
		}
		return
	}
	require.Equal(t, s.restore, p.Restore)
	require.Empty(t, p.Waits)
	var names, begun []string
	for c := range podspec.LongRunning(s.pod) {
		names = append(names, c.Name)
	}
	for _, st := range p.Start {
		require.Equal(t, plan.StartRestored, st.Reason)
		require.Empty(t, st.Resume)
		require.False(t, st.InBackoff())
		begun = append(begun, st.Name)
	}
	require.Equal(t, names, begun)
}

// checkResizes checks that only running containers that are kept are resized, and only
// if their resources change.
func checkResizes(t testing.TB, s *model, p plan.Plan) {
	t.Helper()
	seen := make(map[string]bool)
	for _, r := range p.Resize {
		require.False(t, p.KillPod)
		require.False(t, seen[r.ID])
		seen[r.ID] = true
		require.Equal(t, runtime.ContainerRunning, s.instance(r.ID).State)
		require.NotEmpty(t, r.Why)
		require.False(t, slices.ContainsFunc(p.Kill, func(k plan.Kill) bool { return k.ID == r.ID }))
		require.False(t, slices.ContainsFunc(p.Start, func(st plan.Start) bool { return st.Name == r.Name }))
	}
}

// checkRest applies plans, with init containers that succeed, until there
// is nothing to do (inv-16).
func checkRest(t testing.TB, s *model) {
	t.Helper()
	s.backoff = nil
	rounds := len(s.pod.Spec.InitContainers) + 2
	if s.untidy() {
		rounds++ // what no well-behaved runtime shows is put in order first
	}
	if s.probes != nil {
		rounds++ // a container that fails its probe and is not replaced is stopped before its pod
	}
	before := cloneStatus(s.status)
	var plans []string
	for {
		p := checkPlan(t, s)
		plans = append(plans, p.String())
		s.apply(p)
		if len(p.Remove) == 0 { // strays wait while a pod starts over (rt-40)
			s.checkCopies(t, plans...)
		}
		waited := s.passProbes()
		if len(p.Remove) > 0 {
			rounds++ // all of it was for nothing
		}
		for i := range s.pod.Spec.InitContainers {
			c := &s.pod.Spec.InitContainers[i]
			for j := range s.status.Containers {
				inst := &s.status.Containers[j]
				if inst.Name == c.Name && inst.State == runtime.ContainerRunning && !podspec.IsSidecar(c) {
					s.exit(inst, 0)
					waited = true
				}
			}
		}
		if p.Empty() && !waited {
			return
		}
		if !p.Empty() {
			require.Positive(t, rounds, "inv-16: comes to rest\n%+v\n%s", before, strings.Join(plans, "\n--\n"))
			rounds--
		}
	}
}

// passProbes sets the startup probe of every running instance without a result to
// success, and reports whether there was any.
func (s *model) passProbes() (any bool) {
	if s.probes == nil {
		return false
	}
	for _, inst := range s.status.Containers {
		if inst.State == runtime.ContainerRunning && s.probes.Startup[inst.ID] == runtime.ProbeUnknown {
			s.probes.Startup[inst.ID] = runtime.ProbeSuccess
			any = true
		}
	}
	return any
}

// checkCopies checks that no two instances of one name run.
func (s *model) checkCopies(t testing.TB, plans ...string) {
	t.Helper()
	if s.pod.DeletionTimestamp != nil {
		return // whose end is not the planner's
	}
	runs := make(map[string]string)
	for _, inst := range s.status.Containers {
		if inst.State == runtime.ContainerRunning {
			require.Empty(t, runs[inst.Name], "two of %s run\n%s", inst.Name, strings.Join(plans, "\n--\n"))
			runs[inst.Name] = inst.ID
		}
	}
}

// over reports whether every regular container of the newest sandbox has terminated and
// will not restart.
func (s *model) over() bool {
	for i := range s.pod.Spec.Containers {
		c := &s.pod.Spec.Containers[i]
		inst := s.status.Container(c.Name)
		if inst == nil || inst.State != runtime.ContainerExited || inst.SandboxID != s.status.Sandboxes[0].ID {
			return false
		}
		after := podspec.ActionAfterExit
		if s.ignore {
			after = podspec.ActionAfterExitWithoutAll
		}
		if after(s.pod, c, podspec.ExitOf(inst)) != podspec.NoRestart {
			return false
		}
	}
	return true
}

// untidy reports whether the status contains instances that the engine itself never
// leaves behind: one in state unknown, or one running in a former sandbox.
func (s *model) untidy() bool {
	for _, inst := range s.status.Containers {
		former := len(s.status.Sandboxes) == 0 || inst.SandboxID != s.status.Sandboxes[0].ID
		if inst.State == runtime.ContainerUnknown || inst.State == runtime.ContainerRunning && former {
			return true
		}
	}
	return false
}

// checkOrder checks that p starts a container for the first time in its sandbox only if
// each init container before it has succeeded or, if it is a sidecar, has been started
// in that sandbox. It requires that containers are started by plans
// only.
func checkOrder(t testing.TB, s *model, p plan.Plan) {
	t.Helper()
	inSandbox := func(name string) *runtime.ContainerStatus {
		for i := range s.status.Containers {
			if inst := &s.status.Containers[i]; inst.Name == name && inst.SandboxID == p.SandboxID {
				return inst
			}
		}
		return nil
	}
	if p.Restore != "" && p.CreateSandbox || slices.Contains(s.restored, p.SandboxID) {
		return // the init containers succeeded before the checkpoint
	}
	for _, st := range p.Start {
		if st.Kind == plan.Ephemeral || inSandbox(st.Name) != nil {
			continue
		}
		for i := range s.pod.Spec.InitContainers {
			before := &s.pod.Spec.InitContainers[i]
			if before.Name == st.Name {
				break
			}
			inst := inSandbox(before.Name)
			require.NotNil(t, inst, "%s starts before %s", st.Name, before.Name)
			if podspec.IsSidecar(before) {
				// The instance that succeeded may have crashed since (rt-57).
				require.True(t, s.passed[before.Name+p.SandboxID], "%s starts before %s has", st.Name, before.Name)
			} else {
				require.True(t, inst.State == runtime.ContainerExited && inst.ExitCode == 0, "%s starts before %s is done", st.Name, before.Name)
			}
		}
	}
}

// live runs a pod from its creation through random changes and failures.
func live(t testing.TB, d *dice, steps int) {
	t.Helper()
	s := randomPod(t, d)
	s.ignore, s.passed = d.n(4) == 1, make(map[string]bool)
	over := false
	if d.n(4) == 1 {
		s.restore = "/checkpoint"
	}
	for range steps {
		s.randomProbes(d)
		for _, inst := range s.status.Containers {
			if inst.State == runtime.ContainerRunning && (s.probes == nil || s.spec(inst.Name).StartupProbe == nil || s.probes.Startup[inst.ID] == runtime.ProbeSuccess) {
				s.passed[inst.Name+inst.SandboxID] = true
			}
		}
		p := checkPlan(t, s)
		checkOrder(t, s, p)
		if over {
			require.False(t, p.CreateSandbox || len(p.Start)+len(p.Remove)+len(p.Resize) > 0, "a finished pod is never restarted\n%s", p)
		}
		if s.restore != "" && len(p.Start) > 0 {
			s.applyStarts(p, d.n(len(p.Start)+1))
		} else {
			s.apply(p)
		}
		s.checkCopies(t)
		if len(p.Remove) > 0 {
			clear(s.passed) // rt-143
			s.restored = nil
		}
		s.now = s.now.Add(time.Duration(d.n(30)) * time.Second)
		for i := range s.status.Containers {
			inst := &s.status.Containers[i]
			if inst.State != runtime.ContainerRunning {
				continue
			}
			switch d.n(8) {
			case 1, 2:
				s.exit(inst, int32(d.n(3)))
			case 3:
				inst.State = runtime.ContainerUnknown
			case 4:
				inst.State, inst.StartedAt = runtime.ContainerCreated, time.Time{}
			}
		}
		switch d.n(16) {
		case 1:
			s.status.Sandboxes[0].State = runtime.SandboxNotReady
		case 2:
			s.forget(t)
		case 3:
			s.pod.Spec.Containers[0].Image += "1"
		}
		if d.n(8) == 1 {
			c := &s.pod.Spec.Containers[0]
			c.Resources = v1.ResourceRequirements{}
			if r := randomResources(d); r != nil {
				c.Resources = *r
			}
		}
		if len(s.status.Sandboxes) == 0 {
			return
		}
		over = over || s.over()
	}
}

func TestInvariantsHoldForRandomPods(t *testing.T) {
	seed := seedrun.Seed(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		d := &dice{bytes: make([]byte, 600)}
		for i := range d.bytes {
			d.bytes[i] = byte(rng.Uint32())
		}
		checkInvariants(t, d.bytes)
	}
}

// checkInvariants checks all invariants with the choices in data.
func checkInvariants(t testing.TB, data []byte) {
	defer func() {
		if t.Failed() {
			t.Logf("choices: %v", data)
		}
	}()
	s := randomModel(t, &dice{bytes: data})
	checkPlan(t, s)
	s.sort()
	checkRest(t, s)
	live(t, &dice{bytes: data}, 20)
}

func FuzzCompute(f *testing.F) {
	f.Add([]byte{})
	rng := rand.New(rand.NewPCG(1, 1))
	for range 20 {
		seed := make([]byte, 600)
		for i := range seed {
			seed[i] = byte(rng.Uint32())
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) { checkInvariants(t, data) })
}

func cloneProbes(p *runtime.ProbeResults) *runtime.ProbeResults {
	if p == nil {
		return nil
	}
	return &runtime.ProbeResults{Liveness: maps.Clone(p.Liveness), Startup: maps.Clone(p.Startup)}
}

func cloneStatus(s *runtime.PodStatus) *runtime.PodStatus {
	c := *s
	c.Sandboxes = slices.Clone(s.Sandboxes)
	c.Containers = slices.Clone(s.Containers)
	return &c
}
