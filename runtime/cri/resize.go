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

// resize gives what runs the resources that it was granted (al-16 … al-21). What
// starts again with other resources than it had, stopped for that (al-15) or ended
// meanwhile, is left out; but the pod's cgroup is made to fit it first: on cgroup v1
// nothing starts in one that is narrower. A runtime that can't do it fails one sync of
// the pod, which says so, and is not asked for the same again: the pod runs on with
// what it has.
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
	steps := allocation.Steps(allocation.Actuated(s.pod, had, given), s.pod, &observed)
	asked := fmt.Sprint(steps)
	if s.r.unsupported.get(s.pod.UID) == asked {
		return
	}
	begun := time.Now()
	s.trace.begin("Resize", "")
	err := allocation.CheckDecrease(steps, s.usage(ctx, steps, &observed))
	if err == nil {
		_, err = allocation.Carry(ctx, steps, &resizer{podSync: s, observed: &observed, sandbox: p.SandboxID})
	}
	switch {
	case err == nil:
		s.checkpointResize(p)
	case errors.Is(err, runtime.ErrUnsupported):
		s.r.unsupported.set(s.pod.UID, asked)
	default:
		s.retryable = true
	}
	s.done(runtime.Action{Kind: runtime.ResizePodInPlace, Target: s.name(), Err: joinContextErr(ctx, err), Reason: "ResizePodInPlaceError"}, begun)
}

// had returns the pod's status as if what starts again still ran: what its cgroup was
// last made for. It is the status itself if nothing does.
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

// settled records as given what the plan found to differ, also where no step had
// to change it: requests that leave no trace in the kernel.
func (s *podSync) checkpointResize(p plan.Plan) {
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		for i := range p.Resize {
			rec.Actuated[p.Resize[i].Name] = actuated{ID: bare(p.Resize[i].ID), Resources: *p.Resize[i].To}
		}
		if p.ResizePod != nil {
			rec.Pod = p.ResizePod.To
		}
	})
}

// usage asks how much memory is in use where less is to be allowed (al-18). What
// the runtime does not tell is no reason to refuse.
func (s *podSync) usage(ctx context.Context, steps []allocation.Step, observed *runtime.PodStatus) allocation.Usage {
	now := allocation.Usage{Containers: map[string]int64{}}
	for i := range steps {
		if steps[i].Kind != allocation.ContainerStep || !steps[i].NarrowsMemory() {
			continue
		}
		c := running(observed, steps[i].Container)
		if c == nil {
			continue
		}
		stats, err := s.r.cfg.Runtime.ContainerStats(s.r.quiet(ctx), bare(c.ID))
		if used := stats.GetMemory().GetUsageBytes(); err == nil && used != nil {
			now.Containers[c.Name] = int64(used.GetValue())
		}
	}
	return now
}

// A resizer carries steps out on the runtime.
type resizer struct {
	*podSync
	observed *runtime.PodStatus
	sandbox  string
}

// AnnouncePod implements [allocation.Actuator].
func (r *resizer) AnnouncePod(ctx context.Context, all v1.ResourceRequirements) error {
	in := podconfig.Input{Pod: r.pod, Node: r.r.cfg.Node.facts(r.r.cfg.Dirs.Root), ExclusiveCPUs: r.r.exclusiveCPUs(r.pod)}
	return r.r.updateSandbox(ctx, r.sandbox, podconfig.Overhead(in), podconfig.PodResources(in, all))
}

// SetPod implements [allocation.Actuator].
func (r *resizer) SetPod(ctx context.Context, s allocation.Step) error {
	if r.r.cfg.Providers.ResizeCgroup == nil {
		return nil
	}
	return r.r.cfg.Providers.ResizeCgroup(ctx, r.pod, s)
}

// SetContainer implements [allocation.Actuator].
func (r *resizer) SetContainer(ctx context.Context, name string, all v1.ResourceRequirements) error {
	inst, spec := running(r.observed, name), containerSpec(r.pod, name)
	if inst == nil || spec == nil {
		return nil
	}
	in := podconfig.Input{Pod: r.pod, Node: r.r.cfg.Node.facts(r.r.cfg.Dirs.Root), ExclusiveCPUs: r.r.exclusiveCPUs(r.pod)}
	if err := r.r.updateContainer(ctx, bare(inst.ID), podconfig.Resources(in, spec, all)); err != nil {
		return err
	}
	r.r.checkpoints.update(r.pod, func(rec *podCheckpoint) {
		rec.Actuated[name] = actuated{ID: bare(inst.ID), Resources: allocation.Compute(&all)} // al-21
	})
	return nil
}

// running returns the instance of the container that runs, or nil.
func running(st *runtime.PodStatus, name string) *runtime.ContainerStatus {
	for i := range st.Containers {
		if c := &st.Containers[i]; c.Name == name && c.State == runtime.ContainerRunning {
			return c
		}
	}
	return nil
}

// podLevel returns what the pod as a whole asks for, CPU and memory; nil if that
// is nothing.
func podLevel(pod *v1.Pod) *v1.ResourceRequirements {
	if pod.Spec.Resources == nil {
		return nil
	}
	res := allocation.Compute(pod.Spec.Resources)
	return &res
}
