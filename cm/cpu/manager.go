package cpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// ReasonSMT is the reason of a pod that asks for parts of cores where only whole
// ones are given out.
const ReasonSMT = "SMTAlignmentError"

// Config says how a [Manager] works.
type Config struct {
	// Machine, required.
	Machine *topology.Machine

	// Policy; "" is none.
	Policy  Policy
	Options Options

	// Topology is the topology manager's policy, which some options exclude.
	Topology topology.Policy

	// Reserved are CPUs that no container has exclusively: reservedSystemCPUs. If
	// empty, so many CPUs are chosen, with Options, as ReservedMilli, the reservation
	// for the system and the agent in thousandths of a CPU, rounded up, comes to
	// (cpu-2). The static policy requires one of the two.
	Reserved      cpuset.CPUSet
	ReservedMilli int64

	// Store keeps what is given out. Nil: memory.
	Store state.Store

	// Running is what runs now, for a state that can't be used (F-53).
	Running []Running

	// RefuseForeign makes Open fail, as a kubelet does, where the state is of
	// another policy, another machine, or broken (cpu-4), instead of mending it.
	RefuseForeign bool

	// Apply tells what Run looks after. Nil: Run does nothing.
	Apply *Apply

	// Logger; nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks are told what happens, for metrics (cpu-10). Each may be nil. They are
// called with no lock held.
type Hooks struct {
	// Pinned is told of each container that was to get CPUs of its own.
	Pinned func(PinInfo)

	// Pool is told of each change of the shared pool.
	Pool func(PoolInfo)

	// Reconciled is told of each look at what runs.
	Reconciled func(ReconcileInfo)
}

// PinInfo is what became of a container.
type PinInfo struct {
	Pod       *v1.Pod
	Container string
	CPUs      cpuset.CPUSet
	Error     error // nil: it has them
}

// PoolInfo is what the pool is.
type PoolInfo struct {
	Shared, Exclusive cpuset.CPUSet
}

// A Manager gives CPUs to containers. It is a topology.Provider. Its methods may be
// called from any goroutine.
type Manager struct {
	cfg      Config
	ran      runonce.Guard
	reserved cpuset.CPUSet
	changed  chan struct{} // has room for one: the pool is another

	mu    sync.Mutex // guards the fields below
	state State
	given map[string]cpuset.CPUSet // what containers were last told, by ID

	// pinned are containers that run on some CPUs only, from a time when the
	// policy was static and is none now. The state is saved once they are told
	// that they may run on any.
	pinned map[types.UID]map[string]bool
}

// Open checks the Config, reads the state and mends it: it returns a
// *ConflictError where that can't be done while certain containers run. It starts
// nothing.
func Open(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("cpu: Config.Machine is nil")
	}
	var err error
	if cfg.Policy, err = ParsePolicy(string(cfg.Policy)); err != nil {
		return nil, err
	}
	if cfg.Store == nil {
		cfg.Store = new(state.Memory)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{cfg: cfg, changed: make(chan struct{}, 1), given: map[string]cpuset.CPUSet{}}
	if cfg.Policy == Static {
		if err := errors.Join(cfg.Options.consistent(), cfg.Options.fit(cfg.Machine, cfg.Topology)); err != nil {
			return nil, err
		}
		if m.reserved, err = reserve(cfg); err != nil {
			return nil, err
		}
	}
	return m, m.load()
}

// reserve chooses the CPUs that no container has exclusively.
func reserve(cfg Config) (cpuset.CPUSet, error) {
	if !cfg.Reserved.IsEmpty() {
		if gone := cfg.Reserved.Difference(cfg.Machine.All()); !gone.IsEmpty() {
			return cpuset.New(), fmt.Errorf("cpu: reserved CPUs %s are not there, or offline", gone)
		}
		return cfg.Reserved, nil
	}
	if cfg.ReservedMilli <= 0 {
		return cpuset.New(), errors.New("cpu: the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")
	}
	n := (cfg.ReservedMilli + 999) / 1000
	if n > int64(cfg.Machine.All().Size()) {
		return cpuset.New(), fmt.Errorf("cpu: unable to reserve %d CPUs of %d", n, cfg.Machine.All().Size())
	}
	reserved, err := Take(cfg.Machine, cfg.Options, cfg.Machine.All(), int(n))
	if err != nil {
		return cpuset.New(), fmt.Errorf("cpu: reserve: %w", err)
	}
	return reserved, nil
}

// load reads what was saved, mends it, and saves it again if it was.
func (m *Manager) load() error {
	saved, err := m.saved()
	if err != nil {
		return err
	}
	healed, err := Heal(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, m.reserved, saved, m.cfg.Running)
	if err != nil {
		return err
	}
	m.state = healed
	if string(healed.Encode()) == string(saved.Encode()) {
		return nil
	}
	if m.pinned = m.stillPinned(saved); len(m.pinned) > 0 {
		return nil
	}
	return m.replaceSaved(saved)
}

// stillPinned returns who runs on CPUs that an earlier policy chose. A runtime that
// does not say on which CPUs a container runs (containerd 1.6) makes that all.
func (m *Manager) stillPinned(saved State) map[types.UID]map[string]bool {
	if m.cfg.Policy != None || saved.Policy != Static || m.cfg.Apply == nil {
		return nil
	}
	pinned := map[types.UID]map[string]bool{}
	for _, r := range m.cfg.Running {
		if m.cfg.Machine.All().IsSubsetOf(r.CPUs) {
			continue
		}
		if pinned[r.PodUID] == nil {
			pinned[r.PodUID] = map[string]bool{}
		}
		pinned[r.PodUID][r.Container] = true
	}
	return pinned
}

// replaceSaved saves the state in the place of another one, of which a copy is kept.
func (m *Manager) replaceSaved(saved State) error {
	healed := m.State()
	if saved.Policy != "" {
		m.cfg.Logger.Warn("the state of the CPUs was mended", "was", saved.Policy, "shared", healed.Shared.String())
		if err := m.cfg.Store.Keep(); err != nil {
			return fmt.Errorf("cpu: keep a copy of the state: %w", err)
		}
	}
	if err := m.cfg.Store.Save(healed.Encode()); err != nil {
		return fmt.Errorf("cpu: save the state: %w", err)
	}
	return nil
}

// saved returns the state that was saved, empty if there is none that can be used.
func (m *Manager) saved() (State, error) {
	data, err := m.cfg.Store.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	var saved State
	if err == nil {
		saved, err = Decode(data)
	}
	if err == nil && m.cfg.RefuseForeign {
		err := foreign(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, m.reserved, saved, fmt.Sprint(m.cfg.Store))
		if err != nil {
			return State{}, err
		}
	}
	if err == nil {
		return saved, nil
	}
	if m.cfg.RefuseForeign {
		return State{}, fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet", err, fmt.Sprint(m.cfg.Store))
	}
	m.cfg.Logger.Warn("the state of the CPUs can't be used; it is made anew from what runs", "err", err)
	if err := m.cfg.Store.Keep(); err != nil {
		return State{}, fmt.Errorf("cpu: keep a copy of the state: %w", err)
	}
	return State{}, nil
}

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	return m.cfg.Policy == Static && podWants(pod) > 0
}

// Hints implements topology.Provider.
func (m *Manager) Hints(pod *v1.Pod, c *v1.Container) topology.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	n := podWants(pod)
	if c != nil {
		n = Wants(pod, c)
	}
	if n == 0 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	has := cpuset.New()
	for name, cpus := range m.state.Assigned[pod.UID] {
		if c == nil || name == c.Name {
			has = has.Union(cpus)
		}
	}
	var hints []topology.Hint
	switch {
	case has.IsEmpty():
		reusable := cpuset.New()
		if c != nil {
			reusable = m.reusableLocked(pod, c)
		}
		hints = Hints(m.cfg.Machine, m.cfg.Options, m.freeLocked(), reusable, n)
	case c != nil && has.Size() != n:
		hints = []topology.Hint{} // it has another number, and keeps it
	default:
		hints = Hints(m.cfg.Machine, m.cfg.Options, has, cpuset.New(), has.Size())
	}
	return topology.Hints{string(v1.ResourceCPU): hints}
}

// Allocate implements topology.Provider.
func (m *Manager) Allocate(_ context.Context, pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	n := Wants(pod, c)
	if m.cfg.Policy != Static || n == 0 {
		return nil
	}
	cpus, err := m.pin(pod, c, n, where)
	if m.cfg.Hooks.Pinned != nil {
		m.cfg.Hooks.Pinned(PinInfo{Pod: pod, Container: c.Name, CPUs: cpus, Error: err})
	}
	if err == nil {
		m.poolChanged()
	}
	return err
}

func (m *Manager) pin(pod *v1.Pod, c *v1.Container, n int, where topology.Hint) (cpuset.CPUSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has, ok := m.state.Assigned[pod.UID][c.Name]; ok {
		return has, nil
	}
	free := m.freeLocked().Union(m.reusableLocked(pod, c))
	if m.cfg.Options.FullPCPUsOnly {
		threads := m.cfg.Machine.ThreadsPerCore()
		if n%threads != 0 {
			return cpuset.New(), smtRejection("requested %d cpus not multiple cpus per core = %d", n, threads)
		}
		if free = wholeCores(m.cfg.Machine, free); free.Size() < n {
			return cpuset.New(), smtRejection("not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d", free.Size(), n, threads)
		}
	}
	cpus, err := Place(m.cfg.Machine, m.cfg.Options, free, n, where)
	if err != nil {
		return cpuset.New(), err
	}
	next := m.state.clone()
	if next.Assigned[pod.UID] == nil {
		next.Assigned[pod.UID] = map[string]cpuset.CPUSet{}
	}
	next.Assigned[pod.UID][c.Name] = cpus
	return cpus, m.replaceLocked(next)
}

func smtRejection(format string, args ...any) error {
	return &runtime.Rejection{Reason: ReasonSMT, Message: "SMT Alignment Error: " + fmt.Sprintf(format, args...)}
}

// wholeCores returns those CPUs of which the whole core is in the set.
func wholeCores(machine *topology.Machine, free cpuset.CPUSet) cpuset.CPUSet {
	torn := map[int]bool{}
	for _, c := range machine.CPUs {
		if !free.Contains(c.ID) {
			torn[c.Core] = true
		}
	}
	return machine.Where(func(c topology.CPU) bool { return !torn[c.Core] })
}

// Free implements topology.Provider: the pod's CPUs are shared again (cpu-9).
func (m *Manager) Free(uid types.UID) {
	if m.free(uid) {
		m.poolChanged()
	}
}

func (m *Manager) free(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.state.Assigned[uid]; !has {
		return false
	}
	next := m.state.clone()
	delete(next.Assigned, uid)
	if err := m.replaceLocked(next); err != nil {
		// What is not saved comes back with the next start, and is freed then.
		m.cfg.Logger.Error("CPUs were freed and that can't be saved", "pod", uid, "err", err)
		m.state = next
		m.state.Shared = pool(m.cfg.Machine, m.cfg.Options, m.reserved).Difference(next.given())
	}
	return true
}

// Retain frees the CPUs of all pods but those of which is says yes (cpu-8).
func (m *Manager) Retain(is func(uid types.UID) bool) {
	m.mu.Lock()
	var gone []types.UID
	for uid := range m.state.Assigned {
		gone = append(gone, uid)
	}
	m.mu.Unlock()
	for _, uid := range gone {
		if !is(uid) {
			m.Free(uid)
		}
	}
}

// Holds implements topology.Holder.
func (m *Manager) Holds(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.state.Assigned[uid]) > 0
}

// CPUs returns what a container may run on, and whether it has that for itself.
// Empty: on any.
func (m *Manager) CPUs(uid types.UID, container string) (cpus cpuset.CPUSet, exclusive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cpus, ok := m.state.Assigned[uid][container]; ok {
		return cpus, true
	}
	if m.cfg.Policy == Static && m.state.Shared.IsEmpty() {
		return m.reserved, false // empty would be all, those of others too
	}
	return m.state.Shared, false
}

// Allocatable returns the CPUs that containers can have for themselves; under none
// those of the machine.
func (m *Manager) Allocatable() cpuset.CPUSet {
	return m.cfg.Machine.All().Difference(m.reserved)
}

// State returns a copy of what is given out.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.clone()
}

// freeLocked returns the CPUs that can be given to a container for itself.
func (m *Manager) freeLocked() cpuset.CPUSet {
	return m.cfg.Machine.All().Difference(m.reserved).Difference(m.state.given())
}

// reusableLocked returns the CPUs of the pod's init containers that have ended when
// c starts (cpu-7), but those that another of its containers has.
func (m *Manager) reusableLocked(pod *v1.Pod, c *v1.Container) cpuset.CPUSet {
	reusable, kept := cpuset.New(), cpuset.New()
	for name, cpus := range m.state.Assigned[pod.UID] {
		if podspec.RunsToCompletion(pod, name) && name != c.Name {
			reusable = reusable.Union(cpus)
		} else {
			kept = kept.Union(cpus)
		}
	}
	return reusable.Difference(kept)
}

// replaceLocked saves a state, and makes it the one that counts.
func (m *Manager) replaceLocked(next State) error {
	next.Shared = pool(m.cfg.Machine, m.cfg.Options, m.reserved).Difference(next.given())
	if err := m.cfg.Store.Save(next.Encode()); err != nil {
		return fmt.Errorf("cpu: save the state: %w", err)
	}
	m.state = next
	return nil
}

// poolChanged wakes Run, and tells the hook.
func (m *Manager) poolChanged() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
	if m.cfg.Hooks.Pool != nil {
		s := m.State()
		m.cfg.Hooks.Pool(PoolInfo{Shared: s.Shared, Exclusive: s.given()})
	}
}

// reconcilePeriod is how often Run looks at what runs (cpu-8).
const reconcilePeriod = 10 * time.Second
