package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

// A statusUpdate computes and sends the node status, and holds the state between updates.
type statusUpdate struct {
	n        *Node
	started  time.Time
	before   *v1.Node
	reported time.Time // when the status was last sent; zero: never
	ready    bool      // the last observed status is ready
}

// run computes the status and sends it if necessary (rule ns-5). It makes several attempts;
// the next period is the next opportunity.
func (p *statusUpdate) run(ctx context.Context) {
	var err error
	for try := range attempts {
		var sent bool
		sent, err = p.once(ctx, try)
		if ctx.Err() != nil {
			return
		}
		if p.n.cfg.Hooks.Updated != nil {
			p.n.cfg.Hooks.Updated(sent, err)
		}
		if err == nil {
			return
		}
		p.n.cfg.Logger.Debug("Failed to update node status", "attempt", try+1, "err", err)
		if try > 0 {
			p.n.unreachable() // rule ns-6
		}
	}
	p.n.cfg.Logger.Error("Failed to update node status; will retry in the next period", "attempts", attempts, "err", err)
}

func (p *statusUpdate) once(ctx context.Context, try int) (sent bool, err error) {
	ctx, cancel := p.n.call(ctx)
	defer cancel()
	// The first attempt reads from the watch cache of the API server.
	opts := metav1.GetOptions{ResourceVersion: "0"}
	if try > 0 {
		opts.ResourceVersion = ""
	}
	is, err := p.n.cfg.Nodes.Get(ctx, p.n.cfg.Spec.Name, opts)
	if err != nil {
		if apierrors.IsNotFound(err) && try > 0 {
			p.n.observedMissing()
		}
		return false, fmt.Errorf("node: get: %w", err)
	}
	draft, errs := apply(ctx, p.n.cfg.Setters, is, p.before, p.started)
	for _, err := range errs {
		p.n.cfg.Logger.Warn("Failed to compute part of the node status; its previous value is reported", "err", err)
	}
	restored := !p.n.cfg.NoRegistration && p.n.cfg.Spec.restoreLabels(draft.Node)
	if !restored && !p.reported.IsZero() && time.Since(p.reported) < p.n.cfg.Timing.ReportPeriod && !statusChanged(&is.Status, &draft.Node.Status) {
		p.n.observed(is)
		p.end(is, draft)
		return false, nil
	}
	now, err := p.n.patch(ctx, is, draft.Node)
	if err != nil {
		return false, err
	}
	p.n.observed(now)
	p.reported = time.Now()
	p.end(now, draft)
	return true, nil
}

func (p *statusUpdate) end(now *v1.Node, d *Draft) {
	p.before, p.ready = now, isReady(now)
	p.n.record(now, d.events)
}

// wouldBeReady reports whether the computed status is ready.
func (p *statusUpdate) wouldBeReady(ctx context.Context) bool {
	is := p.n.Object()
	if is == nil {
		return false
	}
	draft, _ := apply(ctx, p.n.cfg.Setters, is, p.before, p.started)
	return isReady(draft.Node)
}

func isReady(node *v1.Node) bool {
	c := findCondition(&node.Status, v1.NodeReady)
	return c != nil && c.Status == v1.ConditionTrue
}

// statusChanged reports whether two statuses differ in more than heartbeat times and the order of
// conditions, so that the status must be sent (rule ns-5).
func statusChanged(a, b *v1.NodeStatus) bool {
	if !sameConditions(a.Conditions, b.Conditions) || !sameResources(a.Capacity, b.Capacity) || !sameResources(a.Allocatable, b.Allocatable) {
		return true
	}
	x, y := *a, *b
	x.Conditions, x.Capacity, x.Allocatable = nil, nil, nil
	y.Conditions, y.Capacity, y.Allocatable = nil, nil, nil
	// The second comparison takes longer: it does not distinguish nil from empty lists.
	return !reflect.DeepEqual(&x, &y) && !equality.Semantic.DeepEqual(&x, &y)
}

// sameConditions reports whether two lists differ at most in heartbeat times and order.
func sameConditions(a, b []v1.NodeCondition) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x v1.NodeCondition) bool {
		i := slices.IndexFunc(b, func(c v1.NodeCondition) bool { return c.Type == x.Type })
		if i < 0 {
			return true
		}
		y := b[i]
		moved := !x.LastTransitionTime.Equal(&y.LastTransitionTime)
		for _, c := range []*v1.NodeCondition{&x, &y} {
			c.LastHeartbeatTime, c.LastTransitionTime = metav1.Time{}, metav1.Time{}
		}
		return moved || x != y
	})
}

// sameResources reports whether two lists have the same quantities, in any notation.
func sameResources(a, b v1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// patch updates metadata and status of the object to those of want. The spec is not
// changed, and neither are changes of other clients since is was read.
func (n *Node) patch(ctx context.Context, is, want *v1.Node) (*v1.Node, error) {
	data, err := patchOf(is, want)
	if err != nil {
		return nil, fmt.Errorf("node: create patch: %w", err)
	}
	now, err := n.cfg.Nodes.Patch(ctx, n.cfg.Spec.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("node: patch: %w", err)
	}
	return now, nil
}

// patchOf returns the strategic merge patch from is to want. The list of addresses is
// replaced: its merge key, the type, is not unique, so that a merge would lose one of two
// InternalIPs. Managed fields are not compared: only the API server sets them.
func patchOf(is, want *v1.Node) ([]byte, error) {
	source, target := *is, *want
	source.ManagedFields, target.ManagedFields = nil, nil
	target.Spec, target.Status.Addresses = is.Spec, is.Status.Addresses
	before, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&source)
	if err != nil {
		return nil, err
	}
	after, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&target)
	if err != nil {
		return nil, err
	}
	patch, err := strategicpatch.CreateTwoWayMergeMapPatch(before, after, v1.Node{})
	if err != nil {
		return nil, err
	}
	if !equality.Semantic.DeepEqual(is.Status.Addresses, want.Status.Addresses) {
		status, ok := patch["status"].(map[string]any)
		if !ok {
			status = map[string]any{}
			patch["status"] = status
		}
		addresses := []any{map[string]any{"$patch": "replace"}}
		for _, a := range want.Status.Addresses {
			addresses = append(addresses, a)
		}
		status["addresses"] = addresses
	}
	return json.Marshal(patch)
}
