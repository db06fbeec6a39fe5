package cpu

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/runtime"
)

// ReasonSMT is the reason of rejections with full-pcpus-only: the pod requests fractions
// of physical cores, or too few whole cores are free.
const ReasonSMT = "SMTAlignmentError"

// Config configures a [Manager].
type Config struct {
	// Machine is required.
	Machine *topology.Machine

	// Policy. Empty means none.
	Policy  Policy
	Options Options

	// Topology is the policy of the topology manager, which is incompatible with some
	// options.
	Topology topology.Policy

	// Reserved are CPUs that are never exclusive: reservedSystemCPUs. If empty, CPUs are
	// selected, with Options, for ReservedMilli: the reservation for system and
	// Kubernetes daemons in milli-CPUs, rounded up to whole CPUs. The static policy
	// requires one of the two.
	Reserved      cpuset.CPUSet
	ReservedMilli int64

	// Store stores the allocations. If nil, they are kept in memory.
	Store state.Store

	// Running are the running containers, from which an unusable checkpoint is rebuilt.
	Running []Running

	// RefuseForeign makes Open fail, as a kubelet does, if the checkpoint is of another
	// policy or machine, or corrupt (rule cpu-4). Otherwise it is repaired.
	RefuseForeign bool

	// Runtime accesses the running containers for Run. If nil, Run does nothing.
	Runtime Runtime

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks observe the manager, for metrics. Each may be nil. They are called with no lock
// held.
type Hooks struct {
	// Pinned is called after each attempt to allocate exclusive CPUs to a container, and for each
	// container that shares those of its pod.
	Pinned func(PinInfo)

	// Pool is called after each change of the shared pool.
	Pool func(PoolInfo)

	// Reconciled is called after each Reconcile.
	Reconciled func(ReconcileInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Pinned, o.Pinned)
		compose.Add(&h.Pool, o.Pool)
		compose.Add(&h.Reconciled, o.Reconciled)
	}
	return h
}

// PinInfo is the result of an allocation.
type PinInfo struct {
	Pod       *v1.Pod
	Container string
	CPUs      cpuset.CPUSet
	Error     error // nil if CPUs were allocated

	// Assignment is PodExclusive after an error about the CPUs of a pod as a whole.
	Assignment topology.Assignment
}

// PoolInfo is the division of the CPUs after a change.
type PoolInfo struct {
	Shared, Exclusive cpuset.CPUSet
}

// A Manager allocates CPUs to containers. It is a topology.Provider. All methods except
// Run and Reconcile are safe for concurrent use.
type Manager struct {
	cfg      Config
	ran      runonce.Guard
	reserved cpuset.CPUSet
	changed  chan struct{} // capacity 1; signals that the pool changed

	mu    sync.Mutex // guards the fields below
	state assignments
	given map[string]cpuset.CPUSet // the CPUs last applied, by container ID

	// pinned are containers whose CPUs an earlier static policy restricted; the policy is
	// none now. The checkpoint is replaced after they have been unpinned.
	pinned map[types.UID]map[string]bool
}

// Open returns a Manager for cfg and restores its checkpoint. It returns a *ConflictError
// if the checkpoint cannot be repaired while certain containers run. It starts nothing.
func Open(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("cpu: Config.Machine is nil")
	}
	var err error
	if cfg.Policy, err = parsePolicy(string(cfg.Policy)); err != nil {
		return nil, err
	}
	if cfg.Store == nil {
		cfg.Store = new(state.Memory)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	m := &Manager{cfg: cfg, changed: make(chan struct{}, 1), given: map[string]cpuset.CPUSet{}}
	if err := cfg.Options.PodLevel.CheckPodLevel(); err != nil {
		return nil, fmt.Errorf("cpu: Options.PodLevel: %w", err)
	}
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

// reserve selects the CPUs that are never exclusive.
func reserve(cfg Config) (cpuset.CPUSet, error) {
	if !cfg.Reserved.IsEmpty() {
		if gone := cfg.Reserved.Difference(cfg.Machine.All()); !gone.IsEmpty() {
			return cpuset.New(), fmt.Errorf("cpu: reserved CPUs %s do not exist or are offline", gone)
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

// load restores the checkpoint and saves it if it was repaired.
func (m *Manager) load() error {
	var refuse func(assignments, error) error
	if m.cfg.RefuseForeign {
		refuse = m.refuse
	}
	saved, _, err := state.Restore(m.cfg.Store, decode, refuse, m.cfg.Logger)
	if err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	healed, err := heal(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, m.reserved, saved, m.cfg.Running)
	if err != nil {
		return err
	}
	m.state = healed
	if string(healed.encode()) == string(saved.encode()) {
		return nil
	}
	if m.pinned = m.stillPinned(saved); len(m.pinned) > 0 {
		return nil
	}
	return m.replaceSaved(saved)
}

// stillPinned returns the containers whose CPUs an earlier policy restricted. With a
// runtime that does not report cpusets (containerd 1.6) these are all containers.
func (m *Manager) stillPinned(saved assignments) map[types.UID]map[string]bool {
	if m.cfg.Policy != None || saved.Policy != Static || m.cfg.Runtime == nil {
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

// replaceSaved replaces the saved state and keeps a copy of saved.
func (m *Manager) replaceSaved(saved assignments) error {
	if err := state.Replace(m.cfg.Store, m.snapshot().encode(), saved.Policy != "", m.cfg.Logger); err != nil {
		return fmt.Errorf("cpu: %w", err)
	}
	return nil
}

// refuse returns the error with which a kubelet refuses to start with a checkpoint (rule
// cpu-4), where decodeErr is the error of decode; nil if a kubelet uses it.
func (m *Manager) refuse(saved assignments, decodeErr error) error {
	file := fmt.Sprint(m.cfg.Store)
	if decodeErr != nil {
		return fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the CPU manager checkpoint file %q before restarting Kubelet", decodeErr, file)
	}
	return foreign(m.cfg.Machine, m.cfg.Policy, m.cfg.Options, m.reserved, saved, file)
}

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	return m.cfg.Policy == Static && podExclusiveCPUs(pod, m.cfg.Options.PodLevel) > 0
}

// Hints implements topology.Provider.
func (m *Manager) Hints(pod *v1.Pod, c *v1.Container) topology.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	n := podExclusiveCPUs(pod, m.cfg.Options.PodLevel)
	if c != nil {
		n = exclusiveCPUs(pod, c, m.cfg.Options.PodLevel)
	}
	if n == 0 {
		return nil
	}
	if c == nil && m.cfg.Options.PodLevel.Pools(pod) && checkPool(pod, n, m.cfg.Options.PodLevel) != nil {
		return topology.Hints{string(v1.ResourceCPU): {}}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	has := cpuset.New()
	if c == nil {
		has = m.state.Pools[pod.UID].CPUs
	}
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
		hints = cpuHints(m.cfg.Machine, m.cfg.Options, m.freeLocked(), reusable, n)
	case c != nil && has.Size() != n:
		hints = []topology.Hint{} // another number is allocated, and kept
	default:
		hints = cpuHints(m.cfg.Machine, m.cfg.Options, has, cpuset.New(), has.Size())
	}
	return topology.Hints{string(v1.ResourceCPU): hints}
}

// Allocate implements topology.Provider.
func (m *Manager) Allocate(_ context.Context, pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	if m.cfg.Policy != Static {
		return nil
	}
	if m.cfg.Options.PodLevel.Pools(pod) {
		return m.allocatePool(pod, c, where)
	}
	n := exclusiveCPUs(pod, c, m.cfg.Options.PodLevel)
	if n == 0 {
		return nil
	}
	cpus, err := m.pin(pod, c, n, where)
	m.reportPin(PinInfo{Pod: pod, Container: c.Name, CPUs: cpus, Error: err, Assignment: topology.NodeExclusive})
	if err == nil {
		m.poolChanged()
	}
	return err
}

func (m *Manager) reportPin(info PinInfo) {
	if m.cfg.Hooks.Pinned != nil {
		m.cfg.Hooks.Pinned(info)
	}
}

func (m *Manager) pin(pod *v1.Pod, c *v1.Container, n int, where topology.Hint) (cpuset.CPUSet, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if has, ok := m.state.Assigned[pod.UID][c.Name]; ok {
		return has, nil
	}
	free, reusable := m.freeLocked(), m.reusableLocked(pod, c)
	free, reusable, err := m.wholeOnly(n, free, reusable)
	if err != nil {
		return cpuset.New(), err
	}
	cpus, err := placeReusing(m.cfg.Machine, m.cfg.Options, free, reusable, n, where)
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

// wholeOnly returns the CPUs of whole cores if Options.FullPCPUsOnly is set, and an error if n CPUs
// cannot be whole cores of them.
func (m *Manager) wholeOnly(n int, free, reusable cpuset.CPUSet) (_, _ cpuset.CPUSet, err error) {
	if !m.cfg.Options.FullPCPUsOnly {
		return free, reusable, nil
	}
	threads := m.cfg.Machine.ThreadsPerCore()
	if n%threads != 0 {
		return free, reusable, smtRejection("requested %d cpus not multiple cpus per core = %d", n, threads)
	}
	whole := wholeCores(m.cfg.Machine, free.Union(reusable))
	if whole.Size() < n {
		return free, reusable, smtRejection("not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d", whole.Size(), n, threads)
	}
	return free.Intersection(whole), reusable.Intersection(whole), nil
}

func smtRejection(format string, args ...any) error {
	return &runtime.Rejection{Reason: ReasonSMT, Message: "SMT Alignment Error: " + fmt.Sprintf(format, args...)}
}

// wholeCores returns the CPUs whose core is completely free.
func wholeCores(machine *topology.Machine, free cpuset.CPUSet) cpuset.CPUSet {
	torn := map[int]bool{}
	for _, c := range machine.CPUs {
		if !free.Contains(c.ID) {
			torn[c.Core] = true
		}
	}
	return machine.Where(func(c topology.CPU) bool { return !torn[c.Core] })
}

// Free implements topology.Provider: the pod's CPUs return to the shared pool.
func (m *Manager) Free(uid types.UID) {
	if m.free(uid) {
		m.poolChanged()
	}
}

func (m *Manager) free(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holdsLocked(uid) {
		return false
	}
	next := m.state.clone()
	delete(next.Assigned, uid)
	delete(next.Pools, uid)
	if err := m.replaceLocked(next); err != nil {
		// The allocation is restored at the next start and released then.
		m.cfg.Logger.Error("Failed to save checkpoint after releasing CPUs; will save with the next change", "podUID", uid, "err", err)
		m.state = next
		m.state.Shared = pool(m.cfg.Machine, m.cfg.Options, m.reserved).Difference(next.given())
	}
	return true
}

// Retain releases the CPUs of all pods for which keep returns false.
func (m *Manager) Retain(keep func(uid types.UID) bool) {
	s := m.snapshot()
	for uid := range s.Assigned {
		if !keep(uid) {
			m.Free(uid)
		}
	}
	for uid := range s.Pools {
		if !keep(uid) {
			m.Free(uid)
		}
	}
}

// Holds implements topology.Provider.
func (m *Manager) Holds(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holdsLocked(uid)
}

func (m *Manager) holdsLocked(uid types.UID) bool {
	_, pool := m.state.Pools[uid]
	return pool || len(m.state.Assigned[uid]) > 0
}

// CPUs returns the CPUs that a container may run on, and whether no other container may. An
// empty set means all CPUs.
func (m *Manager) CPUs(uid types.UID, container string) (cpus cpuset.CPUSet, exclusive bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cpus, ok := m.state.Assigned[uid][container]; ok {
		return cpus, !m.state.Pools[uid].Shared[container]
	}
	if m.cfg.Policy == Static && m.state.Shared.IsEmpty() {
		return m.reserved, false // an empty cpuset would include exclusive CPUs
	}
	return m.state.Shared, false
}

// Allocatable returns the CPUs that can be allocated exclusively; with the policy none,
// all CPUs of the machine.
func (m *Manager) Allocatable() cpuset.CPUSet {
	return m.cfg.Machine.All().Difference(m.reserved)
}

// snapshot returns a copy of the assignments.
func (m *Manager) snapshot() assignments {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.state.clone()
}

// freeLocked returns the CPUs that can be allocated now.
func (m *Manager) freeLocked() cpuset.CPUSet {
	return m.cfg.Machine.All().Difference(m.reserved).Difference(m.state.given())
}

// reusableLocked returns the CPUs of the pod's init containers that terminate before c
// starts, except those that its other containers have.
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

// replaceLocked saves next and then makes it current.
func (m *Manager) replaceLocked(next assignments) error {
	next.Shared = pool(m.cfg.Machine, m.cfg.Options, m.reserved).Difference(next.given())
	if err := m.cfg.Store.Save(next.encode()); err != nil {
		return fmt.Errorf("cpu: save checkpoint: %w", err)
	}
	m.state = next
	return nil
}

// poolChanged wakes Run and calls the hook.
func (m *Manager) poolChanged() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
	if m.cfg.Hooks.Pool != nil {
		s := m.snapshot()
		m.cfg.Hooks.Pool(PoolInfo{Shared: s.Shared, Exclusive: s.given()})
	}
}

// reconcilePeriod is the period of Reconcile in Run.
const reconcilePeriod = 10 * time.Second
