package device

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// Config says how a [Manager] works.
type Config struct {
	// Dir is where plugins and the agent have their sockets, required:
	// /var/lib/kubelet/device-plugins is where plugins look for it.
	Dir string

	// Nodes are the NUMA nodes of the machine; 0: nobody asks for hints.
	Nodes topology.Mask

	// Store keeps who has which devices. Nil: the file kubelet_internal_checkpoint
	// in Dir.
	Store state.Store

	// Adopt is which devices containers that run have, for a state that is lost.
	Adopt []Adopted

	// Runs reports whether anything of a pod ran when the manager was made, for
	// what is saved of it: of others the plugin is asked anew, and other devices
	// are taken if theirs are gone. After the node was started anew that is all
	// (dev-10). Nil: of every pod something did.
	Runs func(uid types.UID) bool

	// Active reports whether a pod may still run here: devices of others are free
	// (dev-12). Nil: of every pod that is not freed.
	Active func(uid types.UID) bool

	// Elsewhere reports whether somebody else than a plugin gives out an extended
	// resource. Nil: nobody does.
	Elsewhere func(resource string) bool

	// RefuseLate refuses a pod whose plugin is not there, as a kubelet does
	// (nq-19), and lets one pass whose resource nobody has heard of.
	RefuseLate bool

	// Grace is how long a resource is there after its plugin has gone. Zero: 5
	// minutes (dev-5).
	Grace time.Duration

	// CallTimeout is how long a plugin may take to allocate. Zero: 30 s. While it
	// takes, no other container gets devices.
	CallTimeout time.Duration

	// Logger; nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// Adopted is a container that runs with devices.
type Adopted struct {
	PodUID    types.UID
	Container string
	Devices   map[string][]string // IDs by resource
}

// Hooks are told what happens, for metrics (dev-13) and to act on it. Each may be
// nil. They are called from the goroutines of plugins, with no lock held.
type Hooks struct {
	// Registered is told of each registration.
	Registered func(resource string)

	// Changed is told when there are other devices of a resource, or their health
	// is another: what the node can give is to be told anew, and a pod that waits
	// may be admitted.
	Changed func(resource string)

	// Allocated is told of each call of Allocate.
	Allocated func(AllocateInfo)
}

// AllocateInfo is what became of a call.
type AllocateInfo struct {
	Resource string
	Devices  []string
	Took     time.Duration
	Error    error
}

// A Manager gives the devices of plugins to containers. It is a topology.Provider.
// Its methods may be called from any goroutine.
type Manager struct {
	cfg     Config
	ran     runonce.Guard
	fresh   bool
	turn    chan struct{}  // held by the one who allocates
	plugins sync.WaitGroup // of Run

	// mu guards the fields below.
	mu             sync.Mutex
	ledger         ledger
	version, saved uint64 // of the ledger, and of that which is on disk

	disk chan struct{} // held by the goroutine that writes the state, without mu
}

// Open checks the Config and reads the state. One that can't be used is put aside
// and logged (dev-8). It starts nothing.
func Open(cfg Config) (*Manager, error) {
	if cfg.Dir == "" {
		return nil, errors.New("device: Config.Dir is empty")
	}
	if cfg.Store == nil {
		cfg.Store = state.File(filepath.Join(cfg.Dir, StateFile))
	}
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Minute
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = preStartTimeout
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{cfg: cfg, turn: make(chan struct{}, 1), disk: make(chan struct{}, 1), ledger: newLedger()}
	raw, err := cfg.Store.Load()
	m.fresh = errors.Is(err, fs.ErrNotExist)
	if err == nil {
		var l ledger
		if l, err = decode(raw); err == nil {
			m.ledger = l
		}
	}
	if err != nil && !m.fresh {
		cfg.Logger.Error("the state of devices can't be used", "err", err)
		if err := cfg.Store.Keep(); err != nil {
			return nil, fmt.Errorf("device: keep a copy of the state: %w", err)
		}
	}
	m.adopt()
	m.idle()
	return m, nil
}

// idle marks what pods have of which nothing runs: the node was started anew
// (dev-10). Who made their devices ready then has to do it again.
func (m *Manager) idle() {
	if m.cfg.Runs == nil {
		return
	}
	for h, granted := range m.ledger.grants {
		if m.cfg.Runs(h.uid) {
			continue
		}
		for name, g := range granted {
			g.idle, g.Response = true, nil
			granted[name] = g
		}
	}
}

// adopt notes what runs with devices of which the state does not tell.
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

// Fresh reports whether there was no state when the manager was made: what a node
// object tells of plugins' resources is of another node then, and nothing (dev-11).
func (m *Manager) Fresh() bool { return m.fresh }

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	for c := range podspec.Containers(pod) {
		if len(m.wants(c)) > 0 {
			return true
		}
	}
	return false
}

// wants returns how many devices of which resources a container limits (dev-6).
// With RefuseLate these are only the resources that plugins offer, or have offered.
func (m *Manager) wants(c *v1.Container) map[string]int {
	all := m.asks(c)
	if len(all) == 0 || !m.cfg.RefuseLate {
		return all
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(all, func(name string, _ int) bool { return m.ledger.resources[name] == nil && !m.grantedLocked(name) })
	return all
}

func (m *Manager) grantedLocked(name string) bool {
	for _, granted := range m.ledger.grants {
		if _, ok := granted[name]; ok {
			return true
		}
	}
	return false
}

// asks returns what a container limits of resources that a plugin could offer.
func (m *Manager) asks(c *v1.Container) map[string]int {
	all := map[string]int{}
	for name, amount := range c.Resources.Limits {
		elsewhere := m.cfg.Elsewhere != nil && m.cfg.Elsewhere(string(name))
		if n := amount.Value(); n > 0 && !elsewhere && Extended(string(name)) {
			all[string(name)] = int(min(n, 1<<30))
		}
	}
	return all
}

// Wait implements topology.Waiter: the plugin of a resource that the pod asks for
// has not registered, or not told which devices there are (F-51).
func (m *Manager) Wait(pod *v1.Pod) error {
	if m.cfg.RefuseLate {
		return nil
	}
	for c := range podspec.Containers(pod) {
		asks := m.asks(c)
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
		wants = m.wants(c)
	} else {
		wants = m.podWants(pod)
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
			out[name] = Hints(m.cfg.Nodes, all, m.ledger.free(name), reusable, n)
		} else if c != nil && len(has) != n {
			out[name] = []topology.Hint{} // it has another number, and keeps it
		} else {
			out[name] = Hints(m.cfg.Nodes, all, has, nil, len(has))
		}
	}
	return out
}

// hasLocked returns the devices of a resource that the container has, or, without
// one, any of the pod; nil if none.
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

// reusableLocked returns the healthy devices of the pod's init containers that have
// ended when c starts, but those that another of its containers has.
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

// podWants returns how many devices of which resources the containers of a pod have
// at the same time, at most.
func (m *Manager) podWants(pod *v1.Pod) map[string]int {
	sum, peak := map[string]int{}, map[string]int{}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		for name, n := range m.wants(c) {
			peak[name] = max(peak[name], sum[name]+n)
			if !podspec.RunsToCompletion(pod, c.Name) {
				sum[name] += n
			}
		}
	}
	for i := range pod.Spec.Containers {
		for name, n := range m.wants(&pod.Spec.Containers[i]) {
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

// Retain takes back the devices of all pods but those of which is says yes. It is
// asked with no lock held.
func (m *Manager) Retain(is func(uid types.UID) bool) {
	m.mu.Lock()
	stays := map[types.UID]bool{}
	for h := range m.ledger.grants {
		stays[h.uid] = true
	}
	m.mu.Unlock()
	for uid := range stays {
		stays[uid] = is(uid)
	}
	m.mu.Lock()
	if m.ledger.drop(func(uid types.UID) bool { stay, asked := stays[uid]; return asked && !stay }) {
		m.touchLocked()
	}
	m.mu.Unlock()
	m.save()
}

// retire takes back what inactive pods have (dev-12).
func (m *Manager) retire() {
	if m.cfg.Active != nil {
		m.Retain(m.cfg.Active)
	}
}

// Holds implements topology.Holder.
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

// Capacity returns what the node has of plugins' resources: all devices, and the
// healthy ones (dev-4); and the names of resources that are gone since it was asked
// last, because their plugin did not come back.
func (m *Manager) Capacity() (capacity, allocatable v1.ResourceList, gone []string) {
	defer m.save() // after mu is given up
	m.mu.Lock()
	defer m.mu.Unlock()
	if gone = m.ledger.expire(time.Now(), m.cfg.Grace); len(gone) > 0 {
		m.touchLocked()
	}
	capacity, allocatable = v1.ResourceList{}, v1.ResourceList{}
	for name, r := range m.ledger.resources {
		all := len(r.devices)
		if r.plugin == nil && r.since.IsZero() {
			all = 0 // known from before the start only (dev-9)
		}
		capacity[v1.ResourceName(name)] = *apiresource.NewQuantity(int64(all), apiresource.DecimalSI)
		allocatable[v1.ResourceName(name)] = *apiresource.NewQuantity(int64(r.healthy()), apiresource.DecimalSI)
	}
	return capacity, allocatable, gone
}

// Devices returns the devices that a container has, by resource, in order.
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

// All returns the healthy devices that there are, by resource, in order.
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
	if m.cfg.Hooks.Changed != nil {
		m.cfg.Hooks.Changed(resource)
	}
}

// serve waits for the turn to allocate.
func (m *Manager) serve(ctx context.Context) (done func(), err error) {
	select {
	case m.turn <- struct{}{}:
		return func() { <-m.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("device: %w", context.Cause(ctx))
	}
}
