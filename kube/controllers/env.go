package controllers

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/informerfactory"
)

// resync is the period at which informers deliver all objects again. That of
// kube-controller-manager is random, between 12 and 24 hours.
const resync = 12 * time.Hour

// discoveryPeriod is the period at which the resources of the API server are discovered,
// and at which controllers of all resources look for new ones.
const discoveryPeriod = 30 * time.Second

// An env has the clients and informers that controllers share.
type env struct {
	api *rest.Config
	cfg Config

	// discovery is a cache that kinds shares and refresh invalidates.
	discovery discovery.CachedDiscoveryInterface
	kinds     *restmapper.DeferredDiscoveryRESTMapper

	informers informers.SharedInformerFactory
	separate  informers.SharedInformerFactory // the scheduler's; nil without one
	metadata  metadatainformer.SharedInformerFactory
	generic   informerfactory.InformerFactory // a typed informer of the former or, for other kinds, one of the latter
	started   chan struct{}                   // closed when the informers have been started
}

func newEnv(api *rest.Config, cfg Config) (*env, error) {
	e := &env{api: rest.CopyConfig(api), cfg: cfg, started: make(chan struct{})}
	if e.api.QPS == 0 && e.api.RateLimiter == nil {
		e.api.QPS = -1
	}
	client, err := e.client("shared-informers")
	if err != nil {
		return nil, err
	}
	meta, err := metadata.NewForConfig(e.as("metadata-informers"))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	e.informers = informers.NewSharedInformerFactoryWithOptions(client, resync, informers.WithTransform(withoutManagedFields))
	e.metadata = metadatainformer.NewSharedInformerFactoryWithOptions(meta, resync, metadatainformer.WithTransform(withoutManagedFields))
	e.generic = informerfactory.NewInformerFactory(e.informers, e.metadata)
	e.discovery = memory.NewMemCacheClient(client.Discovery())
	e.kinds = restmapper.NewDeferredDiscoveryRESTMapper(e.discovery)
	return e, nil
}

// as returns the configuration of the client of one controller.
func (e *env) as(user string) *rest.Config {
	return rest.AddUserAgent(rest.CopyConfig(e.api), user)
}

// client returns the client of one controller.
func (e *env) client(user string) (kubernetes.Interface, error) {
	client, err := kubernetes.NewForConfig(e.as(user))
	if err != nil {
		return nil, fmt.Errorf("controllers: %w", err)
	}
	return client, nil
}

// start starts the informers that the controllers have requested.
func (e *env) start(ctx context.Context) {
	for _, f := range e.factories() {
		f.StartWithContext(ctx)
	}
	e.metadata.Start(ctx.Done())
	close(e.started)
}

// wait blocks until the informers are synchronized. If ctx is done first, it returns an
// error that names those that are not.
func (e *env) wait(ctx context.Context) error {
	for _, f := range e.factories() {
		synced := f.WaitForCacheSyncWithContext(ctx)
		if err := synced.AsError(); err != nil {
			return err
		}
	}
	return nil
}

// shutdown blocks until the informers have stopped. The ctx of start must be done.
func (e *env) shutdown() {
	for _, f := range e.factories() {
		f.Shutdown()
	}
	e.metadata.Shutdown()
}

func (e *env) factories() []informers.SharedInformerFactory {
	if e.separate == nil {
		return []informers.SharedInformerFactory{e.informers}
	}
	return []informers.SharedInformerFactory{e.informers, e.separate}
}

// refresh keeps discovery and the REST mapper up to date until ctx is done.
func (e *env) refresh(ctx context.Context) {
	tick := time.NewTicker(discoveryPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			e.kinds.Reset()
		}
	}
}

// withoutManagedFields removes the managed fields of a cached object, as
// kube-controller-manager does.
func withoutManagedFields(object any) (any, error) {
	if o, err := meta.Accessor(object); err == nil && o.GetManagedFields() != nil {
		o.SetManagedFields(nil)
	}
	return object, nil
}
