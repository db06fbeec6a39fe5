package kubelet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path"
	"reflect"
	goruntime "runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/edge"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/member"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
)

// A Kubelet is one node. Open constructs it.
type Kubelet struct {
	stores     *stores.Stores
	pods       *podwing.Pipeline
	edge       *edge.Edge
	components []stores.Component
	released   atomic.Bool // Run or Close was called
}

// Open constructs a kubelet. It locks RootDir, opens the listeners, connects to the runtime
// and reads the state in RootDir, but runs nothing. ctx bounds its calls, not the kubelet.
//
// It returns an error that names the field of cfg or of its Configuration that is invalid,
// or the subsystem that could not be constructed. It returns an error if pods run in the
// runtime or below the cgroup root that belong to another node: those that neither RootDir
// nor an earlier kubelet with this RootDir knows. Run or Close must be called.
func Open(ctx context.Context, cfg Config) (*Kubelet, error) {
	cfg, err := stores.Complete(cfg)
	if err != nil {
		return nil, err
	}
	stores.LogConfiguration(ctx, cfg)
	return openWings(ctx, cfg)
}

// openWings opens the wings of the kubelet in the order of their dependencies: each reads those before
// it, and none a later one.
func openWings(ctx context.Context, cfg Config) (k *Kubelet, err error) {
	s, err := stores.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Cleanups.Run())
		}
	}()
	m, err := machine.Open(ctx, s)
	if err != nil {
		return nil, err
	}
	p, err := podwing.Open(ctx, s, m)
	if err != nil {
		return nil, err
	}
	n, err := member.Open(s, m, p)
	if err != nil {
		return nil, err
	}
	e, err := edge.Open(s, m, p)
	if err != nil {
		return nil, err
	}
	return &Kubelet{
		stores: s, pods: p, edge: e,
		components: slices.Concat(s.Components(), n.Components(s, p), m.Components(s), p.Components(), e.Components()),
	}, nil
}

// Run runs the kubelet until ctx is done and returns nil when it has stopped; the pods keep
// running, unless Drain has terminated them. Statuses that are not delivered within 5
// seconds of that are delivered by the next kubelet. Run returns the error of a component
// that fails, after it has stopped the others. It must be called once: a second call, and
// a call after Close, return an error.
func (k *Kubelet) Run(ctx context.Context) (err error) {
	if k.released.Swap(true) {
		return errors.New("kubelet: Run or Close was called before")
	}
	defer func() { err = errors.Join(err, k.stores.Cleanups.Run()) }()
	if h := k.pods.Agent.Health(); h != nil {
		h.First(ctx) // before the first status of the node
	}
	return runComponents(ctx, k.components, func(ctx context.Context) {
		k.edge.Stopping()
		_ = k.pods.Agent.Status().Flush(ctx)
	})
}

// runComponents runs the components until ctx is done or one fails. They run during flush,
// which is called if ctx is done.
func runComponents(ctx context.Context, components []stores.Component, flush func(context.Context)) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, running := errgroup.WithContext(running)
	returned := make([]atomic.Bool, len(components))
	for i, c := range components {
		group.Go(func() error {
			defer returned[i].Store(true)
			return c(running)
		})
	}
	stopped := make(chan error, 1)
	go func() { stopped <- group.Wait() }()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		flushing, cancel := context.WithTimeout(running, stores.FlushTimeout)
		flush(flushing)
		cancel()
	case <-running.Done():
	}
	stop()
	select {
	case err := <-stopped:
		return err
	case <-time.After(stores.StopTimeout):
		var left []string
		for i, c := range components {
			if !returned[i].Load() {
				left = append(left, componentName(c))
			}
		}
		return fmt.Errorf("components have not returned within %v: %s", stores.StopTimeout, strings.Join(left, ", "))
	}
}

// componentName returns the name of the function or method, such as agent.(*Agent).Run.
func componentName(c stores.Component) string {
	return strings.TrimSuffix(path.Base(goruntime.FuncForPC(reflect.ValueOf(c).Pointer()).Name()), "-fm")
}

// Drain terminates all pods of a standalone kubelet and delivers their last statuses, as
// agent.Agent.Drain does. Run must be running. The pods of a cluster are terminated by the
// API server (kubectl drain); with one, Drain terminates them all the same, and the API
// server does not replace them while their objects exist.
func (k *Kubelet) Drain(ctx context.Context) error { return k.pods.Agent.Drain(ctx) }

// Close releases what Open has acquired, if Run is not called. After Run or Close it has no
// effect, since Run releases it when it returns.
func (k *Kubelet) Close() error {
	if k.released.Swap(true) {
		return nil
	}
	return k.stores.Cleanups.Run()
}

// ObjectChanged reports that an object of Config.Objects.Source was created, changed or deleted: volumes with
// its data are updated. kind is "ConfigMap" or "Secret". It does not block, and has an effect when Run
// is called.
func (k *Kubelet) ObjectChanged(kind, namespace, name string) {
	k.stores.Queues.Objects.Add(stores.ObjectName{Kind: kind, Namespace: namespace, Name: name})
}

// Agent returns the agent, with the parts of the pod pipeline.
func (k *Kubelet) Agent() *agent.Agent { return k.pods.Agent }

// APIAddr returns the address of the kubelet's API, such as the one that was chosen for
// port: -1. It is nil if the API is not served.
func (k *Kubelet) APIAddr() net.Addr { return k.edge.APIAddr }

// StatusPage returns the handler of package agent/statuspage for this kubelet: the status
// page, /healthz, /pods, /explain, /metrics and /stats/summary, without authentication and
// with hidden values of environments and annotations. It must not be exposed to untrusted
// networks.
func (k *Kubelet) StatusPage() http.Handler { return k.edge.Page }
