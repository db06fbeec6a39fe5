package runtimetest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

// The powers it has are those that agents need to run pods.
var (
	_ runtime.Runtime          = (*Runtime)(nil)
	_ runtime.Checker          = (*Runtime)(nil)
	_ runtime.Watcher          = (*Runtime)(nil)
	_ runtime.Execer           = (*Runtime)(nil)
	_ runtime.StreamExecer     = (*Runtime)(nil)
	_ runtime.GarbageCollector = (*Runtime)(nil)
)

// A Runtime runs pods in memory, as the kubelet would run them: nothing is
// executed, but what is listed, and when, is what a node would show. The zero
// value is an empty node, ready for use. All methods may be called at any time
// from any goroutine. It must not be copied.
type Runtime struct {
	// Backoff is the delay before the second restart of a container that
	// exits again and again; it doubles with each restart, up to 30 times
	// itself (rt-91; the kubelet's is 10 s). Zero: a container is restarted by
	// the next SyncPod. Not to be changed once the runtime is in use.
	Backoff time.Duration

	// Observe is told every change of what there is, as it happens and in order:
	// the truth, which no injected fault touches. It is called under the
	// Runtime's lock, so it must not call the Runtime. Nil: nobody is told. Not
	// to be changed once the runtime is in use.
	Observe func(Change)

	// Decide says how a container of a pod behaves at its next start, before what
	// Behave was told counts; it reports false if it does not care. It is asked at
	// each try to start one, from many goroutines at once, and may not change what
	// it is given. Nil: Behave alone counts. Not to be changed once the runtime is
	// in use.
	Decide func(pod *v1.Pod, c *v1.Container) (Behaviour, bool)

	// Address returns the address of a new sandbox: pods of several Runtimes that
	// make up a cluster should not share theirs. It is called under the Runtime's
	// lock. Nil: 10.0.0.1 and so on. Not to be changed once the runtime is in use.
	Address func() string

	mu         sync.Mutex
	pods       map[types.UID]*pod
	order      []*pod               // the values of pods, oldest first
	instances  map[string]*instance // of all pods, by ID
	ids        int                  // last number given to an ID
	addresses  int                  // last number given to an IP
	behaviours map[string]Behaviour
	inject     func(Call) Fault
	past       []past // what lists showed, oldest first; kept since the first Inject
	health     runtime.Health
	watchers   map[*watcher]struct{}
}

// Pods lists every pod, newest first. See [runtime.Lister].
func (r *Runtime) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	var out []*runtime.Pod
	err := r.callAged(ctx, Call{Method: "Pods"}, func(age time.Duration) error {
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

// listLocked makes the list in one pass over what there is and in a handful of
// allocations, however many pods there are: benchmarks of callers should
// measure the callers. The pods' slices are parts of two common arrays, capped
// so that appending to one cannot reach its neighbour.
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
	err := r.call(ctx, Call{Method: "PodStatus", UID: uid}, func() error {
		// Before the lock: what others do while we wait for it is then seen,
		// but not promised.
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
		out.IPs = slices.Clone(sb.IPs) // rt-8
	}
	return out
}

// Check answers what [Runtime.SetHealth] was told; a new runtime is healthy.
func (r *Runtime) Check(ctx context.Context) (runtime.Health, error) {
	var out runtime.Health
	err := r.call(ctx, Call{Method: "Check"}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		out = r.health
		return nil
	})
	return out, err
}

// sortLocked restores the order of r.order after things were removed: the age
// of a pod is that of the oldest thing it still has.
func (r *Runtime) sortLocked() {
	slices.SortStableFunc(r.order, func(a, b *pod) int {
		return a.createdAt().Compare(b.createdAt())
	})
}
