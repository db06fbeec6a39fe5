package cri

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// restoreFrom returns the checkpoint of the restore that is to begin, or that is not complete; "" if there is
// none. It asks Providers.RestoreFrom only while the runtime has nothing of the pod: a checkpoint may be
// deleted when it has been used.
func (r *Runtime) restoreFrom(pod *v1.Pod, rec *podCheckpoint, status *runtime.PodStatus) (string, error) {
	switch begun := len(status.Sandboxes)+len(status.Containers) > 0; {
	case begun:
		return rec.Restore, nil
	case rec.Attempts > 0 && rec.Restore == "", r.cfg.Providers.RestoreFrom == nil, pod.DeletionTimestamp != nil:
		return "", nil
	default:
		return r.cfg.Providers.RestoreFrom(pod)
	}
}

// checkpointRestore stores that a restore is not complete, or, with an empty location, that no checkpoint is used any
// more: then the pod has had a sandbox, which may be one that an agent before this created at its end.
func (s *podSync) checkpointRestore(location string) {
	if s.r.checkpoints.get(s.pod.UID).Restore == location {
		return
	}
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		if rec.Restore = location; location != "" {
			return
		}
		for _, sb := range s.status.Sandboxes {
			rec.Attempts = max(rec.Attempts, sb.Attempt+1)
		}
	})
}

// noCheckpoint fails a sync because the checkpoint of the pod is not available. The pod remains Pending, and the next
// sync tries again.
func (s *podSync) noCheckpoint(err error) {
	begun := s.trace.Begin
	s.event(runtime.PodRef(s.pod), v1.EventTypeWarning, "CheckpointNotReady", "Failed to get the checkpoint of the pod: "+errorMessage(err))
	s.done(runtime.Action{Kind: runtime.CreatePodSandbox, Target: s.fullName(), Err: err, Reason: "CreatePodSandboxError"}, begun)
}

// restoreRequest returns the request for the sandbox of s.config and the containers of a plan. The addresses of the
// sandbox are not known yet.
func (s *podSync) restoreRequest(ctx context.Context, p plan.Plan, handler string) (*runtimeapi.RestorePodRequest, error) {
	s.unaddressed = true
	defer func() { s.unaddressed = false }()
	s.volumeImages(ctx)
	req := &runtimeapi.RestorePodRequest{CheckpointPath: p.Restore, Config: s.config, RuntimeHandler: handler}
	for i := range p.Start {
		config, err := s.configure(ctx, &p.Start[i])
		if err != nil {
			if why, ok := errors.AsType[*startError](err); ok && !why.until.IsZero() {
				s.retryAt(why.until)
			}
			return nil, fmt.Errorf("container %s: %w", p.Start[i].Name, err)
		}
		req.ContainerConfigs = append(req.ContainerConfigs, config)
	}
	s.checkpointRestore(p.Restore)
	return req, nil
}

// unknownIPs stands for the addresses of a sandbox that does not exist yet.
var unknownIPs = []string{"unknown"}

// addressRestored writes the hosts file of a pod whose containers were configured before its sandbox had addresses.
func (s *podSync) addressRestored(ctx context.Context) bool {
	begun := time.Now()
	_, err := s.r.writeHosts(s.pod, s.ips)
	if err == nil {
		return true
	}
	return s.done(runtime.Action{Kind: runtime.ConfigPodSandbox, Target: s.fullName(), Err: joinContextErr(ctx, err), Reason: "ConfigPodSandboxError"}, begun)
}

// restorePod restores the sandbox and its containers, and returns the ID of the sandbox.
func (s *podSync) restorePod(ctx context.Context, req *runtimeapi.RestorePodRequest) (string, error) {
	s.restored = map[string]instance{}
	answer, err := s.r.cfg.Runtime.RestorePod(ctx, req)
	if err != nil {
		return "", err
	}
	for _, c := range answer.GetRestoredContainers() {
		s.restored[c.GetName()] = instance{id: c.GetContainerId(), attempt: attemptIn(req, c.GetName())}
	}
	return answer.GetPodSandboxId(), nil
}

func attemptIn(req *runtimeapi.RestorePodRequest, container string) uint32 {
	i := slices.IndexFunc(req.ContainerConfigs, func(c *runtimeapi.ContainerConfig) bool { return c.GetMetadata().GetName() == container })
	return req.ContainerConfigs[i].GetMetadata().GetAttempt() // the response was verified
}

// foundRestored records the containers that the runtime restored in a sandbox by a call whose response was lost.
func (s *podSync) foundRestored(sandbox string, containers []*runtimeapi.Container) {
	for _, c := range containers { // s.restored is nil if no restore was tried
		if s.restored != nil && c.GetPodSandboxId() == sandbox && c.GetState() == runtimeapi.ContainerState_CONTAINER_CREATED {
			s.restored[c.GetMetadata().GetName()] = instance{id: c.GetId(), attempt: c.GetMetadata().GetAttempt()}
		}
	}
}

// restoredStarts returns the starts of the plan with the instances that were restored. If the runtime has not
// restored all of them, the next plan replaces the sandbox.
func (s *podSync) restoredStarts(starts []plan.Start) ([]plan.Start, error) {
	starts = slices.Clone(starts)
	for i := range starts {
		inst, ok := s.restored[starts[i].Name]
		if !ok {
			return nil, fmt.Errorf("the runtime has not restored container %s", starts[i].Name)
		}
		starts[i].Resume, starts[i].RestartCount = s.r.id(inst.id), int32(inst.attempt)
	}
	return starts, nil
}

// unstarted is why a start has failed.
type unstarted int

const (
	maybeStarted unstarted = iota + 1 // the runtime did not respond: the next sync inspects the container
	notStarted
)

// undoRestore is called after a restored container failed to start. It removes the sandbox, so that the pod remains
// Pending and is restored again, whatever its restart policy is.
func (s *podSync) undoRestore(ctx context.Context) {
	if s.unstarted != notStarted || ctx.Err() != nil {
		return
	}
	if err := s.removeRestored(ctx); err != nil && ctx.Err() == nil {
		s.r.log.Warn("Failed to remove the sandbox of a failed restore, the next sync replaces it", "pod", s.pod.Namespace+"/"+s.pod.Name, "podUID", s.pod.UID, "err", err)
	}
}

// completeRestore is called after all actions of a plan with a restore: no checkpoint is used any more if they have
// succeeded. Otherwise the next plan decides.
func (s *podSync) completeRestore(ctx context.Context) {
	if ctx.Err() == nil && s.result.Err() == nil {
		s.checkpointRestore("")
		s.event(runtime.PodRef(s.pod), v1.EventTypeNormal, "RestoreSucceeded", "Pod restored from a checkpoint")
	}
}

// removeRestored stops and removes the sandbox with its containers, also those that have been started. Their restart
// counts are not used again.
func (s *podSync) removeRestored(ctx context.Context) error {
	_, containers, err := s.r.list(ctx, s.pod.UID)
	if err != nil {
		return err
	}
	containers = slices.DeleteFunc(containers, func(c *runtimeapi.Container) bool { return c.GetPodSandboxId() != s.sandbox })
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		for _, c := range containers {
			rec.countInstance(c.GetMetadata().GetName(), c.GetMetadata().GetAttempt())
		}
	})
	for _, c := range containers {
		if err := s.r.releaseContainer(ctx, c.GetId()); err != nil {
			return err
		}
	}
	return s.r.removeSandbox(ctx, s.sandbox)
}
