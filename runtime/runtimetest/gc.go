package runtimetest

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// CollectGarbage removes dead containers and sandboxes. See
// [runtime.GarbageCollector].
func (r *Runtime) CollectGarbage(ctx context.Context, policy runtime.GCPolicy) error {
	return r.call(ctx, "CollectGarbage", "", func() error {
		removed := r.removedPods(policy)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.collectLocked(policy, removed)
		return nil
	})
}

// removedPods calls the policy for each pod, without holding the lock.
func (r *Runtime) removedPods(policy runtime.GCPolicy) map[types.UID]bool {
	removed := map[types.UID]bool{}
	if policy.Keep == nil && policy.Terminated == nil {
		return removed
	}
	r.mu.Lock()
	for uid := range r.pods {
		removed[uid] = false
	}
	r.mu.Unlock()
	for uid := range removed {
		removed[uid] = policy.Keep != nil && !policy.Keep(uid) || policy.Terminated != nil && policy.Terminated(uid)
	}
	return removed
}

func (r *Runtime) collectLocked(policy runtime.GCPolicy, removed map[types.UID]bool) {
	var units [][]*instance // exited instances of one container of a pod, newest first
	gone := map[*instance]bool{}
	for _, p := range r.order {
		index := map[string]int{}
		for _, v := range slices.Backward(p.containers) {
			switch {
			case v.status.State != runtime.ContainerExited, time.Since(v.status.CreatedAt) < policy.MinAge:
				continue
			case removed[p.uid]:
				gone[v] = true
				continue
			}
			i, ok := index[v.status.Name]
			if !ok {
				i = len(units)
				index[v.status.Name] = i
				units = append(units, nil)
			}
			units[i] = append(units[i], v)
		}
	}
	for _, v := range surplus(units, policy) {
		gone[v] = true
	}

	// Over a copy: removeLocked deletes empty pods from r.order.
	for _, p := range slices.Clone(r.order) {
		r.removeLocked(p, func(v *instance) bool { return gone[v] }, deadSandbox(p, gone, removed[p.uid]))
	}
	r.sortLocked()
}

// surplus returns the instances beyond the limits of the policy.
func surplus(units [][]*instance, policy runtime.GCPolicy) []*instance {
	var out []*instance
	total := 0
	keep := func(n int) {
		total = 0
		for i, u := range units {
			n := min(n, len(u))
			out = append(out, u[n:]...)
			units[i] = u[:n]
			total += n
		}
	}
	if policy.MaxPerContainer >= 0 {
		keep(policy.MaxPerContainer)
	} else {
		keep(len(slices.Concat(units...)))
	}
	if policy.MaxContainers <= 0 || total <= policy.MaxContainers {
		return out
	}
	keep(max(1, policy.MaxContainers/len(units)))
	rest := slices.Concat(units...)
	slices.SortStableFunc(rest, func(a, b *instance) int { return a.status.CreatedAt.Compare(b.status.CreatedAt) })
	return append(out, rest[:max(0, total-policy.MaxContainers)]...)
}

// deadSandbox returns a function that reports whether a sandbox of p is removed:
// it is not ready, has no containers, and is not the newest of a pod that is not
// removed.
func deadSandbox(p *pod, gone map[*instance]bool, removed bool) func(*runtime.SandboxStatus) bool {
	used := map[string]bool{}
	for _, v := range p.containers {
		used[v.status.SandboxID] = used[v.status.SandboxID] || !gone[v]
	}
	var newest *runtime.SandboxStatus
	if n := len(p.sandboxes); n > 0 && !removed {
		newest = p.sandboxes[n-1]
	}
	return func(sb *runtime.SandboxStatus) bool {
		return sb != newest && sb.State != runtime.SandboxReady && !used[sb.ID]
	}
}
