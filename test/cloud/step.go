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

// A step is one SyncPod: a plan is carried out, and what came of it is collected.
type step struct {
	*Runtime
	pod      *v1.Pod
	volumes  map[string]runtime.Volume
	machines []Machine          // of the pod, newest first, as they were before the step
	status   *runtime.PodStatus // the same
	result   runtime.SyncResult
}

// carryOut does what the plan says, in the order that plan.Plan asks for, and stops
// where going on could make two of one container.
func (s *step) carryOut(ctx context.Context, p plan.Plan) {
	if p.KillPod {
		err := s.stop(ctx, s.machines, graceOf(runtime.KillRequest{Pod: s.pod}, nil))
		if !s.did(runtime.KillPodSandbox, s.podName(), err, "KillPodSandboxError") {
			return
		}
	}
	for _, k := range p.Kill {
		grace := graceOf(runtime.KillRequest{Pod: s.pod, GracePeriodSeconds: k.GracePeriodSeconds}, nil) // rt-109
		if !s.did(runtime.KillContainer, k.Name, s.end(ctx, k.ID, grace), "KillContainerError") {
			return
		}
	}
	for _, gone := range p.Remove {
		if !s.did(runtime.RemoveContainer, gone.Name, s.remove(ctx, gone), "RemoveContainerError") {
			return
		}
		s.retryAt(time.Now()) // now the pod begins anew
	}
	machine := p.SandboxID
	if p.CreateSandbox {
		var err error
		machine, err = s.cloud.CreateMachine(ctx, NewMachine{
			Token: fmt.Sprintf("%s/%s/%d", s.node, s.pod.UID, p.Attempt), // for a call whose answer was lost
			Tags:  carried(s.machines, s.machineTags(s.pod, p.Attempt)),
		})
		if !s.did(runtime.CreatePodSandbox, s.podName(), err, "CreatePodSandboxError") {
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

// start starts one container, or says why not. It must not keep others from starting.
func (s *step) start(ctx context.Context, machine string, st *plan.Start) {
	c := st.Container
	if st.PutOff() {
		s.retryAt(st.NotBefore)
		s.did(runtime.StartContainer, c.Name, errors.New(st.BackoffMessage(s.pod)), "CrashLoopBackOff") // rt-90
		return
	}
	p, err := s.process(c)
	if err != nil {
		s.did(runtime.StartContainer, c.Name, err, "CreateContainerConfigError")
		return
	}
	if err := s.callOff(ctx, st); err != nil {
		s.did(runtime.StartContainer, c.Name, err, "KillContainerError")
		return
	}
	p.Tags = processTags(s.pod, st)
	p.Token = fmt.Sprintf("%s/%d", c.Name, st.RestartCount) // that of an instance to resume is its own
	err = s.cloud.StartProcess(ctx, machine, p)
	if err == nil || ctx.Err() != nil { // or perhaps
		s.backoff.Started(s.pod, *st, time.Now())
	}
	reason := "CreateContainerError"
	if errors.Is(err, ErrNoImage) {
		reason = "ErrImagePull"
	}
	s.did(runtime.StartContainer, c.Name, err, reason)
}

// callOff ends what is still starting of a container and is not wanted any more, because
// the spec has another image by now, say: it must not come up beside what is.
func (s *step) callOff(ctx context.Context, st *plan.Start) error {
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

// process says what a container is on the cloud. It is an error if something that it
// needs is not there.
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
			return NewProcess{}, fmt.Errorf("variable %q has no literal value, and nobody resolves it here", e.Name)
		}
		env[e.Name] = e.Value
	}
	if len(c.EnvFrom) > 0 {
		return NewProcess{}, errors.New("envFrom is resolved by nobody here")
	}
	return NewProcess{Image: c.Image, Command: slices.Concat(c.Command, c.Args), Env: env}, nil
}

// remove takes away an instance, so that its pod starts over.
func (s *step) remove(ctx context.Context, gone plan.Removal) error {
	if gone.Running {
		if err := s.end(ctx, gone.ID, 0); err != nil {
			return err
		}
	}
	return s.forget(ctx, s.machines, gone.ID, gone.Ended != nil)
}

// did adds an action to the result, and reports whether it succeeded.
func (s *step) did(kind runtime.ActionKind, target string, err error, reason string) bool {
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
