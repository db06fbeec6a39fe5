package cloud

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// CollectGarbage implements [runtime.GarbageCollector]. It destroys machines of removed pods,
// which cost money until then.
func (r *Runtime) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	pods, err := r.machines(ctx)
	if err != nil {
		return fmt.Errorf("cloud: collect garbage: %w", err)
	}
	var errs []error
	machines, instances := garbage(pods, policy, time.Now())
	for _, m := range machines {
		if err := r.cloud.DestroyMachine(ctx, m.ID); err != nil && !errors.Is(err, runtime.ErrNotFound) {
			errs = append(errs, fmt.Errorf("cloud: destroy machine %s of pod %s: %w", m.ID, m.Tags[tagUID], err))
		}
	}
	for _, dead := range instances {
		if err := r.forget(ctx, pods[dead.pod], dead.ID, true); err != nil {
			errs = append(errs, fmt.Errorf("cloud: remove container %s of pod %s: %w", dead.Name, dead.pod, err))
		}
	}
	return errors.Join(errs...)
}

// An instance is a container of a pod.
type instance struct {
	pod types.UID
	runtime.ContainerStatus
}

// garbage returns the machines to destroy, and the instances to remove from others.
func garbage(pods map[types.UID][]Machine, policy runtime.GCPolicy, now time.Time) (machines []Machine, instances []instance) {
	over := func(uid types.UID) bool {
		return policy.Keep != nil && !policy.Keep(uid) || policy.Terminated != nil && policy.Terminated(uid)
	}
	old := func(created time.Time) bool { return now.Sub(created) >= policy.MinAge }
	var dead []instance
	for uid, of := range pods {
		var left []Machine
		for i, m := range of {
			if m.State == Ended && old(m.Created) && (over(uid) || i > 0 && len(m.Processes) == 0) {
				machines = append(machines, m)
			} else {
				left = append(left, m)
			}
		}
		for _, c := range statusOf(uid, left).Containers {
			if c.State == runtime.ContainerExited && old(c.CreatedAt) {
				dead = append(dead, instance{uid, c})
			}
		}
	}
	slices.SortFunc(dead, func(a, b instance) int { return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID)) })
	type container struct {
		pod  types.UID
		name string
	}
	kept, all := map[container]int{}, 0
	for _, c := range dead {
		k := container{c.pod, c.Name}
		if over(c.pod) ||
			policy.MaxPerContainer >= 0 && kept[k] >= policy.MaxPerContainer ||
			policy.MaxContainers > 0 && all >= policy.MaxContainers {
			instances = append(instances, c)
			continue
		}
		kept[k]++
		all++
	}
	return machines, instances
}
