package client

import (
	"context"
	"fmt"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// defaultTTL is the TTL if the node has no annotation.
const defaultTTL = time.Minute

// TTLOf returns the duration for which objects may be cached on a node, from the annotation
// of the control plane, which increases it with the number of nodes. Zero: there is no
// annotation.
func TTLOf(node *v1.Node) time.Duration {
	if node == nil {
		return 0
	}
	seconds, err := strconv.Atoi(node.Annotations[v1.ObjectTTLAnnotationKey])
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// read returns a Secret or ConfigMap, by the configured strategy.
func (o *Objects) read(ctx context.Context, k key) (metav1.Object, error) {
	if k.name == "" {
		return nil, noName(k)
	}
	switch o.cfg.Strategy {
	case Cache:
		return o.cached(ctx, k)
	case Get:
		object, err := accessTo(o.cfg.Client, k.kind, k.namespace).get(ctx, k.name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("client: read %s: %w", k, err)
		}
		return object, nil
	default:
		return o.watched(ctx.Done(), k)
	}
}

// cached returns an object that is not older than the TTL. Concurrent readers share one
// request.
func (o *Objects) cached(ctx context.Context, k key) (metav1.Object, error) {
	for {
		o.mu.Lock()
		now := time.Now()
		e := o.entryLocked(k)
		if !e.fixed && len(e.refs) == 0 {
			e.keepLocked(now)
			o.wake()
		}
		cached := e.objects[k.name]
		if e.fixed || !e.refresh && !e.read.IsZero() && now.Sub(e.read) < o.ttl() {
			o.mu.Unlock()
			if cached == nil {
				return nil, notFound(k)
			}
			return cached, nil
		}
		reading := e.reading
		if reading == nil {
			e.reading = make(chan struct{})
			e.refresh = false
			o.mu.Unlock()
			return o.fetch(ctx, e, cached)
		}
		o.mu.Unlock()
		select {
		case <-reading:
		case <-ctx.Done():
			return nil, fmt.Errorf("client: read %s: %w", k, context.Cause(ctx))
		}
	}
}

func (o *Objects) ttl() time.Duration {
	if o.cfg.TTL == nil {
		return defaultTTL
	}
	return or(o.cfg.TTL(), defaultTTL)
}

// fetch reads an object from the watch cache of the API server, and from its store if that
// is older than the cached object, or does not contain it.
func (o *Objects) fetch(ctx context.Context, e *entry, cached metav1.Object) (metav1.Object, error) {
	get := accessTo(o.cfg.Client, e.kind, e.namespace).get
	object, err := get(ctx, e.name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) || err == nil && behind(object, cached) {
		object, err = get(ctx, e.name, metav1.GetOptions{})
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	close(e.reading)
	e.reading = nil
	switch {
	case err == nil:
		e.objects = map[string]metav1.Object{e.name: object}
		e.fixed = immutable(object) && !e.refresh // a pod may have been registered meanwhile
	case apierrors.IsNotFound(err):
		e.objects = map[string]metav1.Object{}
	default:
		e.refresh = true // the cached object may be outdated (rule oc-7)
		if e.held && cached != nil {
			return cached, nil
		}
		return nil, fmt.Errorf("client: read %s: %w", e.key, err)
	}
	e.read, e.held = time.Now(), false
	if err != nil {
		return nil, err
	}
	return object, nil
}

// behind reports whether a response is older than the cached object.
func behind(response, cached metav1.Object) bool {
	if cached == nil {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(response.GetResourceVersion(), cached.GetResourceVersion())
	return err == nil && order < 0
}
