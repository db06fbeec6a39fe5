package kubelet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/shutdown"
)

// A base has what the constructors of all subsystems use. It is never changed.
type base struct {
	cfg      Config // complete
	k        *kubeletconfig.KubeletConfiguration
	nodeRef  v1.ObjectReference // the object of events about the node
	record   func(runtime.Event)
	metrics  *counters
	traces   traces
	pods     pods
	queues   *queues
	shutdown *shutdown.State // of the machine
	health   *podPacer       // notifies the agent of pods whose health in the status has changed
	logger   *slog.Logger

	userNamespace userNamespace
}

func nodeRef(name string) v1.ObjectReference {
	return v1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// A component runs until ctx is done, and then returns nil.
type component = func(ctx context.Context) error

// serve returns run as a component. A socket that cannot be served leaves the kubelet
// without that API.
func (b base) serve(api string, run component) component {
	return func(ctx context.Context) error {
		if err := run(ctx); err != nil {
			b.logger.Error("Failed to serve an API", "api", api, "err", err)
		}
		<-ctx.Done()
		return nil
	}
}

// cleanups are called in reverse order.
type cleanups []func() error

func (c *cleanups) add(f func() error) { *c = append(*c, f) }

func (c *cleanups) run() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}

// deref returns the value of a pointer; zero if it is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// stopTimeout bounds the return of the components after the context of Run is done: a
// system call on an unreachable network file system must not keep the process.
const stopTimeout = 15 * time.Second

// flushTimeout bounds the delivery of the last statuses.
const flushTimeout = 5 * time.Second
