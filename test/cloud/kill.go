package cloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/runtime"
)

// KillPod implements [runtime.Runtime]. Like SyncPod, it lists the machines itself.
func (r *Runtime) KillPod(ctx context.Context, req runtime.KillRequest) error {
	if req.UID == "" {
		return errors.New("cloud: KillRequest.UID is empty")
	}
	machines, err := r.machinesOf(ctx, req.UID)
	if err == nil {
		err = r.stop(ctx, machines, graceOf(req, machines))
	}
	if err != nil {
		return fmt.Errorf("cloud: kill pod %s: %w", req.UID, err)
	}
	if req.Pod == nil || req.Pod.DeletionTimestamp != nil {
		r.backoff.Forget(req.UID)
	}
	return nil
}

// stop stops the processes on the machines of a pod in the order of their turns, and then
// the machines.
func (r *Runtime) stop(ctx context.Context, machines []Machine, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	turns := map[uint64][]string{}
	for _, m := range machines {
		for _, p := range m.Processes {
			if turn := number(p.Tags, tagTurn); p.State != Ended {
				turns[turn] = append(turns[turn], p.ID)
			}
		}
	}
	for _, turn := range slices.Sorted(maps.Keys(turns)) {
		var together errgroup.Group
		for _, id := range turns[turn] {
			together.Go(func() error { return r.end(ctx, id, time.Until(deadline)) })
		}
		if err := together.Wait(); err != nil {
			return err
		}
	}
	for _, m := range machines {
		if m.State == Ended {
			continue
		}
		if err := r.cloud.StopMachine(ctx, m.ID); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			return err
		}
	}
	return nil
}

// end stops a process. It returns nil if the process does not exist.
func (r *Runtime) end(ctx context.Context, id string, grace time.Duration) error {
	err := r.cloud.StopProcess(ctx, bare(id), max(grace, 0))
	if errors.Is(err, runtime.ErrNotFound) {
		return nil
	}
	return err
}
