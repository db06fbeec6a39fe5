package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// A Strategy says how Secrets and ConfigMaps are kept (oc-1).
type Strategy int

// The strategies.
const (
	// Watch follows each object that a pod refers to: reads are free, changes
	// are told at once.
	Watch Strategy = iota

	// Cache reads an object again when it is older than the TTL, and at the
	// first read after a pod was registered.
	Cache

	// Get reads it each time.
	Get
)

// String returns the name that the strategy has in a KubeletConfiguration
// (configMapAndSecretChangeDetectionStrategy).
func (s Strategy) String() string {
	names := []string{"Watch", "Cache", "Get"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("Strategy(%d)", int(s))
	}
	return names[s]
}

// ParseStrategy returns the strategy of that name.
func ParseStrategy(name string) (Strategy, error) {
	for s := Watch; s <= Get; s++ {
		if s.String() == name {
			return s, nil
		}
	}
	return 0, fmt.Errorf("client: there is no strategy %q: it is Watch, Cache or Get", name)
}

// An ObjectsConfig says how objects are kept.
type ObjectsConfig struct {
	// Client reads them. Required.
	Client kubernetes.Interface

	// Strategy is that for Secrets and ConfigMaps. Services, RuntimeClasses and
	// CSIDrivers are always watched, as far as they are needed.
	Strategy Strategy

	// TTL is how old an object may be in strategy Cache: TTLOf the node's
	// object. Nil, or zero from it: 1m (oc-7).
	TTL func() time.Duration

	// Wait is how long a read waits for an object that is not known yet. 0
	// means 1s (oc-3).
	Wait time.Duration

	// Grace is how long an object is kept after the last pod that refers to it
	// was unregistered, or after it was read though no pod refers to it. 0
	// means 60s (F-44).
	Grace time.Duration

	// Idle is how long an object is watched that nobody reads. It is watched
	// again at the next read. 0 means 5m (oc-6). Objects in volumes are watched
	// for as long as they are mounted if there is a Changed.
	Idle time.Duration

	// Changed is told that an object is another one than was last read, or is
	// there, or is not any more (F-43). Only strategy Watch knows. It is called
	// from several goroutines, and must not block. Nil: nobody wants to know.
	Changed func(kind, namespace, name string)

	// Logger gets what goes wrong. Nil discards.
	Logger *slog.Logger
}

// Objects holds what pods refer to by name, as far as they do: there is one
// watch for each object, and no list of all Secrets of a cluster (oc-2). It is
// the Objects of runtime/cri, of volume and of podworker, and the RuntimeClass
// of runtime/cri.
//
// A read of an object that no registered pod refers to is no error, as it is
// with the kubelet (oc-4): it is followed for a while. What does not exist is
// NotFound, as the API says it (oc-8); when the API cannot be asked, the error
// is what it answered, or says that there was no answer.
//
// All methods may be called at any time; reads wait until Run has been started.
// What they return is shared, and nobody changes it.
type Objects struct {
	cfg ObjectsConfig
	ran atomic.Bool // Run was called

	mu      sync.Mutex // guards the fields below
	pods    map[types.UID]registered
	entries map[key]*entry
	dirty   chan struct{} // capacity 1: Run has something to start or to stop
}

// A registered pod and what it refers to.
type registered struct {
	namespace string
	refs      map[key]use
}

// NewObjects checks cfg and returns an Objects.
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

// Register says that the pod is about to be worked on (oc-2). A second call
// replaces what the first one said.
func (o *Objects) Register(pod *v1.Pod) {
	refs := references(pod)
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.pods[pod.UID]
	o.pods[pod.UID] = registered{pod.Namespace, refs}
	for k, u := range refs {
		e := o.entryLocked(k)
		if _, known := e.refs[pod.UID]; !known {
			e.refresh = true // oc-7
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

// Unregister says that nothing of the pod will be asked for any more.
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

// entryLocked returns the entry of k, new if there is none.
func (o *Objects) entryLocked(k key) *entry {
	e := o.entries[k]
	if e == nil {
		now := time.Now()
		e = &entry{
			key: k, o: o, refs: map[types.UID]use{}, objects: map[string]metav1.Object{},
			news: make(chan struct{}), used: now, until: now.Add(o.cfg.Grace),
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
	if len(e.refs) == 0 {
		e.until = time.Now().Add(o.cfg.Grace)
	}
}

// Secret returns a Secret.
func (o *Objects) Secret(ctx context.Context, namespace, name string) (*v1.Secret, error) {
	return typed[*v1.Secret](o.read(ctx, key{kindSecret, namespace, name}))
}

// ConfigMap returns a ConfigMap.
func (o *Objects) ConfigMap(ctx context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return typed[*v1.ConfigMap](o.read(ctx, key{kindConfigMap, namespace, name}))
}

// CSIDriver returns what a cluster says of a CSI driver.
func (o *Objects) CSIDriver(ctx context.Context, name string) (*storagev1.CSIDriver, error) {
	return typed[*storagev1.CSIDriver](o.watched(ctx.Done(), key{kindCSIDriver, "", name}))
}

// RuntimeClass returns the runtime handler of a class (rt-20); "" has "".
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

// Services returns those that variables are made from (pe-12): all of the
// namespace, if one of its registered pods wants any (enableServiceLinks), and
// the one called kubernetes in the namespace default. ok is false as long as
// they have not been read.
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
			o.cfg.Logger.Warn("services are not known", "namespace", k.namespace, "err", err)
			return nil, false
		}
		for _, service := range all {
			list = append(list, service.(*v1.Service))
		}
	}
	slices.SortFunc(list, func(a, b *v1.Service) int { return compareNames(a, b) })
	return list, true
}

// linked reports whether services of the namespace are wanted: by one of its
// pods, or by one that nobody registered.
func (o *Objects) linked(namespace string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := false
	for _, pod := range o.pods {
		if pod.namespace == namespace {
			if _, ok := pod.refs[key{kindService, namespace, ""}]; ok {
				return true
			}
			known = true
		}
	}
	return !known
}

// typed makes the type of what was read.
func typed[T metav1.Object](object metav1.Object, err error) (T, error) {
	var none T
	if err != nil {
		return none, err
	}
	return object.(T), nil
}
