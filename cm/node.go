package cm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/runtime"
)

// Setup creates the cgroups of pods and QoS classes and sets the enforced limits.
// Existing cgroups of pods count in their QoS classes from then on: a class gets no less
// CPU than its pods request while they are synced. A limit of kubepods that cannot be set is
// reported as an event and retried by Run. Setup returns an error if a cgroup cannot be
// created or changed, or if a reserved cgroup does not exist or cannot be limited; for the
// latter it records an event as well. It returns [ErrForeign], and changes nothing, if
// processes run in cgroups of pods that do not belong to this node.
func (m *Manager) Setup(ctx context.Context) error {
	if !m.cfg.Pods.Flat {
		missing, err := m.missingClasses()
		if err != nil {
			return err
		}
		if err := m.checkForeign(); err != nil {
			return err
		}
		for _, name := range missing {
			if err := m.apply(ctx, "create", name, cgroups.Resources{}); err != nil {
				return err
			}
		}
		if missing := m.facts.Missing(); len(missing) > 0 {
			m.log.Warn("Cgroup controllers are missing; their limits are not enforced", "controllers", missing)
		}
		if err := m.adoptPods(); err != nil {
			m.log.Warn("Failed to read cgroups of pods that an earlier agent started; their QoS classes get less CPU until these pods sync", "err", err)
		}
	}
	m.enforce(ctx)
	if err := m.enforceReserved(ctx); err != nil {
		return err
	}
	if err := m.settle(ctx); err != nil { // retried by Run
		m.log.Warn("Failed to move processes into their cgroups; will retry", "err", err)
	}
	return nil
}

// missingClasses returns the cgroups of QoS classes that do not exist, and an error if
// another one cannot be changed.
func (m *Manager) missingClasses() (missing []cgroups.Name, err error) {
	for _, class := range classes {
		name := m.root.Child(classPart(class)...)
		switch _, err := m.cfg.Tree.Read(name); {
		case errors.Is(err, fs.ErrNotExist):
			missing = append(missing, name)
		case err != nil:
			return nil, fmt.Errorf("cm: set up %s: %w", name, err)
		default:
			if err := m.checkWritable(name); err != nil {
				return nil, err
			}
		}
	}
	return missing, nil
}

type enforced struct {
	key, path string
	r         cgroups.Resources
}

// enforcedNames are the names of the reserved cgroups in messages, by key.
var enforcedNames = map[string]string{
	enforceSystemReserved: "System Reserved", enforceSystemReservedCompressible: "System Reserved Compressible",
	enforceKubeReserved: "Kube Reserved", enforceKubeReservedCompressible: "Kube Reserved Compressible",
}

// reservedCgroups returns the reserved cgroups to limit.
func (m *Manager) reservedCgroups() []enforced {
	var out []enforced
	for _, key := range m.cfg.Enforce.Keys {
		path, list := m.cfg.Enforce.SystemReservedCgroup, m.cfg.Reserved.System
		switch key {
		case enforceKubeReserved, enforceKubeReservedCompressible:
			path, list = m.cfg.Enforce.KubeReservedCgroup, m.cfg.Reserved.Kube
		case enforceSystemReserved, enforceSystemReservedCompressible:
		default:
			continue
		}
		compressible := key == enforceSystemReservedCompressible || key == enforceKubeReservedCompressible
		r := m.onCPUs(reservedResources(list, compressible))
		if m.cfg.Policy.MemoryQoS {
			r.MemoryMin = r.Memory
		}
		out = append(out, enforced{key, path, r})
	}
	return out
}

// podsLimits returns the limits of kubepods.
func (m *Manager) podsLimits() cgroups.Resources {
	list := m.cfg.Capacity
	if slices.Contains(m.cfg.Enforce.Keys, enforcePods) {
		list = allocate(list, m.cfg.Reserved.System, m.cfg.Reserved.Kube)
	}
	r := m.onCPUs(reservedResources(list, false))
	r.HugePages = m.cfg.Policy.anyHugePages()
	return r
}

func (m *Manager) onCPUs(r cgroups.Resources) cgroups.Resources {
	r.CPUs = m.cfg.Enforce.CPUs.String()
	return r
}

// enforce sets the limits of kubepods, and records an event.
func (m *Manager) enforce(ctx context.Context) {
	if m.cfg.Pods.Flat {
		return
	}
	err := m.apply(ctx, "update", m.root, m.podsLimits())
	switch {
	case err != nil && ctx.Err() != nil:
	case err != nil:
		m.event(v1.EventTypeWarning, "FailedNodeAllocatableEnforcement", fmt.Sprintf("Failed to update Node Allocatable Limits %q: %v", []string(m.root), err))
	default:
		m.event(v1.EventTypeNormal, "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods")
	}
	m.mu.Lock()
	m.unset = err != nil
	m.mu.Unlock()
}

// enforceReserved sets the limits of the reserved cgroups, and records events (rule cm-25).
func (m *Manager) enforceReserved(ctx context.Context) error {
	for _, e := range m.reservedCgroups() {
		name := enforcedNames[e.key]
		if err := m.limitExisting(ctx, e); err != nil {
			//lint:ignore ST1005 cm-25: word for word
			err = fmt.Errorf("Failed to enforce %s Cgroup Limits on %q: %w", name, e.path, err)
			if ctx.Err() == nil {
				m.event(v1.EventTypeWarning, "FailedNodeAllocatableEnforcement", err.Error())
			}
			return err
		}
		of := strings.ToLower(strings.TrimSuffix(name, " Compressible"))
		m.event(v1.EventTypeNormal, "NodeAllocatableEnforced", fmt.Sprintf("Updated limits on %s cgroup %v", of, e.path))
	}
	return nil
}

// limitExisting sets the limits of a reserved cgroup, which must exist. It may lack
// controllers, as systemd's own slices do: setting the limit adds them.
func (m *Manager) limitExisting(ctx context.Context, e enforced) error {
	name := cgroups.ParsePath(e.path, m.cfg.Driver)
	if _, err := m.cfg.Tree.Children(name); err != nil {
		return fmt.Errorf("cgroup must exist: %w", err)
	}
	return m.apply(ctx, "update", name, e.r)
}

func (m *Manager) event(eventType, reason, message string) {
	m.cfg.Events.Record(runtime.Event{Object: m.cfg.Events.Node, Type: eventType, Reason: reason, Message: message})
}

// updateQOS sets the cgroups of the QoS classes if the requests of their pods have
// changed, or in any case if anyway is true.
func (m *Manager) updateQOS(ctx context.Context, anyway bool) error {
	if m.cfg.Pods.Flat {
		return nil
	}
	if err := m.classes.take(ctx); err != nil {
		return err
	}
	defer m.classes.give()
	m.mu.Lock()
	demand := m.demand
	m.mu.Unlock()
	want := m.cfg.Policy.qosLimits(demand, m.Allocatable())
	var errs []error
	for _, c := range []struct {
		name       cgroups.Name
		last, want cgroups.Resources
	}{
		{m.root, m.lastQOS.Kubepods, want.Kubepods},
		{m.root.Child("burstable"), m.lastQOS.Burstable, want.Burstable},
		{m.root.Child("besteffort"), m.lastQOS.BestEffort, want.BestEffort},
	} {
		if m.facts.Only(c.want).String() == "" || !anyway && m.qosKnown && len(cgroups.Drift(m.facts.AsRead(c.last), m.facts.AsRead(c.want))) == 0 {
			continue
		}
		if anyway {
			if has, err := m.cfg.Tree.Read(c.name); err == nil && len(cgroups.Drift(has, m.facts.AsRead(c.want))) == 0 {
				continue
			}
		}
		errs = append(errs, m.setClass(ctx, c.name, c.want))
	}
	err := errors.Join(errs...)
	m.lastQOS, m.qosKnown = want, err == nil
	return err
}

// setClass sets the cgroup of a QoS class. A memory limit below the usage is retried with
// the usage.
func (m *Manager) setClass(ctx context.Context, name cgroups.Name, r cgroups.Resources) error {
	err := m.apply(ctx, "update", name, r)
	if err == nil || r.Memory == nil {
		return err
	}
	stats, also := m.cfg.Tree.Stats(name)
	if also != nil || stats.Memory == nil || int64(stats.Memory.Usage) <= *r.Memory {
		return err
	}
	r.Memory = new(int64(stats.Memory.Usage))
	return m.apply(ctx, "update", name, r)
}

// Sync retries limits that could not be set, updates the cgroups of the QoS classes,
// corrects cgroups that other programs have changed, and moves processes into their
// cgroups. The returned error joins the failures; the next call retries them.
func (m *Manager) Sync(ctx context.Context) error { return m.sync(ctx, 0) }

// sync is Sync, except that cgroups of pods that were checked after the time fresh ago are
// not checked again.
func (m *Manager) sync(ctx context.Context, fresh time.Duration) error {
	m.mu.Lock()
	unset := m.unset
	pods := make([]*cgroupState, 0, len(m.pods))
	for _, h := range m.pods {
		pods = append(pods, h)
	}
	m.mu.Unlock()
	if unset {
		m.enforce(ctx)
	}
	m.releaseVanished()
	errs := []error{m.updateQOS(ctx, true), m.settle(ctx)}
	for _, h := range pods {
		if ctx.Err() != nil {
			break
		}
		errs = append(errs, m.correct(ctx, h, fresh))
	}
	return errors.Join(errs...)
}

// correct corrects one pod's cgroup, unless it was checked after the time fresh ago. A
// missing cgroup is left to the pod's next sync, since it may be about to be removed.
func (m *Manager) correct(ctx context.Context, h *cgroupState, fresh time.Duration) error {
	if err := h.busy.take(ctx); err != nil {
		return err
	}
	defer h.busy.give()
	if time.Since(h.checked) < fresh {
		return nil
	}
	has, err := m.cfg.Tree.Read(h.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cm: %w", err)
	}
	return m.repair(ctx, h, has)
}

// syncPeriod is the time between two passes of Run, checkPeriod that between two checks of
// the values of a pod's cgroup.
const syncPeriod, checkPeriod = time.Minute, 5 * time.Minute

// Run does the same as [Manager.Sync] every minute until ctx is done, and returns nil. It
// checks the cgroup of each pod every five minutes. [Manager.Setup] must be called first.
// A second call returns an error.
func (m *Manager) Run(ctx context.Context) error {
	if err := m.ran.Enter("cm: Manager"); err != nil {
		return err
	}
	tick := time.NewTicker(syncPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			if err := m.sync(ctx, checkPeriod); err != nil && ctx.Err() == nil {
				m.log.Warn("Failed to sync cgroups; will retry", "err", err)
			}
		}
	}
}
