package cri

import (
	"context"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
)

// startOver removes every instance of a pod of which one asked for that by its
// exit (rt-140). The sandbox stays, and so do addresses, volumes and logs; the
// next sync finds a pod that has not run yet. What fails ends it there: the last
// of the list are what it is done for.
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
	s.retryAt(time.Now()) // what goes is no news to a list's reader, but now the pod begins
}

func (s *podSync) removeOne(ctx context.Context, gone *plan.Removal) error {
	if gone.Running {
		at := target{pod: s.pod, spec: gone.Container, id: gone.ID, name: gone.Name, override: new(int64(0)), ips: s.ips, event: s.event}
		if err := s.r.stopOne(ctx, at); err != nil {
			return err
		}
	}
	id := bare(gone.ID)
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

// noteEnd writes down the exit of an instance that goes, if it delays the next;
// else that of an earlier one does no more.
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
