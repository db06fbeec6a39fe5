package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

const (
	// jitter spreads the nodes of a cluster: each period is longer by up to
	// this part of it.
	jitter = 0.04

	// tries are made to update the status or the lease before the period ends
	// (ns-5, ls-2).
	tries = 5

	// The first status is not to wait for the period (ns-7).
	readyPeriod  = 100 * time.Millisecond
	readyTimeout = 2 * time.Minute

	// firstBackoff and maxBackoff of registering (ns-1) and, with another
	// start, of making the lease (ls-3).
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 7 * time.Second

	// rest is kept between a pass that was asked for and the one before it.
	rest = time.Second
)

// A Node keeps this machine's object in an API server. Make one with [New].
type Node struct {
	cfg   Config
	ran   atomic.Bool   // Run was called
	due   chan struct{} // a pass is wanted before its time
	known chan struct{} // closed when the object was first seen

	mu   sync.Mutex // guards the fields below
	seen *v1.Node   // as last read or written; nil: never
}

// Run registers the node and keeps its status and lease until ctx ends; then it
// returns nil. What fails is tried again for as long. A second call returns an error.
func (n *Node) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return errors.New("node: Node.Run was called before")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if n.cfg.Leases != nil {
		wg.Go(func() { n.lease(ctx) })
	}
	started := time.Now()
	if !n.register(ctx, started) {
		return nil
	}
	p := pass{n: n, started: started}
	if n.becomeReady(ctx, &p) != nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jittered(n.cfg.Period)):
		case <-n.due:
			if pause.For(ctx, rest) != nil {
				return nil
			}
		}
		p.run(ctx)
	}
}

// becomeReady reports the status as soon as the node is ready, without waiting
// for the period, and at each period in the meantime (ns-7). It returns ctx's
// error if that has ended.
func (n *Node) becomeReady(ctx context.Context, p *pass) error {
	p.run(ctx)
	for last := time.Now(); !p.ready && time.Since(p.started) < readyTimeout; {
		if pause.For(ctx, readyPeriod) != nil {
			return ctx.Err()
		}
		if n.cfg.Refresh != nil {
			n.cfg.Refresh(ctx)
		}
		if p.wouldBeReady(ctx) || time.Since(last) >= n.cfg.Period {
			p.run(ctx)
			last = time.Now()
		}
	}
	if p.ready && n.cfg.Hooks.Ready != nil {
		n.cfg.Hooks.Ready(time.Since(p.started))
	}
	return ctx.Err()
}

// Update asks for a look at the status before its time: a fact has changed that
// others should not learn ten seconds late. Many calls within a second are one.
// It never blocks, and may be called from anywhere.
func (n *Node) Update() {
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// Object is the node's object as it was last read or written, nil before the
// first time. It must not be changed.
func (n *Node) Object() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.seen
}

// Owner refers to the node's object as the owner of others: of mirror pods, of
// the lease. It reports false while the object is not known, or is being deleted.
func (n *Node) Owner() (metav1.OwnerReference, bool) {
	o := n.Object()
	if o == nil || o.UID == "" || o.DeletionTimestamp != nil {
		return metav1.OwnerReference{}, false
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: o.Name, UID: o.UID}, true
}

// saw keeps the object and tells of it.
func (n *Node) saw(o *v1.Node) {
	n.mu.Lock()
	first := n.seen == nil
	n.seen = o
	n.mu.Unlock()
	if first {
		close(n.known)
	}
	if n.cfg.Seen != nil {
		n.cfg.Seen(o)
	}
}

func (n *Node) record(events []runtime.Event) {
	if n.cfg.Record == nil {
		return
	}
	for _, e := range events {
		n.cfg.Record(e)
	}
}

func (n *Node) unreachable() {
	if n.cfg.Unreachable != nil {
		n.cfg.Unreachable()
	}
}

// call bounds one call of the API server.
func (n *Node) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, n.cfg.CallTimeout)
}

// jittered returns d and a random part of what others wait less.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*jitter*float64(d))
}
