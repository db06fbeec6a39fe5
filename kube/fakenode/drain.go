package fakenode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
)

const (
	evictionRetry = 5 * time.Second // after an eviction that a PodDisruptionBudget does not permit
	drainPoll     = time.Second     // of pods that terminate
)

// Drain marks a node as unschedulable and evicts its pods through the Eviction API, as
// kubectl drain --ignore-daemonsets --delete-emptydir-data --force does: pods of DaemonSets
// and mirror pods remain, and an eviction that a PodDisruptionBudget does not permit is
// repeated every 5 seconds. If the API server does not serve evictions, the pods are
// deleted. It returns when the evicted pods no longer exist; an error if there is no such
// node, if it is being drained, or if ctx is done, with the names of the remaining pods.
// The node remains unschedulable until [Nodes.Recover].
func (n *Nodes) Drain(ctx context.Context, node string) error {
	h, err := n.host(node)
	if err == nil {
		err = h.drain(ctx)
	}
	if err != nil {
		return fmt.Errorf("fakenode: drain: %w", err)
	}
	return nil
}

func (h *host) drain(ctx context.Context) error {
	if h.setDraining(true) {
		return fmt.Errorf("node %s is being drained already", h.spec.Name)
	}
	defer h.setDraining(false)
	if err := h.of.setUnschedulable(ctx, h.spec.Name, true); err != nil {
		return fmt.Errorf("node %s: cordon: %w", h.spec.Name, err)
	}
	list, err := h.of.conn.API.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", h.spec.Name).String(),
	})
	if err != nil {
		return fmt.Errorf("node %s: list pods: %w", h.spec.Name, err)
	}
	evict := h.of.evictor()
	var wg sync.WaitGroup
	errs := make([]error, len(list.Items))
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.Spec.NodeName != h.spec.Name || !drained(pod) {
			continue
		}
		wg.Go(func() {
			if err := h.of.evictAndWait(ctx, pod, evict); err != nil {
				errs[i] = fmt.Errorf("node %s: evict pod %s/%s: %w", h.spec.Name, pod.Namespace, pod.Name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// setDraining stores whether a drain is in progress, and returns the previous value.
func (h *host) setDraining(is bool) (was bool) {
	h.hostMu.Lock()
	defer h.hostMu.Unlock()
	was, h.draining = h.draining, is
	return was
}

// drained reports whether a drain evicts the pod.
func drained(pod *v1.Pod) bool {
	_, mirror := pod.Annotations[v1.MirrorPodAnnotationKey]
	return !mirror && !slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
	})
}

// evictAndWait evicts a pod, and waits until it no longer exists.
func (n *Nodes) evictAndWait(ctx context.Context, pod *v1.Pod, evict func(context.Context, *v1.Pod) error) error {
	for {
		err := evict(ctx, pod)
		if err == nil || apierrors.IsNotFound(err) {
			break
		}
		if !apierrors.IsTooManyRequests(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		case <-time.After(evictionRetry):
		}
	}
	for {
		now, err := n.conn.API.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID {
			return nil
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still terminating: %w", context.Cause(ctx))
		case <-time.After(drainPoll):
		}
	}
}

// evictor returns a function that requests the eviction of a pod, or its deletion if the
// API server does not serve evictions.
func (n *Nodes) evictor() func(context.Context, *v1.Pod) error {
	api := n.conn.API
	list, err := api.Discovery().ServerResourcesForGroupVersion("v1")
	evicts := err == nil && slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/eviction" })
	return func(ctx context.Context, pod *v1.Pod) error {
		options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}
		if !evicts {
			return api.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
		}
		return api.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options,
		})
	}
}
