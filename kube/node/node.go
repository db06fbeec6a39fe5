package node

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
	"github.com/kubeparts/kubeparts/runtime"
)

const (
	// jitter is the largest fraction by which a period is extended, so that nodes do not
	// report at the same time.
	jitter = 0.04

	// attempts are made to update the status or the lease in each period
	// (rules ns-5, ls-2).
	attempts = 5

	// The node is reported as ready without waiting for the period (rule ns-7).
	readyPeriod  = 100 * time.Millisecond
	readyTimeout = 2 * time.Minute

	// Backoff of the registration (rule ns-1). maxBackoff is also the limit for the lease
	// (rule ls-3).
	firstBackoff = 100 * time.Millisecond
	maxBackoff   = 7 * time.Second

	// maxOwnerAge is the age up to which a Node object is used as the owner of a new lease
	// without reading it again.
	maxOwnerAge = time.Second

	// updateDelay is the time from Update until the status is computed.
	updateDelay = time.Second
)

// A Node registers a node, and reports its status and lease. Use [New].
type Node struct {
	cfg        Config
	ran        atomic.Bool   // Run was called
	due        chan struct{} // Update was called
	registered chan struct{} // closed when the API server has returned the object

	leaseFailed bool // the last attempt to renew the lease failed; used by renewLease only

	reporting sync.Mutex // held during a call of Config.Observed

	mu      sync.Mutex // guards the fields below
	object  *v1.Node   // as last read or written; nil: never
	read    time.Time  // of object
	missing bool       // the object was deleted since
}

// Run registers the node, and reports its status and lease until ctx is done; it then
// returns nil. Failures are retried. It returns an error if it was called before.
func (n *Node) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return errors.New("node: Node.Run was called before")
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	if n.cfg.Leases != nil {
		wg.Go(func() { n.renewLease(ctx) })
	}
	started := time.Now()
	if !n.register(ctx, started) {
		return nil
	}
	p := statusUpdate{n: n, started: started}
	if n.becomeReady(ctx, &p) != nil {
		return nil
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(jittered(n.cfg.Timing.UpdatePeriod)):
		case <-n.due:
			if pause.For(ctx, updateDelay) != nil {
				return nil
			}
		}
		p.run(ctx)
	}
}

// becomeReady reports the status as soon as the node is ready, without waiting for the
// period, and at each period until then (rule ns-7). It returns the error of ctx if it is
// done.
func (n *Node) becomeReady(ctx context.Context, p *statusUpdate) error {
	p.run(ctx)
	for last := time.Now(); !p.ready && time.Since(p.started) < readyTimeout; {
		if pause.For(ctx, readyPeriod) != nil {
			return ctx.Err()
		}
		if n.cfg.Refresh != nil {
			n.cfg.Refresh(ctx)
		}
		if p.wouldBeReady(ctx) || time.Since(last) >= n.cfg.Timing.UpdatePeriod {
			p.run(ctx)
			last = time.Now()
		}
	}
	if p.ready && n.cfg.Hooks.Ready != nil {
		n.cfg.Hooks.Ready(time.Since(p.started))
	}
	return ctx.Err()
}

// Update causes the status to be computed before the end of the period, since facts have
// changed. Calls within a second are combined. It does not block and is safe for concurrent
// use.
func (n *Node) Update() {
	select {
	case n.due <- struct{}{}:
	default:
	}
}

// Object returns the Node object as last read or written; nil if there was none. It must
// not be modified.
func (n *Node) Object() *v1.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.object
}

// Owner returns the [OwnerReference] to the Node object, for mirror pods and the lease. It
// reports false also if the object is unknown or was deleted.
func (n *Node) Owner() (metav1.OwnerReference, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.missing {
		return metav1.OwnerReference{}, false
	}
	return OwnerReference(n.object)
}

// observed stores an object that the API server has returned.
func (n *Node) observed(o *v1.Node) {
	n.mu.Lock()
	first := n.object == nil
	n.object, n.read, n.missing = o, time.Now(), false
	n.mu.Unlock()
	if first {
		close(n.registered)
	}
	n.report(o)
}

// report calls Config.Observed.
func (n *Node) report(o *v1.Node) {
	n.reporting.Lock()
	defer n.reporting.Unlock()
	if n.cfg.Observed != nil {
		n.cfg.Observed(o)
	}
}

// observedMissing stores that the API server, not only its watch cache, does not have the
// object.
func (n *Node) observedMissing() {
	n.mu.Lock()
	isNew := n.object != nil && !n.missing
	n.missing = true
	n.mu.Unlock()
	if !isNew {
		return
	}
	n.cfg.Logger.Warn("Node object was deleted; lease and mirror pods are not created without it", "node", n.cfg.Spec.Name)
	n.report(nil)
}

// ensureOwner returns an owner reference to the Node object, which it reads if it may be
// outdated, since it is otherwise read only in each period of the status.
func (n *Node) ensureOwner(ctx context.Context) (metav1.OwnerReference, bool, error) {
	n.mu.Lock()
	current := n.object == nil || !n.missing && time.Since(n.read) < maxOwnerAge
	n.mu.Unlock()
	if current {
		owner, ok := n.Owner()
		return owner, ok, nil
	}
	is, err := n.cfg.Nodes.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		n.observedMissing()
		return metav1.OwnerReference{}, false, nil
	case err != nil:
		return metav1.OwnerReference{}, false, fmt.Errorf("node: get: %w", err)
	}
	owner, ok := OwnerReference(is)
	return owner, ok, nil
}

// OwnerReference returns an owner reference to a Node object. It reports false if the object
// is nil, has no UID, or is being deleted: what it would own would be garbage collected at
// once.
func OwnerReference(n *v1.Node) (metav1.OwnerReference, bool) {
	if n == nil || n.UID == "" || n.DeletionTimestamp != nil {
		return metav1.OwnerReference{}, false
	}
	return metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID}, true
}

// record records events about the node. Their UID is that of the object, as with the kubelet
// since 1.37; before, it was the name. kubectl describe node selects events by both.
func (n *Node) record(object *v1.Node, events []runtime.Event) {
	if n.cfg.Record == nil {
		return
	}
	for _, e := range events {
		e.Object.UID = object.UID
		n.cfg.Record(e)
	}
}

func (n *Node) unreachable() {
	if n.cfg.Connection.Unreachable != nil {
		n.cfg.Connection.Unreachable()
	}
}

// call returns a context for one call of the API server.
func (n *Node) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, n.cfg.Timing.CallTimeout)
}

// jittered returns d plus a random part of it.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration(rand.Float64()*jitter*float64(d))
}
