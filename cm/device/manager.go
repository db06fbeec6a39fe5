package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/runonce"
)

// A Manager allocates the devices of plugins to containers. It is a topology.Provider and a
// topology.Reserver.
// Safe for concurrent use.
type Manager struct {
	cfg     Config
	ran     runonce.Guard
	fresh   bool
	turn    chan struct{}  // held while devices are selected
	plugins sync.WaitGroup // of Run

	// mu guards the fields below.
	mu             sync.Mutex
	ledger         ledger
	version, saved uint64 // of the ledger in memory and on disk

	disk chan struct{} // held by the goroutine that writes the state, without mu
}

// Open returns a Manager for cfg and restores its checkpoint. It starts nothing.
func Open(cfg Config) (*Manager, error) {
	if cfg.Dir == "" {
		return nil, errors.New("device: Config.Dir is empty")
	}
	if cfg.Store == nil {
		cfg.Store = state.File(filepath.Join(cfg.Dir, stateFile))
	}
	if cfg.Timing.Grace == 0 {
		cfg.Timing.Grace = 5 * time.Minute
	}
	if cfg.Timing.CallTimeout == 0 {
		cfg.Timing.CallTimeout = preStartTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{cfg: cfg, turn: make(chan struct{}, 1), disk: make(chan struct{}, 1), ledger: newLedger()}
	saved, found, err := state.Restore(cfg.Store, decode, nil, cfg.Logger)
	if err != nil {
		return nil, fmt.Errorf("device: %w", err)
	}
	m.fresh = !found
	if saved.grants != nil {
		m.ledger = saved
	}
	m.adopt()
	m.idle()
	return m, nil
}

// idle marks the allocations of pods without running containers: after a reboot the
// plugins must prepare their devices again.
func (m *Manager) idle() {
	if m.cfg.Pods == nil {
		return
	}
	for h, granted := range m.ledger.grants {
		if m.cfg.Pods.Ran(h.uid) {
			continue
		}
		for name, g := range granted {
			g.idle, g.Response = true, nil
			granted[name] = g
		}
	}
}

// adopt adds the devices of running containers that are not in the checkpoint.
func (m *Manager) adopt() {
	for _, a := range m.cfg.Adopt {
		h := holder{a.PodUID, a.Container}
		for name, ids := range a.Devices {
			if _, known := m.ledger.grants[h][name]; known || len(ids) == 0 {
				continue
			}
			g := grant{IDs: map[string]topology.Mask{}}
			for _, id := range ids {
				g.IDs[id] = 0
			}
			m.ledger.of(name)
			m.ledger.give(h, name, g)
		}
	}
}

// Fresh reports whether there was no checkpoint when the manager was opened. The
// resources of plugins in an existing node object are then obsolete.
func (m *Manager) Fresh() bool { return m.fresh }

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	for c := range podspec.Containers(pod) {
		if len(m.requestedDevices(pod, c)) > 0 {
			return true
		}
	}
	return false
}

// requestedDevices returns the number of devices by resource in the limits of a container. With
// RefuseLate it omits resources that no plugin offers or has offered.
func (m *Manager) requestedDevices(pod *v1.Pod, c *v1.Container) map[string]int {
	all := m.asks(pod, c)
	if len(all) == 0 || !m.cfg.RefuseLate {
		return all
	}
	maps.DeleteFunc(all, func(name string, _ int) bool { return !m.known(name) })
	return all
}

// known reports whether a plugin offers or has offered a resource.
func (m *Manager) known(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ledger.resources[name] != nil {
		return true
	}
	for _, granted := range m.ledger.grants {
		if _, ok := granted[name]; ok {
			return true
		}
	}
	return false
}

// asks returns the limits of a container for resources that a plugin could offer. Resources
// that the scheduler has mapped to a ResourceClaim of the pod are allocated by it.
func (m *Manager) asks(pod *v1.Pod, c *v1.Container) map[string]int {
	all := map[string]int{}
	for name, amount := range c.Resources.Limits {
		n := amount.Value()
		if n <= 0 || !extended(string(name)) || claimed(pod, c, name) {
			continue
		}
		if m.cfg.Elsewhere != nil && !m.known(string(name)) && m.cfg.Elsewhere(string(name)) {
			continue
		}
		all[string(name)] = int(min(n, 1<<30))
	}
	return all
}

// claimed reports whether a ResourceClaim provides an extended resource of a container.
func claimed(pod *v1.Pod, c *v1.Container, name v1.ResourceName) bool {
	s := pod.Status.ExtendedResourceClaimStatus
	return s != nil && slices.ContainsFunc(s.RequestMappings, func(m v1.ContainerExtendedResourceRequest) bool {
		return m.ContainerName == c.Name && m.ResourceName == string(name)
	})
}

// Wait implements topology.Waiter: it returns an error if the plugin of a requested
// resource has not registered or not reported its devices.
func (m *Manager) Wait(pod *v1.Pod) error {
	if m.cfg.RefuseLate {
		return nil
	}
	for c := range podspec.Containers(pod) {
		asks := m.asks(pod, c)
		for _, name := range slices.Sorted(maps.Keys(asks)) {
			m.mu.Lock()
			r := m.ledger.resources[name]
			ready := r != nil && r.plugin != nil && r.listed
			m.mu.Unlock()
			if !ready {
				return fmt.Errorf("cannot allocate unregistered device %s", name)
			}
		}
	}
	return nil
}

// Hints implements topology.Provider.
func (m *Manager) Hints(pod *v1.Pod, c *v1.Container) topology.Hints {
	var wants map[string]int
	if c != nil {
		wants = m.requestedDevices(pod, c)
	} else {
		wants = m.podRequestedDevices(pod)
	}
	if len(wants) == 0 {
		return nil
	}
	m.retire()
	m.mu.Lock()
	defer m.mu.Unlock()
	out := topology.Hints{}
	for name, n := range wants {
		m.settleLocked(name)
		all := map[string]Device{}
		if r := m.ledger.resources[name]; r != nil {
			all = r.devices
		}
		if has := m.hasLocked(pod.UID, c, name); has == nil {
			var reusable map[string]Device
			if c != nil {
				reusable = m.reusableLocked(pod, c, name)
			}
			out[name] = deviceHints(m.cfg.Nodes, all, m.ledger.free(name), reusable, n)
		} else if c != nil && len(has) != n {
			out[name] = []topology.Hint{} // another number is allocated, and kept
		} else {
			out[name] = deviceHints(m.cfg.Nodes, all, has, nil, len(has))
		}
	}
	return out
}

// hasLocked returns the devices of a resource that are allocated to the container, or to
// any container of the pod if c is nil; nil if there are none.
func (m *Manager) hasLocked(uid types.UID, c *v1.Container, name string) map[string]Device {
	var has map[string]Device
	for h, granted := range m.ledger.grants {
		g, ok := granted[name]
		if h.uid != uid || !ok || c != nil && h.name != c.Name {
			continue
		}
		if has == nil {
			has = map[string]Device{}
		}
		for id, nodes := range g.IDs {
			has[id] = Device{ID: id, Nodes: nodes}
		}
	}
	return has
}

// reusableLocked returns the healthy devices of the pod's init containers that terminate
// before c starts, except those that its other containers have.
func (m *Manager) reusableLocked(pod *v1.Pod, c *v1.Container, name string) map[string]Device {
	reusable, kept := map[string]Device{}, map[string]bool{}
	r := m.ledger.resources[name]
	for h, granted := range m.ledger.grants {
		if h.uid != pod.UID || h.name == c.Name {
			continue
		}
		for id := range granted[name].IDs {
			if !podspec.RunsToCompletion(pod, h.name) {
				kept[id] = true
			} else if r != nil && r.devices[id].Healthy {
				reusable[id] = r.devices[id]
			}
		}
	}
	maps.DeleteFunc(reusable, func(id string, _ Device) bool { return kept[id] })
	return reusable
}

// podWants returns the maximum number of devices by resource that the containers of a pod
// have at the same time.
func (m *Manager) podRequestedDevices(pod *v1.Pod) map[string]int {
	sum, peak := map[string]int{}, map[string]int{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		for name, n := range m.requestedDevices(pod, c) {
			peak[name] = max(peak[name], sum[name]+n)
			if !podspec.RunsToCompletion(pod, c.Name) {
				sum[name] += n
			}
		}
	}
	for i := range pod.Spec.Containers {
		for name, n := range m.requestedDevices(pod, &pod.Spec.Containers[i]) {
			sum[name] += n
		}
	}
	for name, n := range sum {
		peak[name] = max(peak[name], n)
	}
	return peak
}

// Free implements topology.Provider.
func (m *Manager) Free(uid types.UID) {
	m.Retain(func(u types.UID) bool { return u != uid })
}

// Retain releases the devices of all pods for which keep returns false. It calls keep with no
// lock held.
func (m *Manager) Retain(keep func(uid types.UID) bool) {
	m.mu.Lock()
	stays := map[types.UID]bool{}
	for h := range m.ledger.grants {
		stays[h.uid] = true
	}
	m.mu.Unlock()
	for uid := range stays {
		stays[uid] = keep(uid)
	}
	m.mu.Lock()
	if m.ledger.drop(func(uid types.UID) bool { stay, asked := stays[uid]; return asked && !stay }) {
		m.touchLocked()
	}
	m.mu.Unlock()
	m.save()
}

// retire releases the devices of inactive pods.
func (m *Manager) retire() {
	if m.cfg.Pods != nil {
		m.Retain(m.cfg.Pods.Active)
	}
}

// Holds implements topology.Provider.
func (m *Manager) Holds(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.ledger.grants {
		if h.uid == uid {
			return true
		}
	}
	return false
}

// Capacity returns the number of all devices and of the healthy devices by resource, and
// the resources that have expired since the last call because their plugin did not
// reconnect.
func (m *Manager) Capacity() (capacity, allocatable v1.ResourceList, gone []string) {
	defer m.save() // after mu is released
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone = m.ledger.expire(time.Now(), m.cfg.Timing.Grace); len(gone) > 0 {
		m.touchLocked()
	}
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, r := range m.ledger.resources {
		all := len(r.devices)
		if r.plugin == nil && r.since.IsZero() {
			all = 0 // only in the checkpoint
		}
		capacity[v1.ResourceName(name)] = *apiresource.NewQuantity(int64(all), apiresource.DecimalSI)
		allocatable[v1.ResourceName(name)] = *apiresource.NewQuantity(int64(r.healthy()), apiresource.DecimalSI)
	}
	return capacity, allocatable, gone
}

// DeviceCounts returns the number of healthy and of unhealthy devices by resource, without resources that are only in
// the checkpoint. Both maps have the same keys.
func (m *Manager) DeviceCounts() (healthy, unhealthy map[string]int) {
	healthy, unhealthy = map[string]int{}, map[string]int{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, r := range m.ledger.resources {
		if r.plugin != nil || !r.since.IsZero() {
			healthy[name] = r.healthy()
			unhealthy[name] = len(r.devices) - healthy[name]
		}
	}
	return healthy, unhealthy
}

// Manages reports whether a resource is one of a plugin, also of one that has not registered
// again since the start and has not expired.
func (m *Manager) Manages(resource string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ledger.resources[resource] != nil
}

// Devices returns the devices of a container by resource, sorted by ID.
func (m *Manager) Devices(uid types.UID, container string) map[string][]Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]Device{}
	for name, g := range m.ledger.grants[holder{uid, container}] {
		for _, id := range slices.Sorted(maps.Keys(g.IDs)) {
			d := Device{ID: id, Nodes: g.IDs[id]}
			if r := m.ledger.resources[name]; r != nil {
				d.Healthy = r.devices[id].Healthy
			}
			out[name] = append(out[name], d)
		}
	}
	return out
}

// All returns the healthy devices by resource, sorted by ID.
func (m *Manager) All() map[string][]Device {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]Device{}
	for name, r := range m.ledger.resources {
		for _, id := range slices.Sorted(maps.Keys(r.devices)) {
			if r.devices[id].Healthy {
				out[name] = append(out[name], r.devices[id])
			}
		}
	}
	return out
}

func (m *Manager) changed(resource string) {
	if m.cfg.Changed != nil {
		m.cfg.Changed(resource)
	}
}

// serve waits until no other container is selecting devices.
func (m *Manager) serve(ctx context.Context) (done func(), err error) {
	select {
	case m.turn <- struct{}{}:
		return func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("device: %w", context.Cause(ctx))
	}
}
