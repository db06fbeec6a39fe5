package cloud

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// A step executes the plan of one SyncPod and collects the results.
type step struct {
	*Runtime
	pod      *v1.Pod
	volumes  map[string]runtime.Volume
	machines []Machine          // of the pod, newest first, as they were before the step
	status   *runtime.PodStatus // the same
	result   runtime.SyncResult
}

// execute executes the plan in the order that plan.Plan requires. It stops at an error after
// which there could be two instances of a container.
func (s *step) execute(ctx context.Context, p plan.Plan) {
	if p.KillPod {
		err := s.stop(ctx, s.machines, graceOf(runtime.KillRequest{Pod: s.pod}, nil))
		if !s.succeeded(runtime.KillPodSandbox, s.podName(), err, "KillPodSandboxError") {
			return
		}
	}
	for _, k := range p.Kill {
		grace := graceOf(runtime.KillRequest{Pod: s.pod, GracePeriodSeconds: k.GracePeriodSeconds}, nil) // rt-109
		if !s.succeeded(runtime.KillContainer, k.Name, s.end(ctx, k.ID, grace), "KillContainerError") {
			return
		}
	}
	for _, gone := range p.Remove {
		if !s.succeeded(runtime.RemoveContainer, gone.Name, s.remove(ctx, gone), "RemoveContainerError") {
			return
		}
		s.retryAt(time.Now()) // then the pod starts again
	}
	machine := p.SandboxID
	if p.CreateSandbox {
		var err error
		machine, err = s.cloud.CreateMachine(ctx, NewMachine{
			Token: fmt.Sprintf("%s/%s/%d", s.node, s.pod.UID, p.Attempt), // completes a call whose answer was lost
			Tags:  carried(s.machines, s.machineTags(s.pod, p.Attempt)),
		})
		if !s.succeeded(runtime.CreatePodSandbox, s.podName(), err, "CreatePodSandboxError") {
			return
		}
	}
	for i := range p.Start {
		if ctx.Err() != nil {
			return
		}
		s.start(ctx, machine, &p.Start[i])
	}
}

// start starts a container. Its failure does not prevent others from starting.
func (s *step) start(ctx context.Context, machine string, st *plan.Start) {
	c := st.Container
	if st.InBackoff() {
		s.retryAt(st.NotBefore)
		s.succeeded(runtime.StartContainer, c.Name, errors.New(st.BackoffMessage(s.pod)), "CrashLoopBackOff") // rt-90
		return
	}
	p, err := s.process(c)
	if err != nil {
		s.succeeded(runtime.StartContainer, c.Name, err, "CreateContainerConfigError")
		return
	}
	if err := s.cancel(ctx, st); err != nil {
		s.succeeded(runtime.StartContainer, c.Name, err, "KillContainerError")
		return
	}
	p.Tags = processTags(s.pod, st)
	p.Token = fmt.Sprintf("%s/%d", c.Name, st.RestartCount) // an instance to resume has the same token
	err = s.cloud.StartProcess(ctx, machine, p)
	if err == nil || ctx.Err() != nil { // it may have started
		s.backoff.Started(s.pod, *st, time.Now())
	}
	reason := "CreateContainerError"
	if errors.Is(err, ErrNoImage) {
		reason = "ErrImagePull"
	}
	s.succeeded(runtime.StartContainer, c.Name, err, reason)
}

// cancel stops instances of a container that are still starting and outdated, for example
// because the image was changed.
func (s *step) cancel(ctx context.Context, st *plan.Start) error {
	for _, old := range s.status.Containers {
		if old.Name != st.Name || old.State != runtime.ContainerCreated || old.ID == st.Resume {
			continue
		}
		if err := s.end(ctx, old.ID, 0); err != nil {
			return err
		}
	}
	return nil
}

// process returns the process of a container, or an error if a volume is not ready or a
// variable cannot be resolved.
func (s *step) process(c *v1.Container) (NewProcess, error) {
	var volumes []string
	for _, m := range c.VolumeMounts {
		volumes = append(volumes, m.Name)
	}
	for _, d := range c.VolumeDevices {
		volumes = append(volumes, d.Name)
	}
	for _, name := range volumes {
		if _, ok := s.volumes[name]; !ok {
			return NewProcess{}, fmt.Errorf("volume %q is not ready", name)
		}
	}
	env := map[string]string{}
	for _, e := range c.Env {
		if e.ValueFrom != nil {
			return NewProcess{}, fmt.Errorf("variable %q: valueFrom is not supported", e.Name)
		}
		env[e.Name] = e.Value
	}
	if len(c.EnvFrom) > 0 {
		return NewProcess{}, errors.New("envFrom is not supported")
	}
	return NewProcess{Image: c.Image, Command: slices.Concat(c.Command, c.Args), Env: env}, nil
}

// remove removes an instance, so that its pod starts again.
func (s *step) remove(ctx context.Context, gone plan.Removal) error {
	if gone.Running {
		if err := s.end(ctx, gone.ID, 0); err != nil {
			return err
		}
	}
	return s.forget(ctx, s.machines, gone.ID, gone.Ended != nil)
}

// succeeded adds an action to the result and reports whether err is nil.
func (s *step) succeeded(kind runtime.ActionKind, target string, err error, reason string) bool {
	a := runtime.Action{Kind: kind, Target: target}
	if err != nil {
		a.Err, a.Reason, a.Message = err, reason, err.Error()
	}
	s.result.Actions = append(s.result.Actions, a)
	return err == nil
}

func (s *step) retryAt(t time.Time) {
	if s.result.RetryAt.IsZero() || t.Before(s.result.RetryAt) {
		s.result.RetryAt = t
	}
}

func (s *step) podName() string { return s.pod.Name + "_" + s.pod.Namespace }
