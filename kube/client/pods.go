package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A PodsConfig says whose pods to follow.
type PodsConfig struct {
	// Client reads them. Required, unless there is a Feed.
	Client kubernetes.Interface

	// Feed brings them, for those who have many nodes in one process: one watch
	// for all of them. Its Run is the caller's. Nil: a watch of its own.
	Feed *Feed

	// NodeName is the node whose pods they are. Required.
	NodeName string

	// Ready waits until pods may be taken: a node whose object is not known
	// cannot admit any (src-33). Nil: at once. An error ends Run.
	Ready func(ctx context.Context) error

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger

	// Hooks observe; see there.
	Hooks PodsHooks
}

// PodsHooks observe a [Pods]. They are called on its goroutines and must be
// quick. Any may be nil.
type PodsHooks struct {
	// Set: the set has been delivered, with that many pods.
	Set func(pods int)

	// Failed: a list or a watch failed, and is tried again after a while.
	Failed func(error)

	// Recovered: a watch stands again after Failed. Others may know no better than
	// to wait; see [status.Manager.Retry].
	Recovered func()
}

// Pods follows the pods that are bound to one node, and no others (src-33). It
// is a podsource.PodSource: each change delivers the whole set, several quick
// ones deliver it once, and nothing is delivered before the first list is
// complete (src-34).
//
// What the API server said last is also there for a [Statuses] and a [Mirrors]
// to look at.
type Pods struct {
	cfg PodsConfig

	mu      sync.Mutex // guards the fields below
	byName  map[types.NamespacedName]*v1.Pod
	byUID   map[types.UID]*v1.Pod
	synced  bool
	changed chan struct{} // closed with the next change
	hurry   chan struct{} // capacity 1: there is no need to wait after a failure
}

// NewPods checks cfg and returns a Pods. It starts nothing.
func NewPods(cfg PodsConfig) (*Pods, error) {
	switch {
	case cfg.Client == nil && cfg.Feed == nil:
		return nil, errors.New("client: PodsConfig.Client is nil")
	case cfg.NodeName == "":
		return nil, errors.New("client: PodsConfig.NodeName is empty")
	}
	cfg.Logger = quiet(cfg.Logger)
	return &Pods{cfg: cfg, changed: make(chan struct{}), hurry: make(chan struct{}, 1)}, nil
}

// Retry says that the API server works again: if Run waits because it failed, it
// waits no longer.
func (p *Pods) Retry() {
	select {
	case p.hurry <- struct{}{}:
	default:
	}
}

// Run implements podsource.PodSource. It may be called again after it has
// returned, and then goes on with what it knew.
func (p *Pods) Run(ctx context.Context, set func(pods []*v1.Pod)) error {
	if p.cfg.Ready != nil {
		if err := p.cfg.Ready(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("client: wait until pods may be taken: %w", err)
		}
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if f := p.cfg.Feed; f != nil {
		f.join(p)
		defer f.leave(p)
		return p.tell(ctx, set)
	}
	pods := p.cfg.Client.CoreV1().Pods(metav1.NamespaceAll)
	wg.Go(func() {
		follow(ctx, following[*v1.Pod]{
			selector: fields.OneTermEqualSelector("spec.nodeName", p.cfg.NodeName).String(),
			list:     lister(pods.List),
			watch:    pods.Watch,
			store:    p,
			failed:   p.failed,
			again:    p.cfg.Hooks.Recovered,
			hurry:    p.hurry,
		})
	})
	return p.tell(ctx, set)
}

// tell delivers the set with each change until ctx ends.
func (p *Pods) tell(ctx context.Context, set func(pods []*v1.Pod)) error {
	for {
		list, synced, changed := p.look()
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
	p.cfg.Logger.Warn("pods of the API server, what was read last stays", "node", p.cfg.NodeName, "err", err)
	if p.cfg.Hooks.Failed != nil {
		p.cfg.Hooks.Failed(err)
	}
}
