package cri

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// CollectGarbage implements [runtime.GarbageCollector] (section 4.17): dead
// containers, then sandboxes that hold nothing, then the directories of removed
// pods. A sandbox that cannot be removed is tried again after a while that doubles
// (F-38).
func (r *Runtime) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	policy = never(policy)
	pods, err := r.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	gone := map[string]bool{} // containers
	for _, d := range deadContainers(pods, policy, time.Now()) {
		if err := r.remove(ctx, d); err != nil {
			errs = append(errs, err)
			continue
		}
		gone[d.container.ID] = true
	}
	sandboxes := deadSandboxes(pods, gone, policy)
	r.stuck.forget(sandboxes)
	for _, id := range sandboxes {
		if !r.stuck.due(id, time.Now()) {
			continue
		}
		err := r.removeSandbox(ctx, id)
		if r.stuck.tried(id, err != nil && ctx.Err() == nil, time.Now()); err != nil {
			errs = append(errs, err)
		}
	}
	errs = append(errs, r.removeDeadLinks(pods), r.removeDirs(ctx, policy.Removed))
	return errors.Join(errs...)
}

// never fills in the functions that are not there.
func never(policy runtime.GCPolicy) runtime.GCPolicy {
	for _, f := range []*func(types.UID) bool{&policy.Removed, &policy.Terminated} {
		if *f == nil {
			*f = func(types.UID) bool { return false }
		}
	}
	return policy
}

// A dead container may be removed.
type dead struct {
	pod       *runtime.Pod
	container runtime.Container
	why       string
}

// Why a container goes, in words.
const (
	whyRemoved = "its pod is gone"
	whyEnded   = "its pod has ended, and room is needed"
	whyMore    = "there are newer ones of it"
	whyShare   = "there are too many on the node, and its container has more than its share"
	whyOldest  = "there are too many on the node, and it is among the oldest"
)

// deadContainers returns which containers go (rt-128 … rt-130), the oldest first.
func deadContainers(pods []*runtime.Pod, policy runtime.GCPolicy, now time.Time) []dead {
	policy = never(policy)
	var goes []dead
	units := map[unit][]dead{} // what is kept of each container, the newest first
	for _, pod := range pods {
		why := ""
		switch {
		case policy.Removed(pod.UID):
			why = whyRemoved
		case policy.Terminated(pod.UID):
			why = whyEnded
		}
		newer := map[string]bool{} // names of which a newer instance was seen
		for _, c := range pod.Containers {
			d, u, old := dead{pod, c, why}, unit{pod.UID, c.Name}, newer[c.Name]
			newer[c.Name] = true
			switch {
			case c.State == runtime.ContainerRunning:
			case why != "":
				goes = append(goes, d)
			case now.Sub(c.CreatedAt) < policy.MinAge:
			case c.State == runtime.ContainerCreated && !old:
				// About to be started. Superseded by a newer instance, it is not.
			case policy.MaxPerContainer >= 0 && len(units[u]) >= policy.MaxPerContainer:
				d.why = whyMore
				goes = append(goes, d)
			default:
				units[u] = append(units[u], d)
			}
		}
	}
	goes = append(goes, beyond(units, policy.MaxContainers)...)
	slices.SortFunc(goes, oldest)
	return goes
}

// A unit is one container of one pod, over all its instances (cg-1).
type unit struct {
	pod  types.UID
	name string
}

// beyond returns what has to go for no more than limit to be kept on the node:
// first what units hold beyond an equal share, of which each has at least one,
// then the oldest of all (cg-4).
func beyond(units map[unit][]dead, limit int) []dead {
	total := 0
	for _, kept := range units {
		total += len(kept)
	}
	if limit <= 0 || total <= limit {
		return nil
	}
	var goes, rest []dead
	share := max(limit/len(units), 1)
	for _, kept := range units {
		n := min(len(kept), share)
		rest, goes = append(rest, kept[:n]...), append(goes, because(whyShare, kept[n:])...)
	}
	slices.SortFunc(rest, oldest)
	return append(goes, because(whyOldest, rest[:max(len(rest)-limit, 0)])...)
}

func because(why string, all []dead) []dead {
	for i := range all {
		all[i].why = why
	}
	return all
}

// oldest orders by creation time, then by ID.
func oldest(a, b dead) int {
	return cmp.Or(a.container.CreatedAt.Compare(b.container.CreatedAt), cmp.Compare(a.container.ID, b.container.ID))
}

// deadSandboxes returns which sandboxes go (rt-133): those that are not ready
// and hold no container that stays, but not the newest of a pod that lives.
func deadSandboxes(pods []*runtime.Pod, gone map[string]bool, policy runtime.GCPolicy) []string {
	policy = never(policy)
	var ids []string
	for _, pod := range pods {
		held := map[string]bool{}
		for _, c := range pod.Containers {
			held[c.SandboxID] = held[c.SandboxID] || !gone[c.ID]
		}
		for i, s := range pod.Sandboxes {
			newest := i == 0
			if s.State == runtime.SandboxReady || held[s.ID] || newest && !policy.Removed(pod.UID) && !policy.Terminated(pod.UID) {
				continue
			}
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// remove removes a dead container and its log (rt-131, rt-132).
func (r *Runtime) remove(ctx context.Context, d dead) error {
	id := bare(d.container.ID)
	if d.container.State == runtime.ContainerUnknown {
		if err := r.cfg.Runtime.StopContainer(r.quiet(ctx), id, leastGrace); err != nil && !isNotFound(err) {
			return fmt.Errorf("cri: stop container %s, whose state is unknown: %w", id, err)
		}
	}
	status, err := r.containerStatus(ctx, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.giveBack(ctx, id); err != nil {
		return err
	}
	// The log goes first: a container that is gone can't tell where it was.
	if below(r.logsOf(d.pod), status.LogPath) {
		if err := removeRotated(status.LogPath); err != nil {
			return fmt.Errorf("cri: remove the log of container %s: %w", id, err)
		}
	}
	r.removeLink(status.Labels, id)
	return r.discard(ctx, d.pod.UID, status)
}

// giveBack tells resource managers that a container will not run again.
func (r *Runtime) giveBack(ctx context.Context, id string) error {
	if r.cfg.Managers == nil {
		return nil
	}
	if err := r.cfg.Managers.PostStop(ctx, r.id(id)); err != nil {
		return fmt.Errorf("cri: what container %s had can't be given back: %w", id, err)
	}
	return nil
}

// discard removes a container from the runtime, and the file that it wrote its
// last words to. Its log stays.
func (r *Runtime) discard(ctx context.Context, pod types.UID, status *runtimeapi.ContainerStatus) error {
	for _, m := range status.Mounts {
		if m.GetContainerPath() == status.Annotations[podconfig.AnnotationMessagePath] && below(r.messagesOf(pod), m.GetHostPath()) {
			_ = os.Remove(m.HostPath)
		}
	}
	if err := r.cfg.Runtime.RemoveContainer(r.quiet(ctx), status.Id); err != nil && !isNotFound(err) {
		return fmt.Errorf("cri: remove container %s: %w", status.Id, err)
	}
	return nil
}

func (r *Runtime) removeSandbox(ctx context.Context, id string) error {
	if err := r.cfg.Runtime.StopPodSandbox(r.quiet(ctx), id); err != nil && !isNotFound(err) {
		return fmt.Errorf("cri: stop sandbox %s: %w", id, err)
	}
	if err := r.cfg.Runtime.RemovePodSandbox(r.quiet(ctx), id); err != nil && !isNotFound(err) {
		return fmt.Errorf("cri: remove sandbox %s: %w", id, err)
	}
	return nil
}
