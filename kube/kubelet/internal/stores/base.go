package stores

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

// A Base has what the constructors of all subsystems use. It is never changed.
type Base struct {
	Config        options.Config // complete
	Configuration *kubeletconfig.KubeletConfiguration
	NodeRef       v1.ObjectReference // the object of events about the node
	Record        func(runtime.Event)
	Metrics       *counters
	Traces        traces
	Pods          Pods
	Queues        *Queues
	Shutdown      *shutdown.State // of the machine
	Health        *PodPacer       // notifies the agent of pods whose health in the status has changed
	Logger        *slog.Logger

	UserNamespace UserNamespace
}

func NodeRef(name string) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// A Component runs until ctx is done, and then returns nil.
type Component = func(ctx context.Context) error

// Serve returns run as a component. A socket that cannot be served leaves the kubelet
// without that API.
func (b Base) Serve(api string, run Component) Component {
	return func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			b.Logger.Error("Failed to serve an API", "api", api, "err", err)
		}
		<-ctx.Done()
		return nil
	}
}

// Cleanups are called in reverse order.
type Cleanups []func() error

func (c *Cleanups) Add(f func() error) { *c = append(*c, f) }

func (c *Cleanups) Run() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}

// Deref returns the value of a pointer; zero if it is nil.
func Deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// StopTimeout bounds the return of the components after the context of Run is done: a
// system call on an unreachable network file system must not keep the process.
const StopTimeout = 15 * time.Second

// FlushTimeout bounds the delivery of the last statuses.
const FlushTimeout = 5 * time.Second
