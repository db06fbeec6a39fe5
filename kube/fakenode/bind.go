package fakenode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/kubeparts/kubeparts/kube/client"
	"github.com/kubeparts/kubeparts/runtime"
)

// retryPeriod is the time after which pods that fit no node are tried again.
const retryPeriod = time.Second

// A binder binds pods to nodes, in place of a scheduler.
type binder struct {
	of     *Nodes
	events *client.Events // nil if disabled
	due    chan struct{}  // capacity 1; a pod may have to be bound

	// Used by run only.
	bound         map[types.UID]string // nodes of bound pods that the feed reports as not bound yet
	unschedulable map[types.UID]string // last message of pods that fit no node
}

func newBinder(of *Nodes) (b *binder, err error) {
	b = &binder{of: of, due: make(chan struct{}, 1), bound: map[types.UID]string{}, unschedulable: map[types.UID]string{}}
	if !of.cfg.NoEvents {
		b.events, err = client.NewEvents(client.EventsConfig{
			Client: of.conn.Events, NodeName: of.cfg.Nodes[0].Name, Component: "fakenode-scheduler", Logger: of.cfg.Logger,
		})
	}
	return b, err
}

// observed is called with every pod.
func (b *binder) observed(pod *v1.Pod, deleted bool) {
	if deleted || !needsNode(pod) {
		return
	}
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// needsNode reports whether the pod has to be bound.
func needsNode(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !isTerminal(pod)
}

func isTerminal(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// run binds pods until ctx is done.
func (b *binder) run(ctx context.Context) error {
	bind := func(ctx context.Context) error {
		for {
			var later <-chan time.Time
			if b.pass(ctx) {
				later = time.After(retryPeriod)
			}
			select {
			case <-ctx.Done():
				return nil
			case <-b.due:
			case <-later:
			}
		}
	}
	if b.events == nil {
		return runAll(ctx, bind, b.untaint)
	}
	return runAll(ctx, bind, b.untaint, b.events.Run)
}

// untaint removes the taint not-ready from each node when it is ready: an API server adds
// the taint when a node is created, and without kube-controller-manager nothing removes it.
func (b *binder) untaint(ctx context.Context) error {
	nodes := b.of.conn.API.CoreV1().Nodes()
	for _, a := range b.of.agents {
		select {
		case <-ctx.Done():
			return nil
		case <-a.ready:
		}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			n, err := nodes.Get(ctx, a.spec.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			before := len(n.Spec.Taints)
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t v1.Taint) bool { return t.Key == v1.TaintNodeNotReady })
			if len(n.Spec.Taints) == before {
				return nil
			}
			_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
			return err
		})
		if err != nil && ctx.Err() == nil {
			b.of.cfg.Logger.Warn("Failed to remove the taint not-ready", "node", a.spec.Name, "err", err)
		}
	}
	return nil
}

// pass tries to bind every pod that has no node. It reports whether pods remain without
// one.
func (b *binder) pass(ctx context.Context) (remaining bool) {
	pods, synced := b.of.feed.Pods()
	if !synced {
		return false
	}
	on := map[string][]*v1.Pod{}
	var waiting []*v1.Pod
	exists := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		exists[pod.UID] = true
		switch to := cmp.Or(pod.Spec.NodeName, b.bound[pod.UID]); {
		case to != "" && !isTerminal(pod):
			on[to] = append(on[to], pod)
		case needsNode(pod):
			waiting = append(waiting, pod)
		}
		if pod.Spec.NodeName != "" {
			delete(b.bound, pod.UID)
			delete(b.unschedulable, pod.UID)
		}
	}
	maps.DeleteFunc(b.bound, func(uid types.UID, _ string) bool { return !exists[uid] })
	maps.DeleteFunc(b.unschedulable, func(uid types.UID, _ string) bool { return !exists[uid] })
	if len(waiting) == 0 {
		return false
	}
	slices.SortFunc(waiting, func(x, y *v1.Pod) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	nodes, err := b.nodes(ctx)
	if err != nil {
		b.of.cfg.Logger.Warn("Failed to list nodes; no pod is bound; will retry", "err", err)
		return true
	}
	for _, pod := range waiting {
		to, message := choose(pod, nodes, on)
		if to == "" {
			b.setUnschedulable(ctx, pod, message)
			remaining = true
			continue
		}
		if err := b.bind(ctx, pod, to); err != nil {
			if ctx.Err() == nil {
				b.of.cfg.Logger.Warn("Failed to bind pod; will retry", "pod", pod.Namespace+"/"+pod.Name, "node", to, "err", err)
			}
			remaining = true
			continue
		}
		b.bound[pod.UID] = to
		on[to] = append(on[to], pod)
	}
	return remaining
}

// nodes returns the Node objects of this package that exist, in the order of the
// configuration.
func (b *binder) nodes(ctx context.Context) ([]*v1.Node, error) {
	list, err := b.of.conn.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	byName := map[string]*v1.Node{}
	for i := range list.Items {
		byName[list.Items[i].Name] = &list.Items[i]
	}
	var nodes []*v1.Node
	for _, a := range b.of.agents {
		if n := byName[a.spec.Name]; n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// bind binds a pod. A pod that was deleted or has a node is not an error: the feed reports
// it.
func (b *binder) bind(ctx context.Context, pod *v1.Pod, to string) error {
	err := b.of.conn.API.CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     v1.ObjectReference{Kind: "Node", Name: to},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	if err == nil {
		b.record(pod, v1.EventTypeNormal, "Scheduled", fmt.Sprintf("Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, to))
	}
	return err
}

// setUnschedulable sets the condition of a pod that fits no node, once for each message.
func (b *binder) setUnschedulable(ctx context.Context, pod *v1.Pod, message string) {
	if b.unschedulable[pod.UID] == message {
		return
	}
	pods := b.of.conn.API.CoreV1().Pods(pod.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || now.UID != pod.UID || !needsNode(now) {
			return errors.Join(err)
		}
		now.Status.Phase = v1.PodPending
		now.Status.Conditions = slices.DeleteFunc(now.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
		now.Status.Conditions = append(now.Status.Conditions, v1.PodCondition{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: message, LastTransitionTime: metav1.Now(),
		})
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsNotFound(err) {
			b.of.cfg.Logger.Warn("Failed to update the condition of an unschedulable pod", "pod", pod.Namespace+"/"+pod.Name, "err", err)
		}
		return
	}
	b.unschedulable[pod.UID] = message
	b.record(pod, v1.EventTypeWarning, "FailedScheduling", message)
}

func (b *binder) record(pod *v1.Pod, kind, reason, message string) {
	if b.events == nil {
		return
	}
	b.events.Record(runtime.Event{
		Object: v1.ObjectReference{Kind: "Pod", APIVersion: "v1", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Type:   kind, Reason: reason, Message: message,
	})
}
