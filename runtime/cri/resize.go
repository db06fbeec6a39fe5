package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// resize sets the allocated resources on running containers. Containers that are
// restarted with other resources are skipped, but the pod's cgroup is resized for them
// first: on cgroup v1 no container starts with limits above those of its parent. If the
// runtime does not support the resize, one sync fails, the same resize is not repeated,
// and the pod keeps its resources.
func (s *podSync) resize(ctx context.Context, p plan.Plan) {
	given := s.r.checkpoints.get(s.pod.UID).Pod
	had := s.statusBeforeRestarts(p)
	if len(p.Resize) == 0 && p.ResizePod == nil && (had == s.status || !allocation.InProgress(s.pod, had, given)) {
		return
	}
	observed := *s.status
	observed.Containers = slices.DeleteFunc(slices.Clone(observed.Containers), func(c runtime.ContainerStatus) bool {
		return slices.ContainsFunc(p.Kill, func(k plan.Kill) bool { return k.ID == c.ID })
	})
	steps := allocation.PlanResize(allocation.Actuated(s.pod, had, given), s.pod, &observed)
	asked := fmt.Sprint(steps)
	if s.r.unsupported.get(s.pod.UID) == asked {
		return
	}
	begun := time.Now()
	s.trace.begin("Resize", "")
	err := allocation.CheckDecrease(steps, s.memoryUsage(ctx, steps, &observed))
	if err == nil {
		_, err = allocation.Actuate(ctx, steps, &resizer{podSync: s, observed: &observed, sandbox: p.SandboxID})
	}
	switch {
	case err == nil:
		s.checkpointResize(p)
	case errors.Is(err, runtime.ErrUnsupported):
		s.r.unsupported.set(s.pod.UID, asked)
	default:
		s.retryable = true
	}
	s.done(runtime.Action{Kind: runtime.ResizePodInPlace, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "ResizePodInPlaceError"}, begun)
}

// statusBeforeRestarts returns the pod's status with the containers to restart as running,
// for which its cgroup was last sized. It is s.status if no container restarts.
func (s *podSync) statusBeforeRestarts(p plan.Plan) *runtime.PodStatus {
	if p.CreateSandbox || p.KillPod || len(p.Start) == 0 {
		return s.status
	}
	had := *s.status
	had.Containers = slices.Clone(had.Containers)
	for i := range p.Start {
		if last := had.Container(p.Start[i].Name); last != nil {
			last.State = runtime.ContainerRunning
		}
	}
	return &had
}

// checkpointResize stores all resized resources, including requests without an effect in
// the kernel.
func (s *podSync) checkpointResize(p plan.Plan) {
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		for i := range p.Resize {
			rec.Actuated[p.Resize[i].Name] = actuated{ID: runtimeID(p.Resize[i].ID), Resources: *p.Resize[i].To}
		}
		if p.ResizePod != nil {
			rec.Pod = p.ResizePod.To
		}
	})
}

// memoryUsage returns the memory usage of containers whose memory limit decreases. Containers
// without a reported usage are omitted and do not prevent the resize.
func (s *podSync) memoryUsage(ctx context.Context, steps []allocation.ResizeStep, observed *runtime.PodStatus) map[string]int64 {
	usage := map[string]int64{}
	for i := range steps {
		if steps[i].Container == "" || !steps[i].DecreasesMemoryLimit() {
			continue
		}
		c := running(observed, steps[i].Container)
		if c == nil {
			continue
		}
		stats, err := s.r.cfg.Runtime.ContainerStats(s.r.quiet(ctx), runtimeID(c.ID))
		if used := stats.GetMemory().GetUsageBytes(); err == nil && used != nil {
			usage[c.Name] = int64(used.GetValue())
		}
	}
	return usage
}

// A resizer carries out resize steps on the runtime.
type resizer struct {
	*podSync
	observed *runtime.PodStatus
	sandbox  string
}

// UpdatePodSandboxResources implements [allocation.Actuator].
func (r *resizer) UpdatePodSandboxResources(ctx context.Context, all v1.ResourceRequirements) error {
	in := podconfig.PodInput{Pod: r.pod, Node: r.r.cfg.Node.facts(r.r.cfg.Dirs.Root), ExclusiveCPUs: r.r.exclusiveCPUs(r.pod)}
	return r.r.updateSandbox(ctx, r.sandbox, podconfig.Overhead(in), podconfig.PodResources(in, all))
}

// SetPodCgroup implements [allocation.Actuator].
func (r *resizer) SetPodCgroup(ctx context.Context, s allocation.ResizeStep) error {
	if r.r.cfg.Providers.Cgroups == nil {
		return nil
	}
	return r.r.cfg.Providers.Cgroups.Resize(ctx, r.pod, s.Resource, s.After)
}

// UpdateContainerResources implements [allocation.Actuator].
func (r *resizer) UpdateContainerResources(ctx context.Context, name string, all v1.ResourceRequirements) error {
	inst, spec := running(r.observed, name), containerSpec(r.pod, name)
	if inst == nil || spec == nil {
		return nil
	}
	in := podconfig.PodInput{Pod: r.pod, Node: r.r.cfg.Node.facts(r.r.cfg.Dirs.Root), ExclusiveCPUs: r.r.exclusiveCPUs(r.pod)}
	if err := r.r.updateContainer(ctx, runtimeID(inst.ID), podconfig.Resources(in, spec, all)); err != nil {
		return err
	}
	r.r.checkpoints.update(r.pod, func(rec *podCheckpoint) {
		rec.Actuated[name] = actuated{ID: runtimeID(inst.ID), Resources: allocation.ComputeResources(&all)}
	})
	return nil
}

// running returns the running instance of the container, or nil.
func running(st *runtime.PodStatus, name string) *runtime.ContainerStatus {
	for i := range st.Containers {
		if c := &st.Containers[i]; c.Name == name && c.State == runtime.ContainerRunning {
			return c
		}
	}
	return nil
}

// podLevel returns the pod-level CPU and memory resources, which are empty if the spec has none: a
// resize can add them.
func podLevel(pod *v1.Pod) *v1.ResourceRequirements {
	if pod.Spec.Resources == nil {
		return new(v1.ResourceRequirements)
	}
	res := allocation.ComputeResources(pod.Spec.Resources)
	return &res
}
