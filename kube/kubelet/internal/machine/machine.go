// Package machine is the second wing of a kubelet: the runtime, and the resources of the machine
// that pods use.
package machine

import (
	"context"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

// The Machine is the second wing of a kubelet: the runtime, and the resources of the machine that
// pods use.
type Machine struct {
	total      capacity
	Services   Services
	Claims     *volumes.Claims // nil: they are not supported
	Volumes    *volumes.Volumes
	Managers   *ResourceManagers // nil: plain processes have none
	Cgroups    PodCgroups
	Runtime    PodRuntime
	Declared   DeclaredFeatures
	Allocation *allocation.Manager
	Images     *NodeImages // nil: plain processes have none
	Stats      *stats.Collector

	oom  stores.Component
	logs stores.Component
}

// OpenMachine returns an error if pods of another node run on the machine, before it changes
// anything that they could use.
func OpenMachine(ctx context.Context, s *stores.Stores) (m *Machine, err error) {
	m = new(Machine)
	if m.total, err = ReadCapacity(s.Base); err != nil {
		return nil, err
	}
	if m.Claims, err = volumes.NewClaims(s.Base, s.Cluster); err != nil {
		return nil, err
	}
	if m.Volumes, err = volumes.NewVolumes(s.Base, volumes.VolumeDeps{Cluster: s.Cluster, Files: s.Files, Claims: m.Claims, Allocatable: m.total.Allocatable}); err != nil {
		return nil, err
	}
	if m.Services, err = newServices(ctx, s.Base); err != nil {
		return nil, err
	}
	closeServices := m.Services.close
	s.Cleanups.Add(func() error {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stores.StopTimeout)
		defer cancel()
		return closeServices(closing)
	})
	if m.Services.Ledger, err = openLedger(ctx, s.Base, m.Services); err != nil {
		return nil, err
	}
	if m.Managers, err = newResourceManagers(ctx, s.Base, m.Services, m.total.reserved, m.Claims, s.Cluster); err != nil {
		return nil, err
	}
	if m.Cgroups, err = newCgroups(ctx, s.Base, m.Services, m.total, m.Managers); err != nil {
		return nil, err
	}
	m.Runtime, err = newRuntime(ctx, s.Base, runtimeDeps{
		services: m.Services, cgroups: m.Cgroups, managers: m.Managers, volumes: m.Volumes, objects: stores.ObjectsOf(s.Cluster, s.Files), cluster: s.Cluster,
		hostIPs: s.HostIPs, synced: s.History.Synced,
	})
	if err != nil {
		return nil, err
	}
	if err := refuseForeign(ctx, s.Base, m.Runtime); err != nil {
		return nil, err
	}
	return m, m.openAccounts(ctx, s)
}

// openAccounts constructs what records the use of the machine's resources.
func (m *Machine) openAccounts(ctx context.Context, s *stores.Stores) (err error) {
	resize := m.Services.NoResize()
	m.Declared = NewDeclaredFeatures(ctx, s.Base, m.Runtime, resize == "")
	if m.Allocation, err = NewAllocation(s.Base, AllocationDeps{
		Runtime: m.Runtime, NoResize: resize, total: m.total, object: s.Object, read: readNode(s.Base, s.Cluster), devices: m.Managers.advertises,
	}); err != nil {
		return err
	}
	if m.Images, err = newImages(ctx, s.Base, m.Runtime, m.Services.Processes); err != nil {
		return err
	}
	if m.Stats, err = newStats(s.Base, m.Runtime, m.Cgroups, m.Volumes); err != nil {
		return err
	}
	logs, err := NewLogRotator(s.Base, m.Runtime)
	if err != nil {
		return err
	}
	m.logs = logs.Run
	m.oom, err = newOOMWatcher(s.Base, m.Cgroups)
	return err
}

func (m *Machine) Components(s *stores.Stores) (all []stores.Component) {
	all = append(all, s.Queues.Objects.Deliver(func(o stores.ObjectName) { m.Volumes.ObjectChanged(o.Kind, o.Namespace, o.Name) }))
	all = append(all, m.Allocation.Run, m.Stats.Run, m.logs, m.oom)
	for _, more := range [][]stores.Component{m.Volumes.Components(), m.Managers.components(), m.Cgroups.components(), m.Images.components()} {
		all = append(all, more...)
	}
	return all
}
