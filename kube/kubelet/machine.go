package kubelet

import (
	"context"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm/stats"
)

// The machine is the second wing of a kubelet: the runtime, and the resources of the machine that
// pods use.
type machine struct {
	total      capacity
	services   services
	claims     *claims // nil: they are not supported
	volumes    *volumes
	managers   *resourceManagers // nil: plain processes have none
	cgroups    podCgroups
	runtime    podRuntime
	declared   declaredFeatures
	allocation *allocation.Manager
	images     *nodeImages // nil: plain processes have none
	stats      *stats.Collector

	oom  component
	logs component
}

// openMachine returns an error if pods of another node run on the machine, before it changes
// anything that they could use.
func openMachine(ctx context.Context, s *stores) (m *machine, err error) {
	m = new(machine)
	if m.total, err = readCapacity(s.base); err != nil {
		return nil, err
	}
	if m.claims, err = newClaims(s.base, s.cluster); err != nil {
		return nil, err
	}
	if m.volumes, err = newVolumes(s.base, volumeDeps{cluster: s.cluster, files: s.files, claims: m.claims, allocatable: m.total.allocatable}); err != nil {
		return nil, err
	}
	if m.services, err = newServices(ctx, s.base); err != nil {
		return nil, err
	}
	closeServices := m.services.close
	s.cleanups.add(func() error {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		return closeServices(closing)
	})
	if m.services.ledger, err = openLedger(ctx, s.base, m.services); err != nil {
		return nil, err
	}
	if m.managers, err = newResourceManagers(ctx, s.base, m.services, m.total.reserved, m.claims, s.cluster); err != nil {
		return nil, err
	}
	if m.cgroups, err = newCgroups(ctx, s.base, m.services, m.total, m.managers); err != nil {
		return nil, err
	}
	m.runtime, err = newRuntime(ctx, s.base, runtimeDeps{
		services: m.services, cgroups: m.cgroups, managers: m.managers, volumes: m.volumes, objects: objectsOf(s.cluster, s.files), cluster: s.cluster,
		hostIPs: s.hostIPs, synced: s.history.Synced,
	})
	if err != nil {
		return nil, err
	}
	if err := refuseForeign(ctx, s.base, m.runtime); err != nil {
		return nil, err
	}
	return m, m.openAccounts(ctx, s)
}

// openAccounts constructs what records the use of the machine's resources.
func (m *machine) openAccounts(ctx context.Context, s *stores) (err error) {
	resize := m.services.noResize()
	m.declared = newDeclaredFeatures(ctx, s.base, m.runtime, resize == "")
	if m.allocation, err = newAllocation(s.base, allocationDeps{
		runtime: m.runtime, noResize: resize, total: m.total, object: s.object, read: readNode(s.base, s.cluster), devices: m.managers.advertises,
	}); err != nil {
		return err
	}
	if m.images, err = newImages(ctx, s.base, m.runtime, m.services.Processes); err != nil {
		return err
	}
	if m.stats, err = newStats(s.base, m.runtime, m.cgroups, m.volumes); err != nil {
		return err
	}
	logs, err := newLogRotator(s.base, m.runtime)
	if err != nil {
		return err
	}
	m.logs = logs.Run
	m.oom, err = newOOMWatcher(s.base, m.cgroups)
	return err
}

func (m *machine) components(s *stores) (all []component) {
	all = append(all, s.queues.objects.deliver(func(o objectName) { m.volumes.ObjectChanged(o.kind, o.namespace, o.name) }))
	all = append(all, m.allocation.Run, m.stats.Run, m.logs, m.oom)
	for _, more := range [][]component{m.volumes.components(), m.managers.components(), m.cgroups.components(), m.images.components()} {
		all = append(all, more...)
	}
	return all
}
