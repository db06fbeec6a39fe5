package runtimetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

// SyncPod takes the pod one step towards req.Pod. It looks for itself and does
// not use req.Status. See [runtime.Syncer].
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil || req.Pod.UID == "" {
		return runtime.SyncResult{}, errors.New("runtimetest: sync pod: SyncRequest.Pod is nil or has no UID")
	}
	var out runtime.SyncResult
	var failed error // of the actions: an answer, not the loss of one
	err := r.call(ctx, Call{Method: "SyncPod", UID: req.Pod.UID}, func() error {
		s := syncing{r: r, req: req}
		if err := s.step(ctx); err != nil {
			failed = fmt.Errorf("runtimetest: sync pod %s: %w", req.Pod.UID, err)
		} else {
			failed = s.res.Err()
		}
		out = s.res
		return nil
	})
	if err != nil {
		return runtime.SyncResult{}, err
	}
	return out, failed
}

// A syncing is one SyncPod being carried out.
type syncing struct {
	r   *Runtime
	req runtime.SyncRequest
	res runtime.SyncResult
}

// step decides and acts. Its error is ctx's; failed actions are in s.res.
func (s *syncing) step(ctx context.Context) error {
	r, pod := s.r, s.req.Pod
	r.mu.Lock()
	todo := decide(pod, r.statusLocked(pod.UID), s.req.Probes, r.Backoff)
	old := r.pods[pod.UID]
	r.mu.Unlock()
	if old != nil {
		if err := s.kill(ctx, old, todo); err != nil {
			return err
		}
	}
	if todo.sandbox {
		r.mu.Lock()
		p := r.podLocked(pod.UID, pod.Name, pod.Namespace)
		p.source = pod.Annotations[runtime.ConfigSourceAnnotation]
		r.newSandboxLocked(p, pod.Spec.HostNetwork)
		r.mu.Unlock()
		s.did(runtime.CreatePodSandbox, podTarget(pod))
	}
	for _, st := range todo.start {
		a := s.start(ctx, st)
		s.res.Actions = append(s.res.Actions, a)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

func (s *syncing) did(kind runtime.ActionKind, target string) {
	s.res.Actions = append(s.res.Actions, runtime.Action{Kind: kind, Target: target})
}

func podTarget(pod *v1.Pod) string { return pod.Name + "_" + pod.Namespace }

// kill stops what the step wants stopped, with the pod's grace period.
func (s *syncing) kill(ctx context.Context, p *pod, todo step) error {
	r, pod := s.r, s.req.Pod
	r.mu.Lock()
	victims := runningOf(p)
	if !todo.stop && !todo.reset {
		victims = slices.DeleteFunc(victims, func(v *instance) bool { return !slices.Contains(todo.kill, v.status.ID) })
	}
	wasUp := p.readySandbox() != nil
	grace := graceOf(runtime.KillRequest{Pod: pod}, nil)
	r.mu.Unlock()

	if err := r.stop(ctx, victims, grace); err != nil {
		return err
	}
	for _, v := range victims {
		s.did(runtime.KillContainer, v.status.Name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case todo.stop && wasUp:
		r.stopSandboxesLocked(p)
		s.did(runtime.KillPodSandbox, podTarget(pod))
	case todo.reset:
		r.removeLocked(p, func(v *instance) bool {
			dead := v.status.State == runtime.ContainerExited
			if dead {
				s.did(runtime.RemoveContainer, v.status.Name)
			}
			return dead
		}, func(*runtime.SandboxStatus) bool { return false })
	}
	return nil
}

// start starts one container, or says why not.
func (s *syncing) start(ctx context.Context, st start) runtime.Action {
	r, c := s.r, st.container
	a := runtime.Action{Kind: runtime.StartContainer, Target: c.Name}
	fail := func(reason, format string, args ...any) runtime.Action {
		a.Reason, a.Message = reason, fmt.Sprintf(format, args...)
		a.Err = errors.New(a.Message)
		return a
	}
	if wait := time.Until(st.notBefore); wait > 0 {
		if s.res.RetryAt.IsZero() || st.notBefore.Before(s.res.RetryAt) {
			s.res.RetryAt = st.notBefore
		}
		return fail("CrashLoopBackOff", "back-off %s restarting failed container=%s pod=%s", wait, c.Name, podTarget(s.req.Pod)) // rt-90
	}
	for _, m := range c.VolumeMounts {
		if _, ok := s.req.Volumes[m.Name]; !ok {
			return fail("CreateContainerConfigError", "volume %q is not ready", m.Name)
		}
	}
	b := r.behaviour(s.req.Pod, c)
	if b.Fail != nil {
		return fail(b.Fail.Reason, "%s", b.Fail.Message)
	}
	if err := pause.For(ctx, b.StartDelay); err != nil {
		a.Err, a.Reason, a.Message = err, "CreateContainerError", err.Error()
		return a
	}

	// What the step was decided on may have changed in the meantime, at a
	// test's request: look again.
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[s.req.Pod.UID]
	if p == nil || p.readySandbox() == nil {
		return fail("CreateContainerError", "the sandbox is gone")
	}
	if p.running(c.Name) != nil {
		return a
	}
	if g := cmp.Or(s.req.Pod.DeletionGracePeriodSeconds, s.req.Pod.Spec.TerminationGracePeriodSeconds); g != nil {
		p.grace = new(*g) // the pod stays the caller's
	}
	r.runLocked(p, p.readySandbox().ID, c, b).turn = st.turn
	return a
}
