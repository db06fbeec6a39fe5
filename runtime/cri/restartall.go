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
	s.checkpointExit(gone)
	return s.r.removeContainer(ctx, s.pod.UID, status)
}

// checkpointExit stores the exit of a removed instance if it delays the next start, or else
// deletes the stored exit.
func (s *podSync) checkpointExit(gone *plan.Removal) {
	inst := gone.Ended
	if inst == nil {
		if _, ok := s.r.checkpoints.get(s.pod.UID).Exits[gone.Name]; ok {
			s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) { delete(rec.Exits, gone.Name) })
		}
		return
	}
	s.r.checkpoints.update(s.pod, func(rec *podCheckpoint) {
		rec.Exits[gone.Name] = exit{
			RestartCount: inst.RestartCount, Hash: inst.Hash, ExitCode: inst.ExitCode,
			Created: inst.CreatedAt, Started: inst.StartedAt, Finished: inst.FinishedAt,
		}
	})
}
