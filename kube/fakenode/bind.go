package fakenode

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/kubeparts/kubeparts/runtime"
)

// readNamespaces reads the labels of all namespaces.
func (b *binder) readNamespaces(ctx context.Context) {
	list, err := b.of.conn.API.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		if ctx.Err() == nil {
			b.of.cfg.Logger.Warn("Failed to list namespaces; their last labels are used", "err", err)
		}
		return
	}
	for i := range list.Items {
		n := &list.Items[i]
		b.cluster.SetNamespace(n.Name, n.Labels)
	}
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

// untaint removes the taint not-ready from each node when it is ready: an API server adds
// the taint when a node is created, and without kube-controller-manager nothing removes it.
func (b *binder) untaint(ctx context.Context) error {
	nodes := b.of.conn.API.CoreV1().Nodes()
	for _, h := range b.of.hosts {
		select {
		case <-ctx.Done():
			return nil
		case <-h.ready:
		}
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			n, err := nodes.Get(ctx, h.spec.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			before := len(n.Spec.Taints)
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isNotReady)
			if len(n.Spec.Taints) == before {
				return nil
			}
			_, err = nodes.Update(ctx, n, metav1.UpdateOptions{})
			return err
		})
		if err != nil && ctx.Err() == nil {
			b.of.cfg.Logger.Warn("Failed to remove the taint not-ready", "node", h.spec.Name, "err", err)
		}
	}
	return nil
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
