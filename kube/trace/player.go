package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kubeparts/kubeparts/compose"
)

// Config configures a [Player]. The zero value plays in real time.
type Config struct {
	// Speed is how many seconds of the trace take a second. Zero means 1.
	Speed float64

	// NamespacePrefix is prepended to the namespaces of objects.
	NamespacePrefix string

	// Edit changes an object before it is applied, for example to set a node selector. It
	// must not keep the object. If nil, objects are not changed.
	Edit func(*unstructured.Unstructured)

	// Hooks are called while a trace is played.
	Hooks Hooks
}

// Hooks are called on the goroutine of [Player.Play]. They must not block. Any may be nil.
type Hooks struct {
	// Played is called after an event was played.
	Played func(Played)
}

// Played is an event that was played.
type Played struct {
	Event int           // its index
	Late  time.Duration // how late its begin was
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Played, o.Played)
	}
	return h
}

// A Player plays traces on a cluster.
type Player struct {
	cfg     Config
	dynamic dynamic.Interface
	mapper  meta.ResettableRESTMapper
	created map[string]bool // namespaces
}

// fieldManager is the name of the field manager of applied objects.
const fieldManager = "kubeparts-trace"

// NewPlayer returns a Player that uses the API server of config, with its rate limits. It returns
// an error that names the invalid field of cfg.
func NewPlayer(config *rest.Config, cfg Config) (*Player, error) {
	if config == nil {
		return nil, errors.New("trace: REST configuration is nil")
	}
	if !(cfg.Speed >= 0) { // NaN as well
		return nil, fmt.Errorf("trace: Config.Speed %v is negative", cfg.Speed)
	}
	if cfg.Speed == 0 {
		cfg.Speed = 1
	}
	compose.Add(&cfg.Hooks.Played, func(Played) {})
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(resources))
	return &Player{cfg: cfg, dynamic: objects, mapper: mapper, created: map[string]bool{}}, nil
}

// Play plays a trace. It blocks until the last event has been played or ctx is done, and returns
// an error that names the event and the object that could not be applied or deleted;
// errors.Is(err, context.Canceled) if ctx is done.
func (p *Player) Play(ctx context.Context, t *Trace) error {
	start := time.Now()
	for i := range t.Events {
		e := &t.Events[i]
		due := start.Add(time.Duration(float64(e.At) / p.cfg.Speed))
		if err := sleep(ctx, time.Until(due)); err != nil {
			return fmt.Errorf("trace: event %d: %w", i, err)
		}
		late := time.Since(due)
		for _, o := range e.Applied {
			if err := p.apply(ctx, o); err != nil {
				return fmt.Errorf("trace: event %d: apply %s: %w", i, name(o), err)
			}
		}
		for _, o := range e.Deleted {
			if err := p.delete(ctx, o); err != nil {
				return fmt.Errorf("trace: event %d: delete %s: %w", i, name(o), err)
			}
		}
		p.cfg.Hooks.Played(Played{Event: i, Late: late})
	}
	return nil
}

func name(o *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", o.GetKind(), o.GetNamespace(), o.GetName())
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Player) apply(ctx context.Context, o *unstructured.Unstructured) error {
	o = portable(o)
	if p.cfg.Edit != nil {
		p.cfg.Edit(o)
	}
	client, err := p.client(o)
	if err != nil {
		return err
	}
	if err := p.createNamespace(ctx, o.GetNamespace()); err != nil {
		return err
	}
	return retry(ctx, func() error {
		_, err := client.Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		return err
	})
}

func (p *Player) delete(ctx context.Context, o *unstructured.Unstructured) error {
	client, err := p.client(o.DeepCopy())
	if err != nil {
		return err
	}
	err = retry(ctx, func() error {
		return client.Delete(ctx, o.GetName(), metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// portable returns a copy of an object without what its cluster has determined.
func portable(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	delete(o.Object, "status")
	for _, field := range []string{"uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "ownerReferences", "selfLink"} {
		unstructured.RemoveNestedField(o.Object, "metadata", field)
	}
	if pod := template(o); pod != nil {
		for _, field := range []string{"nodeName", "serviceAccountName", "serviceAccount"} {
			unstructured.RemoveNestedField(pod, "spec", field)
		}
	}
	return o
}

// client returns the client of the resource of an object, whose namespace it renames.
func (p *Player) client(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	gvk := o.GroupVersionKind()
	mapping, err := p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) { // the trace may have defined it
		p.mapper.Reset()
		mapping, err = p.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		o.SetNamespace("")
		return p.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	o.SetNamespace(p.cfg.NamespacePrefix + namespace)
	return p.dynamic.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// createNamespace creates a namespace unless it exists.
func (p *Player) createNamespace(ctx context.Context, name string) error {
	if name == "" || p.created[name] {
		return nil
	}
	n := &unstructured.Unstructured{}
	n.SetAPIVersion("v1")
	n.SetKind("Namespace")
	n.SetName(name)
	err := retry(ctx, func() error {
		_, err := p.dynamic.Resource(namespaces).Create(ctx, n, metav1.CreateOptions{FieldManager: fieldManager})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	p.created[name] = true
	return nil
}

const (
	attempts   = 5
	retryDelay = time.Second
)

// retry calls call again while it fails for the time being.
func retry(ctx context.Context, call func() error) error {
	for attempt := 1; ; attempt++ {
		err := call()
		if err == nil || attempt == attempts || !temporary(err) {
			return err
		}
		if sleep(ctx, retryDelay) != nil {
			return err
		}
	}
}

func temporary(err error) bool {
	// The controllers create the default service account of a namespace after the namespace.
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "error looking up service account") {
		return true
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsInternalError(err) ||
		apierrors.IsServiceUnavailable(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}
