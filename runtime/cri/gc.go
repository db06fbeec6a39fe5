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

// CollectGarbage implements [runtime.GarbageCollector]: it removes dead containers, then
// sandboxes without containers, then the directories of removed pods. Attempts to remove
// a sandbox that cannot be removed are delayed, with doubling delays.
func (r *Runtime) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	policy = withDefaults(policy)
	pods, err := r.Pods(ctx)
	if err != nil {
		return err
	}
	var errs []error
	gone := map[string]bool{} // containers
	for _, d := range deadContainers(pods, policy, time.Now()) {
		if err := r.collect(ctx, d); err != nil {
			errs = append(errs, err)
			continue
		}
		r.log.Debug("Removed dead container", "pod", d.pod.Namespace+"/"+d.pod.Name, "podUID", d.pod.UID,
			"containerName", d.container.Name, "containerID", d.container.ID, "reason", d.reason)
		gone[d.container.ID] = true
	}
	sandboxes := deadSandboxes(pods, gone, policy)
	r.stuck.retain(sandboxes)
	for _, id := range sandboxes {
		if !r.stuck.due(id, time.Now()) {
			continue
		}
		err := r.removeSandbox(ctx, id)
		if r.stuck.tried(id, err != nil && ctx.Err() == nil, time.Now()); err != nil {
			errs = append(errs, err)
		}
	}
	if len(gone)+len(sandboxes) > 0 {
		if pods, err = r.Pods(ctx); err != nil {
			return errors.Join(append(errs, err)...)
		}
	}
	errs = append(errs, r.removeDirs(ctx, pods, policy.Keep))
	return errors.Join(append(errs, r.removeDeadLinks(pods))...) // also of the directories removed before
}

// withDefaults replaces nil functions of the policy.
func withDefaults(policy runtime.GCPolicy) runtime.GCPolicy {
	if policy.Keep == nil {
		policy.Keep = func(types.UID) bool { return true }
	}
	if policy.Terminated == nil {
		policy.Terminated = func(types.UID) bool { return false }
	}
	return policy
}

// A deadContainer is a container to remove.
type deadContainer struct {
	pod       *runtime.Pod
	container runtime.Container
	reason    string
}

// Reasons to remove a container, for the log.
const (
	reasonPodRemoved     = "pod removed"
	reasonPodTerminated  = "pod terminated, and space is needed"
	reasonNewerInstances = "newer instances exist"
	reasonAboveShare     = "too many dead containers on the node, and more than its share of this container"
	reasonOldest         = "too many dead containers on the node, and among the oldest"
)

// deadContainers returns the containers to remove, the oldest first.
func deadContainers(pods []*runtime.Pod, policy runtime.GCPolicy, now time.Time) []deadContainer {
	policy = withDefaults(policy)
	var remove []deadContainer
	units := map[unit][]deadContainer{} // the retained instances of each container, newest first
	for _, pod := range pods {
		why := ""
		switch {
		case !policy.Keep(pod.UID):
			why = reasonPodRemoved
		case policy.Terminated(pod.UID):
			why = reasonPodTerminated
		}
		newer := map[string]bool{} // containers with a newer instance
		for _, c := range pod.Containers {
			d, u, old := deadContainer{pod, c, why}, unit{pod.UID, c.Name}, newer[c.Name]
			newer[c.Name] = true
			switch {
			case c.State == runtime.ContainerRunning:
			case why != "":
				remove = append(remove, d)
			case now.Sub(c.CreatedAt) < policy.MinAge:
			case c.State == runtime.ContainerCreated && !old:
				// It is about to be started, unless a newer instance exists.
			case policy.MaxPerContainer >= 0 && len(units[u]) >= policy.MaxPerContainer:
				d.reason = reasonNewerInstances
				remove = append(remove, d)
			default:
				units[u] = append(units[u], d)
			}
		}
	}
	remove = append(remove, aboveLimit(units, policy.MaxContainers)...)
	slices.SortFunc(remove, oldest)
	return remove
}

// A unit is all instances of one container of one pod.
type unit struct {
	pod  types.UID
	name string
}

// aboveLimit returns the instances to remove so that at most limit remain on the node:
// first those above an equal share per unit, which is at least one, then the oldest (rule
// cg-4).
func aboveLimit(units map[unit][]deadContainer, limit int) []deadContainer {
	total := 0
	for _, kept := range units {
		total += len(kept)
	}
	if limit <= 0 || total <= limit {
		return nil
	}
	var remove, rest []deadContainer
	share := max(limit/len(units), 1)
	for _, kept := range units {
		n := min(len(kept), share)
		rest, remove = append(rest, kept[:n]...), append(remove, withReason(reasonAboveShare, kept[n:])...)
	}
	slices.SortFunc(rest, oldest)
	return append(remove, withReason(reasonOldest, rest[:max(len(rest)-limit, 0)])...)
}

func withReason(why string, all []deadContainer) []deadContainer {
	for i := range all {
		all[i].reason = why
	}
	return all
}

// oldest compares by creation time, then by ID.
func oldest(a, b deadContainer) int {
	return cmp.Or(a.container.CreatedAt.Compare(b.container.CreatedAt), cmp.Compare(a.container.ID, b.container.ID))
}

// deadSandboxes returns the IDs of the sandboxes to remove: those that are not ready and
// contain no remaining container, except the newest of a pod that has not been removed or
// terminated.
func deadSandboxes(pods []*runtime.Pod, gone map[string]bool, policy runtime.GCPolicy) []string {
	policy = withDefaults(policy)
	var ids []string
	for _, pod := range pods {
		used := map[string]bool{}
		for _, c := range pod.Containers {
			used[c.SandboxID] = used[c.SandboxID] || !gone[c.ID]
		}
		for i, s := range pod.Sandboxes {
			newest := i == 0
			if s.State == runtime.SandboxReady || used[s.ID] || newest && policy.Keep(pod.UID) && !policy.Terminated(pod.UID) {
				continue
			}
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// collect removes a dead container and its log.
func (r *Runtime) collect(ctx context.Context, d deadContainer) error {
	id := runtimeID(d.container.ID)
	if d.container.State == runtime.ContainerUnknown {
		if err := r.cfg.Runtime.StopContainer(r.quiet(ctx), id, leastGrace); err != nil && !isNotFound(err) {
			return fmt.Errorf("cri: stop container %s in unknown state: %w", id, err)
		}
	}
	status, err := r.containerStatus(ctx, id)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := r.releaseContainer(ctx, id); err != nil {
		return err
	}
	// The log is removed first, because only the container's status contains its path.
	if isBelow(r.podLogsOf(d.pod), status.LogPath) {
		if err := removeRotated(status.LogPath); err != nil {
			return fmt.Errorf("cri: remove the log of container %s: %w", id, err)
		}
	}
	r.removeLink(status.Labels, id)
	return r.removeContainer(ctx, d.pod.UID, status)
}

// releaseContainer notifies Managers that a container will not run again.
func (r *Runtime) releaseContainer(ctx context.Context, id string) error {
	if r.cfg.Providers.Managers == nil {
		return nil
	}
	if err := r.cfg.Providers.Managers.PostStop(ctx, r.id(id)); err != nil {
		return fmt.Errorf("cri: release resources of container %s: %w", id, err)
	}
	return nil
}

// removeContainer removes a container and its termination message file, but not its log.
func (r *Runtime) removeContainer(ctx context.Context, pod types.UID, status *runtimeapi.ContainerStatus) error {
	for _, m := range status.Mounts {
		if m.GetContainerPath() == status.Annotations[podconfig.AnnotationMessagePath] && isBelow(r.messageDirOf(pod), m.GetHostPath()) {
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
