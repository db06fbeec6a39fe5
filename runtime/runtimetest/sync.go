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
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// SyncPod takes the pod one step towards req.Pod. It uses the current state, not
// req.Status. See [runtime.Runtime].
func (r *Runtime) SyncPod(ctx context.Context, req runtime.SyncRequest) (runtime.SyncResult, error) {
	if req.Pod == nil || req.Pod.UID == "" {
		return runtime.SyncResult{}, errors.New("runtimetest: sync pod: SyncRequest.Pod is nil or has no UID")
	}
	var out runtime.SyncResult
	var failed error // of the actions; not replaced by an injected error
	err := r.call(ctx, "SyncPod", req.Pod.UID, func() error {
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

// A syncing is one call of SyncPod.
type syncing struct {
	r   *Runtime
	req runtime.SyncRequest
	res runtime.SyncResult
}

// step computes the plan and carries it out. It returns ctx's error; failed
// actions are in s.res.
func (s *syncing) step(ctx context.Context) error {
	todo := s.plan()
	if len(todo.Remove) > 0 { // the pod starts over; that is all of this plan
		if err := s.startOver(ctx, todo.Remove); err != nil {
			return err
		}
		todo = s.plan()
	}
	if err := s.kill(ctx, todo); err != nil {
		return err
	}
	r, pod := s.r, s.req.Pod
	if todo.CreateSandbox {
		r.mu.Lock()
		p := r.podLocked(pod.UID, pod.Name, pod.Namespace)
		p.source = pod.Annotations[runtime.ConfigSourceAnnotation]
		r.newSandboxLocked(p, pod.Spec.HostNetwork)
		r.mu.Unlock()
		s.did(runtime.CreatePodSandbox, podTarget(pod))
	}
	for _, st := range todo.Start {
		if st.Resume != "" { // its start is queued
			continue
		}
		a := s.start(ctx, st)
		s.res.Actions = append(s.res.Actions, a)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// plan computes the next step from the current state. Resizes in it are not
// carried out: containers have no resources.
func (s *syncing) plan() plan.Plan {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	return plan.Compute(plan.Input{
		Pod:     s.req.Pod,
		Status:  s.r.statusLocked(s.req.Pod.UID),
		Probes:  s.req.Probes,
		Backoff: backoff(s.r.Backoff),
		Now:     time.Now(),
	})
}

func (s *syncing) did(kind runtime.ActionKind, target string) {
	s.res.Actions = append(s.res.Actions, runtime.Action{Kind: kind, Target: target})
}

func podTarget(pod *v1.Pod) string { return pod.Name + "_" + pod.Namespace }

// kill stops the containers that todo stops, and for KillPod the sandboxes,
// with the pod's grace period.
func (s *syncing) kill(ctx context.Context, todo plan.Plan) error {
	if !todo.KillPod && len(todo.Kill) == 0 {
		return nil
	}
	s.markReplaced(todo.Replaced)
	p, err := s.stop(ctx, func(id string) bool {
		return todo.KillPod || slices.ContainsFunc(todo.Kill, func(k plan.Kill) bool { return k.ID == id })
	})
	if err != nil || p == nil || !todo.KillPod {
		return err
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if p.readySandbox() != nil {
		s.r.stopSandboxesLocked(p)
		s.did(runtime.KillPodSandbox, podTarget(s.req.Pod))
	}
	return nil
}

// markReplaced stores which instances are stopped to start their containers again.
func (s *syncing) markReplaced(list []plan.Replaced) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	p := s.r.pods[s.req.Pod.UID]
	if p == nil {
		return
	}
	for _, v := range p.containers {
		if slices.ContainsFunc(list, func(r plan.Replaced) bool { return r.ID == v.status.ID }) {
			v.status.Replaced = true
		}
	}
}

// startOver stops and removes the given instances.
func (s *syncing) startOver(ctx context.Context, remove []plan.Removal) error {
	removed := func(id string) bool {
		return slices.ContainsFunc(remove, func(r plan.Removal) bool { return r.ID == id })
	}
	p, err := s.stop(ctx, removed)
	if err != nil || p == nil {
		return err
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.removeLocked(p, func(v *instance) bool {
		if v.status.State != runtime.ContainerExited || !removed(v.status.ID) {
			return false
		}
		s.did(runtime.RemoveContainer, v.status.Name)
		return true
	}, func(*runtime.SandboxStatus) bool { return false })
	return nil
}

// stop stops the running containers of the pod whose IDs the function reports,
// with the pod's grace period. It returns the pod, or nil if the runtime has
// none.
func (s *syncing) stop(ctx context.Context, stopped func(id string) bool) (*pod, error) {
	r := s.r
	r.mu.Lock()
	p := r.pods[s.req.Pod.UID]
	if p == nil {
		r.mu.Unlock()
		return nil, nil
	}
	victims := slices.DeleteFunc(liveOf(p), func(v *instance) bool { return !stopped(v.status.ID) })
	r.mu.Unlock()
	if err := r.stop(ctx, victims, graceOf(runtime.KillRequest{Pod: s.req.Pod}, nil)); err != nil {
		return p, err
	}
	for _, v := range victims {
		s.did(runtime.KillContainer, v.status.Name)
	}
	return p, nil
}

// start starts one container; the error of the action is why it could not.
func (s *syncing) start(ctx context.Context, st plan.Start) runtime.Action {
	r, c := s.r, st.Container
	a := runtime.Action{Kind: runtime.StartContainer, Target: c.Name}
	fail := func(reason, format string, args ...any) runtime.Action {
		a.Reason, a.Message = reason, fmt.Sprintf(format, args...)
		a.Err = errors.New(a.Message)
		return a
	}
	if time.Until(st.NotBefore) > 0 {
		if s.res.RetryAt.IsZero() || st.NotBefore.Before(s.res.RetryAt) {
			s.res.RetryAt = st.NotBefore
		}
		return fail("CrashLoopBackOff", "back-off %s restarting failed container=%s pod=%s", st.NotBefore.Sub(st.Last.FinishedAt), c.Name, podTarget(s.req.Pod))
	}
	for _, m := range c.VolumeMounts {
		if _, ok := s.req.Volumes[m.Name]; !ok {
			return fail("CreateContainerConfigError", "volume %q is not ready", m.Name)
		}
	}
	b := r.behavior(s.req.Pod, c)
	if b.Fail != nil {
		return fail(b.Fail.Reason, "%s", cmp.Or(b.Fail.Message, "failure specified by its behavior"))
	}
	if err := pause.For(ctx, b.StartDelay); err != nil {
		a.Err, a.Reason, a.Message = err, "CreateContainerError", err.Error()
		return a
	}

	// The state may have changed since the plan was computed: check it again.
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[s.req.Pod.UID]
	if p == nil || p.readySandbox() == nil {
		return fail("CreateContainerError", "pod has no ready sandbox")
	}
	if p.running(c.Name) != nil {
		return a
	}
	for _, v := range p.containers { // a queued start from an older spec
		if v.status.Name == c.Name {
			r.exitLocked(v, exitKILL, "")
		}
	}
	if g := cmp.Or(s.req.Pod.DeletionGracePeriodSeconds, s.req.Pod.Spec.TerminationGracePeriodSeconds); g != nil {
		p.grace = new(*g) // a copy: the pod belongs to the caller
	}
	r.runLocked(p, p.readySandbox().ID, c, b).turn = turnOf(s.req.Pod, c)
	return a
}

// turnOf returns the instance.turn of c: 0, or for a sidecar its place from the
// end of the init containers.
func turnOf(pod *v1.Pod, c *v1.Container) int {
	if !podspec.IsSidecar(c) {
		return 0
	}
	list := pod.Spec.InitContainers
	for i := range list {
		if list[i].Name == c.Name {
			return len(list) - i
		}
	}
	return 0
}
