package pleg_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/pleg"
	"github.com/kubeparts/kubeparts/runtime"
)

// A node is a runtime.Lister whose containers are set by the test. It has a
// configurable latency, fails or hangs on demand, and counts its calls.
type node struct {
	mu    sync.Mutex
	clock time.Time // when the next thing is created
	pods  map[types.UID]*runtime.PodStatus

	listErr     error
	listTakes   time.Duration
	hangLists   bool
	inspectErr  map[types.UID]error
	inspectTake map[types.UID]time.Duration // "" is any other pod
	hang        map[types.UID]bool          // inspections return only when their context is done

	lists       []time.Time // when each began
	inspections map[types.UID]int
	busy, peak  int // current and maximum number of inspections
}

func newNode() *node {
	return &node{
		clock:       time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC),
		pods:        make(map[types.UID]*runtime.PodStatus),
		inspectErr:  make(map[types.UID]error),
		inspectTake: make(map[types.UID]time.Duration),
		hang:        make(map[types.UID]bool),
		inspections: make(map[types.UID]int),
	}
}

// do changes the node.
func (n *node) do(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

// set puts a container, and its pod, into a state. IDs that begin with "sb"
// are sandboxes.
func (n *node) set(uid types.UID, id string, s runtime.ContainerState) {
	n.do(func() {
		n.clock = n.clock.Add(time.Second)
		p := n.pods[uid]
		if p == nil {
			p = &runtime.PodStatus{UID: uid, Name: string(uid), Namespace: "default"}
			n.pods[uid] = p
		}
		if strings.HasPrefix(id, "sb") {
			state := map[runtime.ContainerState]runtime.SandboxState{
				runtime.ContainerRunning: runtime.SandboxReady,
				runtime.ContainerExited:  runtime.SandboxNotReady,
			}[s]
			if i := slices.IndexFunc(p.Sandboxes, func(c runtime.SandboxStatus) bool { return c.ID == id }); i >= 0 {
				p.Sandboxes[i].State = state
				return
			}
			p.Sandboxes = slices.Insert(p.Sandboxes, 0, runtime.SandboxStatus{ID: id, State: state, CreatedAt: n.clock})
			return
		}
		if i := slices.IndexFunc(p.Containers, func(c runtime.ContainerStatus) bool { return c.ID == id }); i >= 0 {
			p.Containers[i].State = s
			return
		}
		p.Containers = slices.Insert(p.Containers, 0, runtime.ContainerStatus{ID: id, Name: id, State: s, CreatedAt: n.clock})
	})
}

func (n *node) start(uid types.UID, id string) { n.set(uid, id, runtime.ContainerRunning) }
func (n *node) exit(uid types.UID, id string)  { n.set(uid, id, runtime.ContainerExited) }

// remove drops a container or a sandbox, and the pod with its last.
func (n *node) remove(uid types.UID, id string) {
	n.do(func() {
		p := n.pods[uid]
		if p == nil {
			return
		}
		p.Containers = slices.DeleteFunc(p.Containers, func(c runtime.ContainerStatus) bool { return c.ID == id })
		p.Sandboxes = slices.DeleteFunc(p.Sandboxes, func(c runtime.SandboxStatus) bool { return c.ID == id })
		if len(p.Containers) == 0 && len(p.Sandboxes) == 0 {
			delete(n.pods, uid)
		}
	})
}

// wait sleeps for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func clone(p *runtime.PodStatus) *runtime.PodStatus {
	c := *p
	c.Sandboxes = slices.Clone(p.Sandboxes)
	c.Containers = slices.Clone(p.Containers)
	c.IPs = slices.Clone(p.IPs)
	return &c
}

// Pods returns the state in the middle of its latency.
func (n *node) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	n.mu.Lock()
	n.lists = append(n.lists, time.Now())
	takes, hang := n.listTakes, n.hangLists
	n.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := wait(ctx, takes/2); err != nil {
		return nil, err
	}
	n.mu.Lock()
	err := n.listErr
	var pods []*runtime.Pod
	for _, uid := range slices.Sorted(maps.Keys(n.pods)) {
		pods = append(pods, n.pods[uid].Pod())
	}
	n.mu.Unlock()
	slices.SortFunc(pods, func(a, b *runtime.Pod) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.UID, b.UID))
	})
	if err := wait(ctx, takes/2); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return pods, nil
}

// PodStatus returns the state in the middle of its latency.
func (n *node) PodStatus(ctx context.Context, uid types.UID) (*runtime.PodStatus, error) {
	n.mu.Lock()
	n.inspections[uid]++
	n.busy++
	n.peak = max(n.peak, n.busy)
	at := time.Now()
	takes, ok := n.inspectTake[uid]
	if !ok {
		takes = n.inspectTake[""]
	}
	hang := n.hang[uid]
	n.mu.Unlock()
	defer n.do(func() { n.busy-- })
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if err := wait(ctx, takes/2); err != nil {
		return nil, err
	}
	n.mu.Lock()
	err := n.inspectErr[uid]
	status := &runtime.PodStatus{UID: uid}
	if p := n.pods[uid]; p != nil {
		status = clone(p)
	}
	n.mu.Unlock()
	status.ObservedAt = at
	if err := wait(ctx, takes/2); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return status, nil
}

// inspected returns how often uid was inspected.
func (n *node) inspected(uid types.UID) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.inspections[uid]
}

// listed returns when each list began.
func (n *node) listed() []time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.lists)
}

// A listener is a Handle that records events.
type listener struct {
	mu     sync.Mutex
	events []string
}

func (l *listener) handle(e pleg.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e.String())
}

// take returns the events since the last take.
func (l *listener) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.events
	l.events = nil
	return events
}

var errRefused = errors.New("refused")

// newGenerator fills in n and l, and fails t on error.
func newGenerator(t *testing.T, n runtime.Lister, l *listener, cfg pleg.Config) *pleg.Generator {
	t.Helper()
	cfg.Runtime = n
	if l != nil {
		cfg.Handle = l.handle
	}
	g, err := pleg.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// run runs g until the test or the returned function ends it, and fails t if
// Run does not then return nil.
func run(t *testing.T, g *pleg.Generator) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run returned %v", err)
		}
	}
}
