package plan_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/status"
)

// An outcomeRun runs a pod with random failures, and has its status as it is reported meanwhile.
type outcomeRun struct {
	*model
	d          *dice
	terminated map[string]int32 // as the runtime stores it
	reported   v1.PodStatus
	observed   map[string]bool // instances that have exited
	log        []string
}

func (r *outcomeRun) logf(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

// step reports the status, checks it against the plan, and carries that out in part. It returns
// false if the pod has terminated.
func (r *outcomeRun) step(t testing.TB) bool {
	for i := range r.pod.Spec.Containers {
		c := &r.pod.Spec.Containers[i]
		inst := r.status.Container(c.Name)
		if inst != nil && inst.State == runtime.ContainerExited && !podspec.MayRestartAll(r.pod) &&
			podspec.ActionAfterExit(r.pod, c, podspec.ExitOf(inst)) == podspec.NoRestart {
			r.terminated[c.Name] = inst.ExitCode
		}
	}
	for _, inst := range r.status.Containers {
		if inst.State == runtime.ContainerExited {
			r.observed[inst.ID] = true
		}
	}
	in := r.input()
	in.History.Terminated = r.terminated
	p := plan.Compute(in)
	r.reported = status.Compute(status.Facts{Pod: r.pod, Observed: r.status, Previous: r.reported, Now: r.now})
	r.logf("%s: %s", r.reported.Phase, brief(p))
	why := func() string { return strings.Join(r.log, "\n") + fmt.Sprintf("\n%+v\n%+v", r.pod.Spec, r.status) }
	if status.Terminal(r.reported.Phase) {
		require.False(t, p.CreateSandbox || len(p.Start)+len(p.Remove)+len(p.Resize) > 0, "the phase is terminal, and the plan continues\n%s", why())
		return false
	}
	if p.Empty() && !r.status.Running() {
		require.Fail(t, "the plan has nothing left to do, and the phase is not terminal", why())
	}
	// A start may fail: for lack of an image, or after the instance was created.
	p.Start = slices.Clone(p.Start)
	failed := map[string]bool{}
	p.Start = slices.DeleteFunc(p.Start, func(plan.Start) bool { return r.d.n(4) == 1 })
	for _, st := range p.Start {
		failed[st.Name] = st.Resume == "" && r.d.n(4) == 1
	}
	r.clean = r.d.n(2) == 0
	r.apply(p)
	for i := range r.status.Containers {
		if inst := &r.status.Containers[i]; failed[inst.Name] && inst.State == runtime.ContainerRunning {
			failed[inst.Name] = false
			inst.State, inst.StartedAt = runtime.ContainerCreated, time.Time{}
		}
	}
	return true
}

// fail changes the runtime.
func (r *outcomeRun) fail() {
	r.now = r.now.Add(time.Duration(r.d.n(200)) * time.Second)
	for i := range r.status.Containers {
		inst := &r.status.Containers[i]
		if inst.State != runtime.ContainerRunning {
			continue
		}
		switch r.d.n(7) {
		case 4: // its liveness probe fails
			r.probed().Liveness[inst.ID] = runtime.ProbeFailure
			r.logf("hang %s", inst.Name)
		case 1, 2:
			r.exit(inst, int32(r.d.n(3)))
			inst.Reason = pick(r.d, "Completed", "Error", "OOMKilled")
			r.logf("exit %s %d %s", inst.Name, inst.ExitCode, inst.Reason)
		case 3:
			if r.d.n(4) == 1 {
				inst.State = runtime.ContainerUnknown
				r.logf("lose %s", inst.Name)
			}
		}
	}
	switch r.d.n(12) {
	case 1: // a reboot, or a crash of the sandbox
		reboot := r.d.n(2) == 0
		for i := range r.status.Sandboxes {
			r.status.Sandboxes[i].State = runtime.SandboxNotReady
		}
		for i := range r.status.Containers {
			if inst := &r.status.Containers[i]; reboot && inst.State == runtime.ContainerRunning {
				r.exit(inst, 255)
			}
		}
		r.logf("the sandbox ends, reboot %t", reboot)
	case 2: // an operator removes a container whose exit was observed
		for _, inst := range r.status.Containers {
			if r.observed[inst.ID] && !podspec.MayRestartAll(r.pod) { // of those, any removed container may run
				r.logf("remove %s", inst.ID)
				r.remove(inst.ID)
				break
			}
		}
	case 3: // or the sandbox, after it has stopped
		if len(r.status.Sandboxes) > 0 && r.status.Sandboxes[0].State == runtime.SandboxNotReady && r.d.n(2) == 0 {
			r.status.Sandboxes = nil
			r.logf("remove the sandbox")
		}
	}
}

// Otherwise a pod would stay in its phase for ever, or would be reported as terminated and run.
func TestThePhaseIsTerminalExactlyIfThePlanIsDone(t *testing.T) {
	ends := map[v1.PodPhase]int{}
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 41))
		d := &dice{bytes: make([]byte, 1500)}
		for i := range d.bytes {
			d.bytes[i] = byte(rng.Uint32())
		}
		r := &outcomeRun{model: randomPod(t, d), d: d, terminated: map[string]int32{}, observed: map[string]bool{}}
		r.backoff = nil
		if d.n(2) == 0 {
			r.pod.Spec.RestartPolicy = v1.RestartPolicyNever
		}
		for range 25 {
			if !r.step(t) {
				break
			}
			r.fail()
		}
		ends[r.reported.Phase]++
	}
	t.Log(ends)
	require.Greater(t, ends[v1.PodSucceeded], 60)
	require.Greater(t, ends[v1.PodFailed], 200)
}
