package client

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A FeedConfig configures a Feed.
type FeedConfig struct {
	// Client reads the pods of the whole cluster. Required.
	Client kubernetes.Interface

	// Observed is called with each pod of the cluster that is added or changed, or, with
	// deleted, that no longer exists. It is called on the goroutine of the Feed and must
	// not block. May be nil.
	Observed func(pod *v1.Pod, deleted bool)

	// Recovered is called when a watch is established after a failure: other retries need
	// not wait either; see [status.Manager.Retry]. It must not block. May be nil.
	Recovered func()

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called for each failure; Set is called by each Pods instead.
	Hooks PodsHooks
}

// A Feed follows the pods of a whole cluster with one watch, for several nodes in one
// process: a [Pods] with PodsConfig.Feed has no watch of its own. If most pods of the
// cluster belong to these nodes, this reduces the load of the server to one watch. A single
// node should not use it, since it receives the pods of all nodes.
type Feed struct {
	cfg FeedConfig
	ran atomic.Bool // Run was called

	mu     sync.Mutex // guards the fields below; locked before that of a Pods
	pods   map[types.UID]*v1.Pod
	byNode map[string]map[types.UID]*v1.Pod // of pods, those that are bound
	nodes  map[string]*Pods
	synced bool
}

// NewFeed returns a Feed, or an error if cfg is invalid. It starts nothing.
func NewFeed(cfg FeedConfig) (*Feed, error) {
	if cfg.Client == nil {
		return nil, errors.New("client: FeedConfig.Client is nil")
	}
	cfg.Logger = quiet(cfg.Logger)
	return &Feed{cfg: cfg, pods: map[types.UID]*v1.Pod{}, byNode: map[string]map[types.UID]*v1.Pod{}, nodes: map[string]*Pods{}}, nil
}

// Run follows the pods until ctx is done; then it returns nil. It returns an error if it
// was called before.
func (f *Feed) Run(ctx context.Context) error {
	if f.ran.Swap(true) {
		return errors.New("client: Feed.Run was called before")
	}
	pods := f.cfg.Client.CoreV1().Pods(metav1.NamespaceAll)
	follow(ctx, following[*v1.Pod]{
		list:      lister(pods.List),
		watch:     pods.Watch,
		lists:     noWatchList(f.cfg.Client),
		store:     f,
		failed:    f.failed,
		recovered: f.cfg.Recovered,
	})
	return nil
}

// Pods returns all pods as last read, in no particular order, and whether they were read.
// They are shared and must not be modified.
func (f *Feed) Pods() ([]*v1.Pod, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.pods)), f.synced
}

func (f *Feed) failed(err error) {
	f.cfg.Logger.Warn("Failed to watch pods; the last pods remain; will retry", "err", err)
	if f.cfg.Hooks.Failed != nil {
		f.cfg.Hooks.Failed(err)
	}
}

// join adds p, which receives the pods of its node.
func (f *Feed) join(p *Pods) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[p.cfg.NodeName] = p
	if f.synced {
		p.replace(slices.Collect(maps.Values(f.byNode[p.cfg.NodeName])))
	}
}

// leave removes p.
func (f *Feed) leave(p *Pods) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes[p.cfg.NodeName] == p {
		delete(f.nodes, p.cfg.NodeName)
	}
}

// replace implements store.
func (f *Feed) replace(list []*v1.Pod) {
	f.mu.Lock()
	gone := f.pods
	f.pods, f.byNode, f.synced = make(map[types.UID]*v1.Pod, len(list)), map[string]map[types.UID]*v1.Pod{}, true
	for _, pod := range list {
		share(pod, gone[pod.UID])
		f.addLocked(pod)
		delete(gone, pod.UID)
	}
	for name, p := range f.nodes {
		p.replace(slices.Collect(maps.Values(f.byNode[name])))
	}
	f.mu.Unlock()
	for _, pod := range gone {
		f.observed(pod, true)
	}
	for _, pod := range list {
		f.observed(pod, false)
	}
}

// put implements store.
func (f *Feed) put(pod *v1.Pod) {
	f.mu.Lock()
	f.addLocked(pod)
	if p := f.nodes[pod.Spec.NodeName]; p != nil {
		p.put(pod)
	}
	f.mu.Unlock()
	f.observed(pod, false)
}

// drop implements store.
func (f *Feed) drop(pod *v1.Pod) {
	f.mu.Lock()
	f.removeLocked(pod.UID)
	if p := f.nodes[pod.Spec.NodeName]; p != nil {
		p.drop(pod)
	}
	f.mu.Unlock()
	f.observed(pod, true)
}

// addLocked adds or replaces a pod. A pod that was not bound may be bound now.
func (f *Feed) addLocked(pod *v1.Pod) {
	was := f.pods[pod.UID]
	share(pod, was)
	if was != nil && was.Spec.NodeName != pod.Spec.NodeName {
		f.removeLocked(pod.UID)
	}
	f.pods[pod.UID] = pod
	node := pod.Spec.NodeName
	if node == "" {
		return
	}
	if f.byNode[node] == nil {
		f.byNode[node] = map[types.UID]*v1.Pod{}
	}
	f.byNode[node][pod.UID] = pod
}

func (f *Feed) removeLocked(uid types.UID) {
	was := f.pods[uid]
	if was == nil {
		return
	}
	delete(f.pods, uid)
	of := f.byNode[was.Spec.NodeName]
	if delete(of, uid); len(of) == 0 {
		delete(f.byNode, was.Spec.NodeName)
	}
}

func (f *Feed) observed(pod *v1.Pod, deleted bool) {
	if f.cfg.Observed != nil {
		f.cfg.Observed(pod, deleted)
	}
}
