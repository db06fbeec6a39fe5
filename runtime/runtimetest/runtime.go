package runtimetest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The optional interfaces that agents require to run pods.
var (
	_ runtime.Runtime          = (*Runtime)(nil)
	_ runtime.Checker          = (*Runtime)(nil)
	_ runtime.Watcher          = (*Runtime)(nil)
	_ runtime.Execer           = (*Runtime)(nil)
	_ runtime.StreamExecer     = (*Runtime)(nil)
	_ runtime.GarbageCollector = (*Runtime)(nil)
)

// A Runtime runs pods in memory. It executes nothing, but lists the sandboxes
// and containers that a node would list at that time. The zero value is an empty
// node, ready for use. Safe for concurrent use. It must not be copied, and its
// fields must not be changed after the first call of a method.
type Runtime struct {
	// Backoff is the delay before the second restart of a container that exits
	// repeatedly. It doubles with each restart, up to 30 times Backoff. The
	// kubelet's is 10 s. Zero means that the next SyncPod restarts a container.
	Backoff time.Duration

	// Observe is called for each change of the state, in order, regardless of
	// injected faults. It is called with the Runtime's lock held, so it must not
	// call the Runtime. May be nil.
	Observe func(Change)

	// Decide returns the behavior of a container from its next start on. It
	// takes precedence over Behave; if it returns nil, Behave applies. It is
	// called for each attempt to start a container, possibly concurrently, and
	// must not modify its arguments, nor its result later. If nil, Behave applies.
	Decide func(pod *v1.Pod, c *v1.Container) *fake.Behavior

	// Address returns the IP address of a new sandbox. The Runtimes of one
	// cluster should return disjoint addresses. It is called with the Runtime's
	// lock held. If nil, addresses are assigned from 10.0.0.1 up.
	Address func() string

	mu        sync.Mutex
	pods      map[types.UID]*pod
	order     []*pod               // the values of pods, oldest first
	instances map[string]*instance // of all pods, by ID
	ids       int                  // number in the last ID
	addresses int                  // number of the last IP
	behaviors map[string]*fake.Behavior
	calls     map[string]int // number of calls of each method with an injected fault
	inject    func(fake.Call) fake.Fault
	snapshots []snapshot // earlier lists, oldest first; recorded since the first Inject
	health    runtime.Health
	watchers  map[*watcher]struct{}
}

// Pods lists every pod, newest first. See [runtime.Lister].
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	var out []*runtime.Pod
	err := r.callAged(ctx, "Pods", "", func(age time.Duration) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if age > 0 {
			out = r.agedLocked(age)
		} else {
			out = r.listLocked()
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// listLocked lists all pods with a constant number of allocations, so that
// benchmarks measure the caller. The pods' slices share two arrays and are
// capped, so that appending to one does not overwrite the next.
func (r *Runtime) listLocked() []*runtime.Pod {
	nSandboxes, nContainers := 0, 0
	for _, p := range r.order {
		nSandboxes += len(p.sandboxes)
		nContainers += len(p.containers)
	}
	out := make([]*runtime.Pod, len(r.order))
	pods := make([]runtime.Pod, len(r.order))
	sandboxes := make([]runtime.Sandbox, 0, nSandboxes)
	containers := make([]runtime.Container, 0, nContainers)
	for i, p := range r.order {
		s, c := len(sandboxes), len(containers)
		for _, sb := range slices.Backward(p.sandboxes) {
			sandboxes = append(sandboxes, runtime.Sandbox{
				ID: sb.ID, State: sb.State, Attempt: sb.Attempt, CreatedAt: sb.CreatedAt,
			})
		}
		for _, v := range slices.Backward(p.containers) {
			containers = append(containers, runtime.Container{
				ID: v.status.ID, Name: v.status.Name, SandboxID: v.status.SandboxID, State: v.status.State,
				Attempt: uint32(v.status.RestartCount), CreatedAt: v.status.CreatedAt,
			})
		}
		pods[i] = runtime.Pod{
			UID: p.uid, Name: p.name, Namespace: p.namespace, Source: p.source,
			CreatedAt:  p.createdAt(),
			Sandboxes:  sandboxes[s:len(sandboxes):len(sandboxes)],
			Containers: containers[c:len(containers):len(containers)],
		}
		out[len(out)-1-i] = &pods[i]
	}
	return out
}

// PodStatus inspects one pod. See [runtime.Lister].
func (r *Runtime) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	var out *runtime.PodStatus
	err := r.call(ctx, "PodStatus", uid, func() error {
		// Before the lock is acquired: changes made while waiting for it may be
		// included, but ObservedAt must not requirement them.
		observed := time.Now()
		r.mu.Lock()
		defer r.mu.Unlock()
		out = r.statusLocked(uid)
		out.ObservedAt = observed
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (r *Runtime) statusLocked(uid types.UID) *runtime.PodStatus {
	out := &runtime.PodStatus{UID: uid}
	p := r.pods[uid]
	if p == nil {
		return out
	}
	out.Name, out.Namespace, out.Source = p.name, p.namespace, p.source
	for _, sb := range slices.Backward(p.sandboxes) {
		sb := *sb
		sb.IPs = slices.Clone(sb.IPs)
		out.Sandboxes = append(out.Sandboxes, sb)
	}
	for _, v := range slices.Backward(p.containers) {
		out.Containers = append(out.Containers, v.status)
	}
	if sb := p.readySandbox(); sb != nil {
		out.IPs = slices.Clone(sb.IPs)
	}
	return out
}

// Check returns the health that [Runtime.SetHealth] set; a new Runtime is
// healthy.
func (r *Runtime) Check(ctx context.Context) (runtime.Health, error) {
	var out runtime.Health
	err := r.call(ctx, "Check", "", func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		out = r.health
		return nil
	})
	return out, err
}

// sortLocked restores the order of r.order after removals, which can change the
// creation time of a pod.
func (r *Runtime) sortLocked() {
	slices.SortStableFunc(r.order, func(a, b *pod) int {
		return a.createdAt().Compare(b.createdAt())
	})
}
