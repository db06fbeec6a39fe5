package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// A Strategy determines how Secrets and ConfigMaps are read
// (configMapAndSecretChangeDetectionStrategy).
type Strategy int

// Strategies.
const (
	// Watch watches each object that a pod refers to: reads are local, and changes are
	// reported immediately.
	Watch Strategy = iota

	// Cache reads an object again if it is older than the TTL, and at the first read after
	// a pod was registered.
	Cache

	// Get reads the object each time.
	Get
)

// String returns the name of the strategy in a KubeletConfiguration.
func (s Strategy) String() string {
	names := []string{"Watch", "Cache", "Get"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
	return names[s]
}

// ParseStrategy returns the strategy with a name.
func ParseStrategy(name string) (Strategy, error) {
	for s := Watch; s <= Get; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("client: unknown strategy %q: want Watch, Cache or Get", name)
}

// An ObjectsConfig configures an Objects.
type ObjectsConfig struct {
	// Client reads the objects. Required.
	Client kubernetes.Interface

	// Strategy applies to Secrets and ConfigMaps. Services, RuntimeClasses and CSIDrivers
	// are always watched while they are needed.
	Strategy Strategy

	// TTL returns the maximum age of objects with the strategy Cache: TTLOf the Node
	// object. Nil or zero: 1m.
	TTL func() time.Duration

	// Wait is the maximum time for which a read waits for the first list of an object.
	// Zero: 1s.
	Wait time.Duration

	// Grace is the time for which an object is cached after the last pod that refers to it
	// was unregistered, or after a read that no pod has registered. An immutable object is
	// read again when another pod is registered. Zero: 1m.
	Grace time.Duration

	// Idle is the time after which an object that is not read is no longer watched; the
	// next read watches it again. Zero: 5m. If Changed is set, objects in volumes are
	// watched while they are mounted.
	Idle time.Duration

	// Changed is called when an object has changed since it was last read, was created, or
	// deleted. It is called with the strategy Watch only, from several goroutines, and must
	// not block. May be nil.
	Changed func(kind, namespace, name string)

	// Logger receives errors. If nil, nothing is logged.
	Logger *slog.Logger
}

// Objects reads the objects that pods refer to by name. There is one watch for each object,
// and no list of all Secrets of a cluster (rule oc-2). It implements the Objects of
// runtime/cri, volume and podworker, and the RuntimeClass of runtime/cri.
//
// Reading an object that no registered pod refers to is not an error, unlike with the
// kubelet: it is watched for a while. Errors are NotFound, as of the API server, for
// objects that do not exist; otherwise the error of the API server, or that it did not
// respond.
//
// Safe for concurrent use; reads block until Run was called. The returned objects are
// shared and must not be modified.
type Objects struct {
	cfg ObjectsConfig
	ran atomic.Bool // Run was called

	mu      sync.Mutex // guards the fields below
	pods    map[types.UID]registered
	entries map[key]*entry
	dirty   chan struct{} // capacity 1; Run must start or stop watches
}

// A registered is a registered pod and its references.
type registered struct {
	namespace string
	refs      map[key]use
}

// NewObjects returns an Objects, or an error if cfg is invalid. It starts nothing.
func NewObjects(cfg ObjectsConfig) (*Objects, error) {
	switch {
	case cfg.Client == nil:
		return nil, errors.New("client: ObjectsConfig.Client is nil")
	case cfg.Strategy < Watch || cfg.Strategy > Get:
		return nil, fmt.Errorf("client: ObjectsConfig.Strategy is %v", cfg.Strategy)
	case cfg.Wait < 0 || cfg.Grace < 0 || cfg.Idle < 0:
		return nil, errors.New("client: ObjectsConfig.Wait, Grace or Idle is negative")
	}
	cfg.Wait, cfg.Grace, cfg.Idle = or(cfg.Wait, time.Second), or(cfg.Grace, time.Minute), or(cfg.Idle, 5*time.Minute)
	cfg.Logger = quiet(cfg.Logger)
	return &Objects{
		cfg:     cfg,
		pods:    map[types.UID]registered{},
		entries: map[key]*entry{},
		dirty:   make(chan struct{}, 1),
	}, nil
}

// Register registers a pod that is about to be synced, with the objects that it refers to
// (rule oc-2). A second call replaces the references of the first one.
func (o *Objects) Register(pod *v1.Pod) {
	refs := references(pod)
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.pods[pod.UID]
	o.pods[pod.UID] = registered{pod.Namespace, refs}
	for k, u := range refs {
		e := o.entryLocked(k)
		if _, ok := e.refs[pod.UID]; !ok {
			e.claimLocked()
		}
		e.refs[pod.UID] = u
	}
	for k := range was.refs {
		if _, still := refs[k]; !still {
			o.releaseLocked(k, pod.UID)
		}
	}
	o.wake()
}

// Unregister removes the references of a pod.
func (o *Objects) Unregister(uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was, ok := o.pods[uid]
	if !ok {
		return
	}
	delete(o.pods, uid)
	for k := range was.refs {
		o.releaseLocked(k, uid)
	}
	o.wake()
}

// Retain removes the references of every pod that keep rejects. keep must not call the Objects.
// It implements podworker.Retainer and returns nil.
func (o *Objects) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	o.mu.Lock()
	gone := slices.DeleteFunc(slices.Collect(maps.Keys(o.pods)), keep)
	o.mu.Unlock()
	for _, uid := range gone {
		o.Unregister(uid)
	}
	return nil
}

// entryLocked returns the entry of k, which it creates if there is none.
func (o *Objects) entryLocked(k key) *entry {
	e := o.entries[k]
	if e == nil {
		now := time.Now()
		e = &entry{
			key: k, o: o, refs: map[types.UID]use{}, objects: map[string]metav1.Object{},
			changed: make(chan struct{}), used: now, until: now.Add(o.cfg.Grace),
		}
		o.entries[k] = e
	}
	return e
}

func (o *Objects) releaseLocked(k key, uid types.UID) {
	e := o.entries[k]
	if e == nil {
		return
	}
	delete(e.refs, uid)
	e.held = e.held && len(e.refs) > 0
	e.keepLocked(time.Now())
}

// Secret returns a Secret.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return typed[*v1.Secret](o.read(ctx, key{kindSecret, namespace, name}))
}

// ConfigMap returns a ConfigMap.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return typed[*v1.ConfigMap](o.read(ctx, key{kindConfigMap, namespace, name}))
}

// CSIDriver returns a CSIDriver.
func (o *Objects) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return typed[*storagev1.CSIDriver](o.watched(ctx.Done(), key{kindCSIDriver, "", name}))
}

// RuntimeClass returns the handler of a RuntimeClass (rule rt-20); "" if name is empty.
func (o *Objects) RuntimeClass(name string) (handler string, err error) {
	if name == "" {
		return "", nil
	}
	class, err := typed[*nodev1.RuntimeClass](o.watched(nil, key{kindRuntimeClass, "", name}))
	if err != nil {
		return "", err
	}
	return class.Handler, nil
}

// Services returns the services of which environment variables are created (rule pe-12):
// all of the namespace, if one of its registered pods has enableServiceLinks, and
// kubernetes in the namespace default. ok is false if they could not be read.
func (o *Objects) Services(ctx context.Context, namespace string) (list []*v1.Service, ok bool) {
	keys := []key{{kindService, namespace, ""}}
	if namespace != kubernetesService.namespace {
		keys = append(keys, kubernetesService)
	}
	if !o.linked(namespace) {
		keys = []key{kubernetesService}
	}
	for _, k := range keys {
		all, err := o.all(ctx.Done(), k)
		if err != nil {
			o.cfg.Logger.Warn("Failed to read services; containers with service environment variables are not started", "namespace", k.namespace, "err", err)
			return nil, false
		}
		for _, service := range all {
			list = append(list, service.(*v1.Service))
		}
	}
	slices.SortFunc(list, func(a, b *v1.Service) int { return compareNames(a, b) })
	return list, true
}

// linked reports whether a pod of the namespace has enableServiceLinks; true if no pod of
// it is registered.
func (o *Objects) linked(namespace string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := false
	for _, pod := range o.pods {
		if pod.namespace == namespace {
			if _, ok := pod.refs[key{kindService, namespace, ""}]; ok {
				return true
			}
			found = true
		}
	}
	return !found
}

// typed converts the type of a result.
func typed[T metav1.Object](object metav1.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	return object.(T), nil
}
