package client

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/compose"
)

// A PodsConfig configures a Pods.
type PodsConfig struct {
	// Client reads the pods. Required, unless Feed is set.
	Client kubernetes.Interface

	// Feed provides the pods, for several nodes in one process with one watch. The caller
	// runs it. Nil: the Pods has its own watch.
	Feed *Feed

	// NodeName is the node of the pods. Required.
	NodeName string

	// Ready is closed when pods may be read: a node whose object is not known cannot admit
	// pods. If nil, they are read at once.
	Ready <-chan struct{}

	// Recovered is called when a watch is established after a failure: other retries need
	// not wait either; see [status.Manager.Retry]. It must not block. May be nil.
	Recovered func()

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger

	// Hooks are called for each change and failure.
	Hooks PodsHooks
}

// PodsHooks are called by a [Pods], on its goroutines. Each may be nil. They must not
// block.
type PodsHooks struct {
	// Set is called after the set was delivered, with its number of pods.
	Set func(pods int)

	// Failed is called when a list or watch has failed; it is retried with backoff.
	Failed func(error)
}

// Join returns PodsHooks that call the functions of h and then those of others, in order.
func (h PodsHooks) Join(others ...PodsHooks) PodsHooks {
	for _, o := range others {
		compose.Add(&h.Set, o.Set)
		compose.Add(&h.Failed, o.Failed)
	}
	return h
}

// Pods follows the pods that are bound to one node (rule src-33). It implements
// podsource.PodSource: each change delivers the complete set, changes in quick succession
// are combined, and nothing is delivered before the first list is complete (rule src-34).
//
// Statuses and Mirrors read the last pods of the API server from it.
type Pods struct {
	cfg PodsConfig

	mu      sync.Mutex // guards the fields below
	byName  map[types.NamespacedName]*v1.Pod
	byUID   map[types.UID]*v1.Pod
	synced  bool
	changed chan struct{} // closed at the next change
	retry   chan struct{} // capacity 1; ends the backoff
}

// NewPods returns a Pods, or an error if cfg is invalid. It starts nothing.
func NewPods(cfg PodsConfig) (*Pods, error) {
	switch {
	case cfg.Client == nil && cfg.Feed == nil:
		return nil, errors.New("client: PodsConfig.Client is nil")
	case cfg.NodeName == "":
		return nil, errors.New("client: PodsConfig.NodeName is empty")
	}
	cfg.Logger = quiet(cfg.Logger)
	return &Pods{cfg: cfg, changed: make(chan struct{}), retry: make(chan struct{}, 1)}, nil
}

// Retry ends the backoff of Run, since the API server is reachable again.
func (p *Pods) Retry() {
	select {
	case p.retry <- struct{}{}:
	default:
	}
}

// Run implements podsource.PodSource. It may be called again after it has returned, and
// then begins with the pods that it has.
func (p *Pods) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	if p.cfg.Ready != nil {
		select {
		case <-p.cfg.Ready:
		case <-ctx.Done():
			return nil
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if f := p.cfg.Feed; f != nil {
		f.join(p)
		defer f.leave(p)
		return p.deliver(ctx, set)
	}
	pods := p.cfg.Client.CoreV1().Pods(metav1.NamespaceAll)
	wg.Go(func() {
		follow(ctx, following[*v1.Pod]{
			selector:  fields.OneTermEqualSelector("spec.nodeName", p.cfg.NodeName).String(),
			list:      lister(pods.List),
			watch:     pods.Watch,
			lists:     noWatchList(p.cfg.Client),
			store:     p,
			failed:    p.failed,
			recovered: p.cfg.Recovered,
			retry:     p.retry,
		})
	})
	return p.deliver(ctx, set)
}

// deliver delivers the set after each change until ctx is done.
func (p *Pods) deliver(ctx context.Context, set func(pods []*v1.Pod)) error {
	for {
		list, synced, changed := p.current()
		if synced && ctx.Err() == nil {
			set(list)
			if p.cfg.Hooks.Set != nil {
				p.cfg.Hooks.Set(len(list))
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (p *Pods) failed(err error) {
	p.cfg.Logger.Warn("Failed to watch pods; the last pods remain; will retry", "node", p.cfg.NodeName, "err", err)
	if p.cfg.Hooks.Failed != nil {
		p.cfg.Hooks.Failed(err)
	}
}
