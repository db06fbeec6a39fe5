package cri

import (
	"context"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// restartAll removes every instance of a pod after a container exited with the restart
// rule action RestartAllContainers. The sandbox with its addresses, the volumes and the
// logs are kept; the next sync starts all containers. It stops at the first failure,
// because the last instances in list are the trigger.
func (s *podSync) restartAll(ctx context.Context, list []plan.Removal) {
	for i := range list {
		begun := time.Now()
		s.trace.begin("RemoveContainer", list[i].Name)
		err := s.removeOne(ctx, &list[i])
		action := runtime.Action{Kind: runtime.RemoveContainer, Target: list[i].Name, Err: joinContextErr(ctx, err), Reason: "RemoveContainerError"}
		if !s.done(action, begun) {
			return
		}
	}
	s.retryAt(time.Now()) // removals cause no event, so the next sync is requested
}

func (s *podSync) removeOne(ctx context.Context, gone *plan.Removal) error {
	if gone.Running {
		at := target{pod: s.pod, spec: gone.Container, id: gone.ID, name: gone.Name, override: new(int64(0)), ips: s.ips, event: s.event}
		if err := s.r.stopOne(ctx, at); err != nil {
			return err
		}
	}
	id := runtimeID(gone.ID)
	status, err := s.r.containerStatus(ctx, id)
	switch {
	case isNotFound(err):
		return nil
	case err != nil:
		return err
	}
	if err := s.r.releaseContainer(ctx, id); err != nil {
		return err
	}
	s.checkpointRemoval(gone, status.GetMetadata().GetAttempt())
	return s.r.removeContainer(ctx, s.pod.UID, status)
}

// checkpointRemoval stores the restart count of an instance that is about to be removed, which is not stored yet
// if the agent was killed when it created the instance. It stores its exit if that delays the next start, or else
// deletes the stored exit.
func (s *podSync) checkpointRemoval(gone *plan.Removal, attempt uint32) {
	inst := gone.Ended
	rec := s.r.checkpoints.get(s.pod.UID)
	count, counted := rec.Restarts[gone.Name]
	_, hasExit := rec.Exits[gone.Name]
	if inst == nil && !hasExit && counted && count >= int32(attempt) {
		return // nothing changes
	}
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		rec.countInstance(gone.Name, attempt)
		if inst == nil {
			delete(rec.Exits, gone.Name)
			return
		}
		rec.Exits[gone.Name] = exit{
			RestartCount: inst.RestartCount, Hash: inst.Hash, ExitCode: inst.ExitCode,
			Created: inst.CreatedAt, Started: inst.StartedAt, Finished: inst.FinishedAt,
		}
	})
}
