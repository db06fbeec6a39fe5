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
	renewalsPerDur = 4 // renewals per lease duration (rule ls-2)
)

// renewLease renews the lease until ctx is done (rules ls-1 to ls-4).
func (n *Node) renewLease(ctx context.Context) {
	var last *coordinationv1.Lease // as last written or read; nil: must be read
	for {
		last = n.renew(ctx, last)
		if pause.For(ctx, jittered(n.cfg.Timing.LeaseDuration/renewalsPerDur)) != nil {
			return
		}
	}
}

// renew renews the lease once, and creates it if it does not exist. It returns the current
// lease; nil if it is unknown.
func (n *Node) renew(ctx context.Context, last *coordinationv1.Lease) *coordinationv1.Lease {
	if last != nil {
		if now := n.tryRenew(ctx, last); now != nil || ctx.Err() != nil {
			return now
		}
		// Another client may have changed or deleted it.
	}
	now, created := n.ensureLease(ctx)
	if now == nil || created {
		return now
	}
	return n.tryRenew(ctx, now)
}

// tryRenew writes the lease without reading it. On a conflict, or after several failures,
// it returns nil.
func (n *Node) tryRenew(ctx context.Context, last *coordinationv1.Lease) *coordinationv1.Lease {
	for try := range attempts {
		callCtx, cancel := n.call(ctx)
		now, err := n.cfg.Leases.Update(callCtx, n.renewed(last), metav1.UpdateOptions{})
		cancel()
		n.noteRenewal(ctx, err)
		switch {
		case err == nil:
			return now
		case ctx.Err() != nil, apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return nil
		}
		n.cfg.Logger.Debug("Failed to renew node lease", "attempt", try+1, "err", err)
		if try > 0 {
			n.unreachable() // rule ls-3
		}
		if try == attempts-1 {
			n.cfg.Logger.Warn("Failed to renew node lease; it is read or created again", "attempts", attempts, "err", err)
		}
	}
	return nil
}

// ensureLease reads or creates the lease, and retries until it succeeds (rule ls-3). It
// returns nil if ctx is done.
func (n *Node) ensureLease(ctx context.Context) (lease *coordinationv1.Lease, created bool) {
	for wait := leaseBackoff; ; wait = min(2*wait, maxBackoff) {
		lease, created, err := n.getLease(ctx)
		if err == nil {
			return lease, created
		}
		if ctx.Err() != nil {
			return nil, false
		}
		if errors.Is(err, errNoNode) {
			if n.Object() == nil {
				select {
				case <-n.registered:
					continue
				case <-ctx.Done():
					return nil, false
				}
			}
			// The node was deleted, or is being deleted, which may wait for finalizers.
		} else {
			n.noteRenewal(ctx, err)
			n.cfg.Logger.Warn("Failed to create node lease; will retry", "node", n.cfg.Spec.Name, "err", err)
		}
		if pause.For(ctx, wait) != nil {
			return nil, false
		}
	}
}

var errNoNode = errors.New("node: the lease requires the Node object")

// getLease reads or creates the lease. A lease without owner would never be garbage
// collected, and one with a deleted owner at once, so that it is created only if the Node
// object exists (rule ls-1).
func (n *Node) getLease(ctx context.Context) (lease *coordinationv1.Lease, created bool, err error) {
	ctx, cancel := n.call(ctx)
	defer cancel()
	lease, err = n.cfg.Leases.Get(ctx, n.cfg.Spec.Name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return lease, false, err
	}
	owner, ok, err := n.ensureOwner(ctx)
	switch {
	case err != nil:
		return nil, false, err
	case !ok:
		return nil, false, errNoNode
	}
	lease, err = n.cfg.Leases.Create(ctx, renewedLease(nil, n.cfg.Spec.Name, n.cfg.Timing.LeaseDuration, &owner, time.Now()), metav1.CreateOptions{})
	return lease, err == nil, err
}

// renewed returns the lease to write next, from the last one.
func (n *Node) renewed(last *coordinationv1.Lease) *coordinationv1.Lease {
	owner, ok := n.Owner()
	var o *metav1.OwnerReference
	if ok {
		o = &owner
	}
	return renewedLease(last, n.cfg.Spec.Name, n.cfg.Timing.LeaseDuration, o, time.Now())
}

// renewedLease returns a copy of last with the renewal time now, or a new lease if last is nil.
// The owner is set if the lease has none; it may be nil. The copy shares parts with last.
func renewedLease(last *coordinationv1.Lease, node string, duration time.Duration, owner *metav1.OwnerReference, now time.Time) *coordinationv1.Lease {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: leaseNamespace}}
	if last != nil {
		*lease = *last
		lease.ManagedFields = nil // half of the request; the API server keeps those that it has
	}
	// Other clients may have modified these fields.
	lease.Spec.HolderIdentity = new(node)
	lease.Spec.LeaseDurationSeconds = new(int32(duration / time.Second))
	lease.Spec.RenewTime = &metav1.MicroTime{Time: now}
	if len(lease.OwnerReferences) == 0 && owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return lease
}

// noteRenewal calls the functions of the Config after an attempt to renew the lease. It is
// called on the goroutine of the lease.
func (n *Node) noteRenewal(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	if n.cfg.Hooks.Renewed != nil {
		n.cfg.Hooks.Renewed(err)
	}
	recovered := n.leaseFailed && err == nil
	n.leaseFailed = err != nil
	if recovered && n.cfg.Connection.Recovered != nil {
		n.cfg.Connection.Recovered()
	}
}
