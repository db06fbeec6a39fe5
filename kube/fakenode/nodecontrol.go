package fakenode

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Fail makes a node fail without notice, as if its power was cut: its containers end, and
// the API server receives neither their statuses nor those of the node, and no lease. The
// Node object and its pods appear to be healthy until a controller marks them otherwise:
// the node lifecycle controller, by default 50 s after the last heartbeat. With package
// controllers the pods are deleted about 6 minutes after Fail, when their tolerations have
// ended, and remain terminating until Recover. Without controllers nothing happens to them.
// It returns when the node sends no more requests; an error if there is no such node, or if
// it does not run.
func (n *Nodes) Fail(node string) error {
	h, err := n.host(node)
	if err == nil {
		err = h.fail()
	}
	if err != nil {
		return fmt.Errorf("fakenode: fail: %w", err)
	}
	return nil
}

// Unready makes a node report the condition Ready with the status False and message. Its
// pods keep running. If message is empty, it is "container runtime is down". It returns when
// the API server has the status; an error if there is no such node, if it has failed, or if
// ctx is done.
func (n *Nodes) Unready(ctx context.Context, node, message string) error {
	h, err := n.host(node)
	if err == nil && h.hasFailed() {
		err = fmt.Errorf("node %s has failed", node)
	}
	if err == nil {
		if message == "" {
			message = "container runtime is down"
		}
		a := h.current()
		a.setHealth(errors.New(message))
		if err = a.wait(ctx, false); err == nil {
			err = n.waitScheduler(ctx, node, func(o *v1.Node) bool { return !isReady(o) })
		}
	}
	if err != nil {
		return fmt.Errorf("fakenode: unready: %w", err)
	}
	return nil
}

// Recover reverts Fail, Unready and Drain: the node is ready and schedulable. After Fail it
// starts as after a reboot: the pods that are still bound to it restart in new sandboxes. It
// returns when the API server has the status; an error if there is no such node, or if ctx
// is done. For a healthy node it has no effect.
func (n *Nodes) Recover(ctx context.Context, node string) error {
	h, err := n.host(node)
	if err == nil {
		err = n.recover(ctx, h)
	}
	if err != nil {
		return fmt.Errorf("fakenode: recover: %w", err)
	}
	return nil
}

func (n *Nodes) recover(ctx context.Context, h *host) error {
	a, err := h.recover()
	if err == nil {
		err = a.wait(ctx, true)
	}
	if err == nil {
		err = n.setUnschedulable(ctx, h.spec.Name, false)
	}
	if err == nil {
		err = n.waitScheduler(ctx, h.spec.Name, isReady)
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", h.spec.Name, err)
	}
	return nil
}

// setUnschedulable sets spec.unschedulable of a node, as kubectl cordon and uncordon do.
func (n *Nodes) setUnschedulable(ctx context.Context, node string, value bool) error {
	nodes := n.conn.API.CoreV1().Nodes()
	o, err := nodes.Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, value)
	if !value {
		patch = []byte(`{"spec":{"unschedulable":null}}`)
	}
	if o.Spec.Unschedulable != value {
		if _, err := nodes.Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	return n.waitScheduler(ctx, node, func(o *v1.Node) bool { return o.Spec.Unschedulable == value })
}

// waitScheduler blocks until the scheduler, if there is one, has observed a node in a state.
func (n *Nodes) waitScheduler(ctx context.Context, node string, in func(*v1.Node) bool) error {
	if n.binder == nil {
		return nil
	}
	return n.binder.wait(ctx, node, in)
}

// host returns the node with a name.
func (n *Nodes) host(name string) (*host, error) {
	if h := n.find(name); h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("unknown node %q; want one of %v", name, n.Names())
}

// setHealth sets the reason why the node is not ready; nil if it is.
func (a *agent) setHealth(err error) {
	a.mu.Lock()
	a.health = err
	a.mu.Unlock()
	a.node.Update()
}
