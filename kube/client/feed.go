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

// A FeedConfig says whom to ask for pods.
type FeedConfig struct {
	// Client reads the pods of the whole cluster. Required.
	Client kubernetes.Interface

	// Saw is told that a pod, of whatever node or of none, has been read anew, on
	// the Feed's goroutine; gone: it is no longer there. Nil: nobody cares.
	Saw func(pod *v1.Pod, gone bool)

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there. Set is not called: it is each Pods' own.
	Hooks PodsHooks
}

// A Feed follows the pods of a whole cluster by one watch, for many nodes that live
// in one process: a [Pods] whose PodsConfig.Feed it is has no watch of its own.
// With most pods of the cluster being those of these nodes this costs the server
// one watch instead of one for each node. A node that is alone on its machine has
// no use for it: it would be told of everybody's pods.
type Feed struct {
	cfg FeedConfig
	ran atomic.Bool // Run was called

	mu     sync.Mutex // guards the fields below; held while a Pods' own is taken
	pods   map[types.UID]*v1.Pod
	nodes  map[string]*Pods
	synced bool
}

// NewFeed checks cfg and returns a Feed. It starts nothing.
func NewFeed(cfg FeedConfig) (*Feed, error) {
	if cfg.Client == nil {
		return nil, errors.New("client: FeedConfig.Client is nil")
	}
	cfg.Logger = quiet(cfg.Logger)
	return &Feed{cfg: cfg, pods: map[types.UID]*v1.Pod{}, nodes: map[string]*Pods{}}, nil
}

// Run follows the pods until ctx is done; then it returns nil. A second call returns
// an error.
func (f *Feed) Run(ctx context.Context) error {
	if f.ran.Swap(true) {
		return errors.New("client: Feed.Run was called before")
	}
	pods := f.cfg.Client.CoreV1().Pods(metav1.NamespaceAll)
	follow(ctx, following[*v1.Pod]{
		list:   lister(pods.List),
		watch:  pods.Watch,
		store:  f,
		failed: f.failed,
		again:  f.cfg.Hooks.Recovered,
	})
	return nil
}

// Pods returns all pods that were read last, in no order, and whether any have
// been read. They are shared: nobody changes them.
func (f *Feed) Pods() ([]*v1.Pod, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.pods)), f.synced
}

func (f *Feed) failed(err error) {
	f.cfg.Logger.Warn("pods of the API server, what was read last stays", "err", err)
	if f.cfg.Hooks.Failed != nil {
		f.cfg.Hooks.Failed(err)
	}
}

// join gives p the pods of its node from now on.
func (f *Feed) join(p *Pods) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[p.cfg.NodeName] = p
	if !f.synced {
		return
	}
	var list []*v1.Pod
	for _, pod := range f.pods {
		if pod.Spec.NodeName == p.cfg.NodeName {
			list = append(list, pod)
		}
	}
	p.replace(list)
}

// leave ends that.
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
	f.pods, f.synced = make(map[types.UID]*v1.Pod, len(list)), true
	of := map[string][]*v1.Pod{}
	for _, pod := range list {
		f.pods[pod.UID] = pod
		of[pod.Spec.NodeName] = append(of[pod.Spec.NodeName], pod)
		delete(gone, pod.UID)
	}
	for name, p := range f.nodes {
		p.replace(of[name])
	}
	f.mu.Unlock()
	for _, pod := range gone {
		f.saw(pod, true)
	}
	for _, pod := range list {
		f.saw(pod, false)
	}
}

// put implements store.
func (f *Feed) put(pod *v1.Pod) {
	f.mu.Lock()
	f.pods[pod.UID] = pod
	if p := f.nodes[pod.Spec.NodeName]; p != nil {
		p.put(pod)
	}
	f.mu.Unlock()
	f.saw(pod, false)
}

// drop implements store.
func (f *Feed) drop(pod *v1.Pod) {
	f.mu.Lock()
	delete(f.pods, pod.UID)
	if p := f.nodes[pod.Spec.NodeName]; p != nil {
		p.drop(pod)
	}
	f.mu.Unlock()
	f.saw(pod, true)
}

func (f *Feed) saw(pod *v1.Pod, gone bool) {
	if f.cfg.Saw != nil {
		f.cfg.Saw(pod, gone)
	}
}
