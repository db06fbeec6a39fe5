package controllers

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/klog/v2"
	cmnames "k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/resourcequota"
	"k8s.io/kubernetes/pkg/controller/serviceaccount"
	"k8s.io/kubernetes/pkg/controller/volume/ephemeral"
	quota "k8s.io/kubernetes/pkg/quota/v1/install"
)

func newGarbageCollector(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	meta, err := metadata.NewForConfig(e.as(cmnames.GarbageCollectorController))
	if err != nil {
		return nil, err
	}
	graph := garbagecollector.NewDependencyGraphBuilder(ctx, meta, e.kinds, garbagecollector.DefaultIgnoredResources(), e.generic, e.started)
	c, err := garbagecollector.NewComposedGarbageCollector(ctx, client, meta, e.kinds, graph)
	if err != nil {
		return nil, err
	}
	return both(
		func(ctx context.Context) { c.Run(ctx, 20, discoveryPeriod) },
		func(ctx context.Context) { c.Sync(ctx, e.discovery, discoveryPeriod) },
	), nil
}

func newNamespaces(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	meta, err := metadata.NewForConfig(e.as(cmnames.NamespaceController))
	if err != nil {
		return nil, err
	}
	c := namespace.NewNamespaceController(
		ctx, client, meta, client.Discovery().ServerPreferredNamespacedResources, e.informers.Core().V1().Namespaces(), 5*time.Minute, v1.FinalizerKubernetes,
	)
	return workers(c.Run, 10), nil
}

func newServiceAccounts(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c, err := serviceaccount.NewServiceAccountsController(
		klog.FromContext(ctx), core.ServiceAccounts(), core.Namespaces(), client, serviceaccount.DefaultServiceAccountsControllerOptions(),
	)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}

func newResourceQuotas(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	evaluators, err := quota.NewQuotaConfigurationForControllers(generic.ListerFuncForResourceFunc(e.informers.ForResource), e.informers)
	if err != nil {
		return nil, err
	}
	c, err := resourcequota.NewController(ctx, &resourcequota.ControllerOptions{
		QuotaClient:               client.CoreV1(),
		ResourceQuotaInformer:     e.informers.Core().V1().ResourceQuotas(),
		ResyncPeriod:              controller.StaticResyncPeriodFunc(5 * time.Minute),
		InformerFactory:           e.generic,
		ReplenishmentResyncPeriod: controller.StaticResyncPeriodFunc(resync),
		DiscoveryFunc:             e.discovery.ServerPreferredNamespacedResources,
		IgnoredResourcesFunc:      evaluators.IgnoredResources,
		InformersStarted:          e.started,
		Registry:                  generic.NewRegistry(evaluators.Evaluators()),
		UpdateFilter:              quota.DefaultUpdateFilter(),
	})
	if err != nil {
		return nil, err
	}
	// Not c.Sync, which waits for the informers of new kinds while it holds a mutex of the
	// workers: a bubble's time stops when one of them waits for a mutex.
	return workers(c.Run, 5), nil
}

func newEphemeralVolumes(ctx context.Context, e *env, client kubernetes.Interface) (func(context.Context), error) {
	core := e.informers.Core().V1()
	c, err := ephemeral.NewController(ctx, client, core.Pods(), core.PersistentVolumeClaims())
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 5), nil
}

// both runs two functions concurrently.
func both(a, b func(context.Context)) func(context.Context) {
	return func(ctx context.Context) {
		var wg sync.WaitGroup
		wg.Go(func() { a(ctx) })
		wg.Go(func() { b(ctx) })
		wg.Wait()
	}
}
