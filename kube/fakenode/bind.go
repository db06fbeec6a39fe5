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

// again is how soon pods that no node took are offered again.
const again = time.Second

// A binder gives pods without a node one of the nodes, where no scheduler does.
type binder struct {
	of     *Nodes
	events *client.Events // nil: none
	due    chan struct{}  // capacity 1: there is a pod without a node

	// What follows is run's own.
	bound   map[types.UID]string // of pods that were read without a node since
	refused map[types.UID]string // what was last said of pods that none took
}

func newBinder(of *Nodes) (b *binder, err error) {
	b = &binder{of: of, due: make(chan struct{}, 1), bound: map[types.UID]string{}, refused: map[types.UID]string{}}
	if !of.cfg.NoEvents {
		b.events, err = client.NewEvents(client.EventsConfig{
			Client: of.conn.Events, NodeName: of.cfg.Nodes[0].Name, Component: "fakenode-scheduler", Logger: of.cfg.Logger,
		})
	}
	return b, err
}

// saw is told of every pod.
func (b *binder) saw(pod *v1.Pod, gone bool) {
	if gone || !waits(pod) {
		return
	}
	select {
	case b.due <- struct{}{}:
	default:
	}
}

// waits reports whether somebody has to give the pod a node.
func waits(pod *v1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 && !over(pod)
}

func over(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// run binds pods until ctx ends.
func (b *binder) run(ctx context.Context) error {
	bind := func(ctx context.Context) error {
		for {
			var later <-chan time.Time
			if b.pass(ctx) {
				later = time.After(again)
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
		return together(ctx, bind, b.untaint)
	}
	return together(ctx, bind, b.untaint, b.events.Run)
}

// untaint takes the taint not-ready from nodes that are ready, once for each: an API
// server makes nodes with it, and where no scheduler runs no controller does that
// would take it away.
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
			b.of.cfg.Logger.Warn("the taint of a new node stays", "node", a.spec.Name, "err", err)
		}
	}
	return nil
}

// pass offers every pod that waits to the nodes, and reports whether some still
// wait.
func (b *binder) pass(ctx context.Context) (left bool) {
	pods, synced := b.of.feed.Pods()
	if !synced {
		return false
	}
	on := map[string][]*v1.Pod{}
	var waiting []*v1.Pod
	there := make(map[types.UID]bool, len(pods))
	for _, pod := range pods {
		there[pod.UID] = true
		switch to := cmp.Or(pod.Spec.NodeName, b.bound[pod.UID]); {
		case to != "" && !over(pod):
			on[to] = append(on[to], pod)
		case waits(pod):
			waiting = append(waiting, pod)
		}
		if pod.Spec.NodeName != "" {
			delete(b.bound, pod.UID)
			delete(b.refused, pod.UID)
		}
	}
	maps.DeleteFunc(b.bound, func(uid types.UID, _ string) bool { return !there[uid] })
	maps.DeleteFunc(b.refused, func(uid types.UID, _ string) bool { return !there[uid] })
	if len(waiting) == 0 {
		return false
	}
	slices.SortFunc(waiting, func(x, y *v1.Pod) int {
		return cmp.Or(x.CreationTimestamp.Compare(y.CreationTimestamp.Time), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	nodes, err := b.nodes(ctx)
	if err != nil {
		b.of.cfg.Logger.Warn("nodes cannot be read, no pod is bound", "err", err)
		return true
	}
	for _, pod := range waiting {
		to, why := choose(pod, nodes, on)
		if to == "" {
			b.refuse(ctx, pod, why)
			left = true
			continue
		}
		if err := b.bind(ctx, pod, to); err != nil {
			if ctx.Err() == nil {
				b.of.cfg.Logger.Warn("pod cannot be bound", "pod", pod.Name, "namespace", pod.Namespace, "node", to, "err", err)
			}
			left = true
			continue
		}
		b.bound[pod.UID] = to
		on[to] = append(on[to], pod)
	}
	return left
}

// nodes returns those of the nodes that have an object, in the order of the
// configuration, as others may have changed them.
func (b *binder) nodes(ctx context.Context) ([]*v1.Node, error) {
	list, err := b.of.conn.API.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	there := map[string]*v1.Node{}
	for i := range list.Items {
		there[list.Items[i].Name] = &list.Items[i]
	}
	var nodes []*v1.Node
	for _, a := range b.of.agents {
		if n := there[a.spec.Name]; n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes, nil
}

// bind gives the pod its node. That it is gone, or has one, is no error: the feed
// tells of it.
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

// refuse says why no node takes the pod, once.
func (b *binder) refuse(ctx context.Context, pod *v1.Pod, why string) {
	if b.refused[pod.UID] == why {
		return
	}
	pods := b.of.conn.API.CoreV1().Pods(pod.Namespace)
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		now, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || now.UID != pod.UID || !waits(now) {
			return errors.Join(err)
		}
		now.Status.Phase = v1.PodPending
		now.Status.Conditions = slices.DeleteFunc(now.Status.Conditions, func(c v1.PodCondition) bool { return c.Type == v1.PodScheduled })
		now.Status.Conditions = append(now.Status.Conditions, v1.PodCondition{
			Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: v1.PodReasonUnschedulable, Message: why, LastTransitionTime: metav1.Now(),
		})
		_, err = pods.UpdateStatus(ctx, now, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		if ctx.Err() == nil && !apierrors.IsNotFound(err) {
			b.of.cfg.Logger.Warn("it cannot be said why a pod is not bound", "pod", pod.Name, "namespace", pod.Namespace, "err", err)
		}
		return
	}
	b.refused[pod.UID] = why
	b.record(pod, v1.EventTypeWarning, "FailedScheduling", why)
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
