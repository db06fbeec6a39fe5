package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
)

// A Backend describes the machines of pods that do not run on this machine. A nil *Backend describes none.
type Backend struct {
	reporter options.NodeReporter
	latest   atomic.Pointer[options.NodeInfo]
}

// openBackend returns the Backend of Config.Runtime.Node; nil if there is none.
func openBackend(ctx context.Context, b stores.Base) (*Backend, error) {
	if b.Config.Runtime.Node == nil {
		return nil, nil
	}
	backend := &Backend{reporter: b.Config.Runtime.Node}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if err := backend.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("Config.Runtime.Node: %w", err)
	}
	return backend, nil
}

// Refresh queries the backend. After an error the last description remains.
func (b *Backend) Refresh(ctx context.Context) error {
	if b == nil {
		return nil
	}
	info, err := b.reporter.NodeInfo(ctx)
	if err == nil && (info.Capacity.Cpu().IsZero() || info.Capacity.Memory().IsZero()) {
		err = errors.New("the capacity has no cpu or no memory")
	}
	if err != nil {
		return fmt.Errorf("description of the node: %w", err)
	}
	if info.Allocatable == nil {
		info.Allocatable = info.Capacity
	}
	b.latest.Store(&info)
	return nil
}

// Info returns the last description, which must not be changed; nil of a nil *Backend.
func (b *Backend) Info() *options.NodeInfo {
	if b == nil {
		return nil
	}
	return b.latest.Load()
}

// capacity returns the present resources of the backend, or of this machine if b is nil.
func (b *Backend) capacity(base stores.Base) (capacity, error) {
	if info := b.Info(); info != nil {
		return capacity{Total: info.Capacity, Allocatable: info.Allocatable}, nil
	}
	return readCapacity(base)
}

// admission returns the node that pods must fit. If b is nil, it is this machine, with the allocatable
// resources machine.
func (b *Backend) admission(base stores.Base, machine v1.ResourceList) admission.Node {
	info := b.Info()
	if info == nil {
		return admissionNode(base, machine)
	}
	n := admissionNode(base, info.Allocatable)
	labels := maps.Clone(n.Labels)
	if info.OS != "" {
		n.OS, labels[v1.LabelOSStable] = info.OS, info.OS
	}
	if info.Arch != "" {
		labels[v1.LabelArchStable] = info.Arch
	}
	n.Labels = labels
	return n
}

// version returns the version for the node status.
func (b *Backend) version(context.Context) (string, error) {
	if info := b.Info(); info != nil {
		return info.Version, nil
	}
	return "", nil
}
