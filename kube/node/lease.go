package node

import (
	"context"
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/internal/pause"
)

const (
	leaseNamespace = "kube-node-lease"
	leaseBackoff   = 200 * time.Millisecond
	renewalsPerDur = 4 // how often a lease is renewed while it holds (ls-2)
)

// lease keeps the node's lease until ctx ends (ls-1 … ls-4).
func (n *Node) lease(ctx context.Context) {
	var last *coordinationv1.Lease // as last written or read; nil: to be looked for
	for {
		last = n.renew(ctx, last)
		if pause.For(ctx, jittered(n.cfg.LeaseDuration/renewalsPerDur)) != nil {
			return
		}
	}
}

// renew renews the lease once, and makes it if it is not there. It returns the
// lease as it is now, nil if that is not known.
func (n *Node) renew(ctx context.Context, last *coordinationv1.Lease) *coordinationv1.Lease {
	if last != nil {
		if now := n.tryRenew(ctx, last); now != nil || ctx.Err() != nil {
			return now
		}
		// Perhaps somebody else changed it, or took it away.
	}
	now, fresh := n.ensureLease(ctx)
	if now == nil || fresh {
		return now
	}
	return n.tryRenew(ctx, now)
}

// tryRenew writes the lease without reading it. On a conflict, or after a few
// failures, it gives up and returns nil.
func (n *Node) tryRenew(ctx context.Context, last *coordinationv1.Lease) *coordinationv1.Lease {
	for try := range tries {
		callCtx, cancel := n.call(ctx)
		now, err := n.cfg.Leases.Update(callCtx, n.renewed(last), metav1.UpdateOptions{})
		cancel()
		n.renewedHook(ctx, err)
		switch {
		case err == nil:
			return now
		case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return nil
		}
		n.cfg.Logger.Debug("renew lease", "try", try+1, "err", err)
		if try > 0 {
			n.unreachable() // ls-3
		}
		if try == tries-1 {
			n.cfg.Logger.Warn("renew lease", "tries", tries, "err", err)
		}
	}
	return nil
}

// ensureLease reads the lease, or makes it, for as long as that takes (ls-3). It
// returns nil when ctx has ended.
func (n *Node) ensureLease(ctx context.Context) (lease *coordinationv1.Lease, fresh bool) {
	for wait := leaseBackoff; ; wait = min(2*wait, maxBackoff) {
		lease, fresh, err := n.getLease(ctx)
		if err == nil {
			return lease, fresh
		}
		if ctx.Err() != nil {
			return nil, false
		}
		if errors.Is(err, errNoNode) {
			if n.Object() == nil {
				select {
				case <-n.known:
					continue
				case <-ctx.Done():
					return nil, false
				}
			}
			// It is being deleted, and may wait long for others.
		} else {
			n.renewedHook(ctx, err)
			n.cfg.Logger.Warn("make lease", "err", err)
		}
		if pause.For(ctx, wait) != nil {
			return nil, false
		}
	}
}

var errNoNode = errors.New("node: the lease is not made before the node's object is there")

// getLease reads the lease, or makes it. A lease without the node as its owner
// would outlive it for ever, so that it is not made before the node (ls-1).
func (n *Node) getLease(ctx context.Context) (lease *coordinationv1.Lease, fresh bool, err error) {
	ctx, cancel := n.call(ctx)
	defer cancel()
	lease, err = n.cfg.Leases.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return lease, false, err
	}
	if _, ok := n.Owner(); !ok {
		return nil, false, errNoNode
	}
	lease, err = n.cfg.Leases.Create(ctx, n.renewed(nil), metav1.CreateOptions{})
	return lease, err == nil, err
}

// renewed returns the lease as it is to be written next.
func (n *Node) renewed(last *coordinationv1.Lease) *coordinationv1.Lease {
	owner, ok := n.Owner()
	var o *metav1.OwnerReference
	if ok {
		o = &owner
	}
	return Renew(last, n.cfg.Spec.Name, n.cfg.LeaseDuration, o, time.Now())
}

// Renew returns the node's lease, renewed now: a copy of last, or a new one where
// that is nil. The owner is added to a lease that has none; nil: it is not known.
func Renew(last *coordinationv1.Lease, node string, duration time.Duration, owner *metav1.OwnerReference, now time.Time) *coordinationv1.Lease {
	lease := last.DeepCopy()
	if lease == nil {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: leaseNamespace}}
	}
	// Others may have got at it.
	lease.Spec.HolderIdentity = new(node)
	lease.Spec.LeaseDurationSeconds = new(int32(duration / time.Second))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if len(lease.OwnerReferences) == 0 && owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return lease
}

func (n *Node) renewedHook(ctx context.Context, err error) {
	if n.cfg.Hooks.Renewed != nil && ctx.Err() == nil {
		n.cfg.Hooks.Renewed(err)
	}
}
