// Package machine is the second wing of a kubelet: the runtime, and the resources of the machine
// that pods use.
package machine

import (
	"context"

	v1 "k8s.io/api/core/v1"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

// The Machine is the second wing of a kubelet: the runtime, and the resources of the machine that
// pods use.
type Machine struct {
	Claims     *volumes.Claims // nil: they are not supported
	Volumes    *volumes.Volumes
	Managers   *ResourceManagers // nil: there are none
	Cgroups    PodCgroups
	Runtime    PodRuntime
	Declared   DeclaredFeatures
	Allocation *allocation.Manager
	Images     *NodeImages // nil: none are collected
	Stats      *stats.Collector
	Backend    *Backend                   // nil: pods run on this machine
	CRI        internalapi.RuntimeService // nil: Config.Runtime.New returns the runtime
	NoResize   string                     // why containers cannot be resized in place; "" if they can

	node func() admission.Node // that pods must fit
	oom  stores.Component      // nil: the kernel of this machine does not kill containers
	logs stores.Component
}

// Open opens the runtime: the one of Config.Runtime.New, or one on the CRI services of this machine.
func Open(ctx context.Context, s *stores.Stores) (m *Machine, err error) {
	m = new(Machine)
	open := m.openCRI
	if s.Config.Runtime.New != nil {
		open = m.openGiven
	}
	if err := open(ctx, s); err != nil {
		return nil, err
	}
	return m, m.openAccounts(ctx, s)
}

// openCRI returns an error if pods of another node run on the machine, before it changes
// anything that they could use.
func (m *Machine) openCRI(ctx context.Context, s *stores.Stores) (err error) {
	total, err := readCapacity(s.Base)
	if err != nil {
		return err
	}
	m.node = func() admission.Node { return admissionNode(s.Base, total.Allocatable) }
	if m.Claims, err = volumes.NewClaims(s.Base, s.Cluster); err != nil {
		return err
	}
	if err = m.openVolumes(s, total.Allocatable); err != nil {
		return err
	}
	services, err := newServices(ctx, s.Base)
	if err != nil {
		return err
	}
	s.Cleanups.Add(func() error {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stores.StopTimeout)
		defer cancel()
		return services.close(closing)
	})
	m.NoResize, m.CRI = services.NoResize(), services.Service
	if services.Ledger, err = openLedger(ctx, s.Base, services); err != nil {
		return err
	}
	if m.Managers, err = newResourceManagers(ctx, s.Base, services, total.reserved, m.Claims, s.Cluster); err != nil {
		return err
	}
	if m.Cgroups, err = newCgroups(ctx, s.Base, services, total, m.Managers); err != nil {
		return err
	}
	engine, err := m.newCRI(ctx, s, services)
	if err != nil {
		return err
	}
	if err := refuseForeign(ctx, s.Base, engine); err != nil {
		return err
	}
	if m.Images, err = newImages(ctx, s.Base, engine, services.Processes); err != nil {
		return err
	}
	m.oom, err = newOOMWatcher(s.Base, m.Cgroups)
	return err
}

func (m *Machine) openVolumes(s *stores.Stores, allocatable v1.ResourceList) (err error) {
	m.Volumes, err = volumes.New(s.Base, volumes.Deps{Cluster: s.Cluster, Local: s.Local, Claims: m.Claims, Allocatable: allocatable})
	return err
}

// openAccounts constructs what records the use of the machine's resources.
func (m *Machine) openAccounts(ctx context.Context, s *stores.Stores) (err error) {
	m.Declared = newDeclaredFeatures(ctx, s.Base, m.Runtime, m.NoResize == "")
	if m.Allocation, err = newAllocation(s.Base, allocationDeps{
		Runtime: m.Runtime, NoResize: m.NoResize, node: m.node, object: s.Object, read: readNode(s.Base, s.Cluster), devices: m.Managers.advertises,
	}); err != nil {
		return err
	}
	if m.Stats, err = newStats(s.Base, m.Runtime, m.Cgroups, m.Volumes); err != nil {
		return err
	}
	logs, err := newLogRotator(s.Base, m.Runtime)
	if err != nil {
		return err
	}
	m.logs = logs.Run
	return nil
}

func (m *Machine) Components(s *stores.Stores) (all []stores.Component) {
	all = append(all, s.Queues.Objects.Deliver(func(o stores.ObjectName) { m.Volumes.ObjectChanged(o.Kind, o.Namespace, o.Name) }))
	all = append(all, m.Allocation.Run, m.Stats.Run, m.logs)
	if m.oom != nil {
		all = append(all, m.oom)
	}
	for _, more := range [][]stores.Component{m.Volumes.Components(), m.Managers.components(), m.Cgroups.components(), m.Images.components()} {
		all = append(all, more...)
	}
	return all
}
