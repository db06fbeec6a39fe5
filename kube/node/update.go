package node

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		return false, fmt.Errorf("node: get: %w", err)
	}
	draft, errs := apply(ctx, p.n.cfg.Setters, is, p.before, p.started)
	for _, err := range errs {
		p.n.cfg.Logger.Warn("Failed to compute part of the node status; its previous value is reported", "err", err)
	}
	if !p.reported.IsZero() && time.Since(p.reported) < p.n.cfg.Timing.ReportPeriod && !statusChanged(&is.Status, &draft.Node.Status) {
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
	p.n.record(d.events)
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
	return !equality.Semantic.DeepEqual(withoutHeartbeats(a), withoutHeartbeats(b))
}

func withoutHeartbeats(s *v1.NodeStatus) *v1.NodeStatus {
	out := *s
	out.Conditions = slices.Clone(s.Conditions)
	for i := range out.Conditions {
		out.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
	slices.SortFunc(out.Conditions, func(a, b v1.NodeCondition) int {
		if a.Type < b.Type {
			return -1
		}
		return 1
	})
	return &out
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
// InternalIPs.
func patchOf(is, want *v1.Node) ([]byte, error) {
	target := *want
	target.Spec = is.Spec
	same := equality.Semantic.DeepEqual(is.Status.Addresses, want.Status.Addresses)
	target.Status.Addresses = is.Status.Addresses
	before, err := json.Marshal(is)
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(&target)
	if err != nil {
		return nil, err
	}
	data, err := strategicpatch.CreateTwoWayMergePatch(before, after, v1.Node{})
	if err != nil || same {
		return data, err
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil {
		return nil, err
	}
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
	return json.Marshal(patch)
}
