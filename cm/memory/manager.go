package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A Policy determines how memory is allocated.
type Policy string

// The policies, with the values of KubeletConfiguration.memoryManagerPolicy.
const (
	None   Policy = "None"   // no allocation
	Static Policy = "Static" // Guaranteed pods are allocated memory of NUMA nodes
)

// parsePolicy returns the policy with the name; "" is None.
func parsePolicy(name string) (Policy, error) {
	switch p := Policy(name); p {
	case "":
		return None, nil
	case None, Static:
		return p, nil
	default:
		return "", fmt.Errorf("memory: unknown policy: %q", name)
	}
}

// Config configures a [Manager].
type Config struct {
	// Machine is required.
	Machine *topology.Machine

	// Policy. Empty means None.
	Policy Policy

	// PodLevel determines the memory of Guaranteed pods with pod-level resources (KEP-5526): with
	// ContainerScope, containers with equal requests and limits have memory of their own, and
	// the others that of all nodes; with PodScope the pod has as much as it requests, of
	// which the others share what these containers leave. If empty, such pods have no memory of
	// their own. It must be the scope of the topology manager, ContainerScope if that has the
	// policy none.
	PodLevel topology.Scope

	// Reserved is the memory that is not allocated, by NUMA node. Static requires it. Its
	// sums must equal Total: the reservations for system and Kubernetes daemons and the
	// hard eviction threshold.
	Reserved map[int]Request
	Total    Request

	// Store stores the allocations. If nil, they are kept in memory.
	Store state.Store

	// Runs reports whether a container runs now, for a checkpoint that does not fit the
	// machine. If nil, none runs.
	Runs func(uid types.UID, container string) bool

	// RefuseForeign makes Open fail, as a kubelet does, if the checkpoint is of another
	// policy or machine, or corrupt (rule mem-1). Otherwise it is repaired.
	RefuseForeign bool

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks observe the manager, for metrics. Each may be nil. They are called with no lock
// held.
type Hooks struct {
	// Pinned is called after each attempt to allocate memory to a container, and for each container
	// that shares that of its pod.
	Pinned func(PinInfo)
}

// Join returns Hooks that call the functions of h and then those of others, in order.
func (h Hooks) Join(others ...Hooks) Hooks {
	for _, o := range others {
		compose.Add(&h.Pinned, o.Pinned)
	}
	return h
}

// PinInfo is the result of an allocation.
type PinInfo struct {
	Pod       *v1.Pod
	Container string
	Error     error // nil if memory was allocated

	// Assignment is PodExclusive after an error about the memory of a pod as a whole.
	Assignment topology.Assignment
}

// A ConflictError reports containers that run with memory that cannot be allocated to
// them any more. The caller may stop them and call Open again.
type ConflictError struct {
	Conflicts []Lost
}

func (e *ConflictError) Error() string {
	var all []string
	for _, c := range e.Conflicts {
		all = append(all, fmt.Sprintf("container %q of pod %q, %s on NUMA nodes %v: %s", c.Container, c.PodUID, c.Block.Type, c.Block.Nodes, c.Why))
	}
	return "memory: containers run with memory that cannot be allocated to them: " + strings.Join(all, "; ")
}

// A Manager allocates memory of NUMA nodes to containers. It is a topology.Provider. Safe
// for concurrent use.
type Manager struct {
	cfg   Config
	empty machineMemory

	mu    sync.Mutex // guards the fields below
	state checkpointState
}

// Open returns a Manager for cfg and restores its checkpoint. It returns a *ConflictError
// if the checkpoint cannot be repaired while certain containers run.
func Open(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("memory: Config.Machine is nil")
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
	if err := cfg.PodLevel.CheckPodLevel(); err != nil {
		return nil, fmt.Errorf("memory: Config.PodLevel: %w", err)
	}
	m := &Manager{cfg: cfg, state: checkpointState{Policy: cfg.Policy}}
	if cfg.Policy == Static {
		there := map[int]bool{}
		for _, n := range cfg.Machine.Nodes {
			there[n.ID] = true
		}
		if cfg.Total[v1.ResourceMemory] == 0 {
			return nil, errors.New("memory: the Static policy requires reserved memory")
		}
		if err := checkReserved(there, cfg.Reserved, cfg.Total); err != nil {
			return nil, err
		}
		m.empty = emptyNodes(cfg.Machine, cfg.Reserved)
		m.state.Nodes = m.empty
	}
	return m, m.load()
}

// load restores the checkpoint and saves it if it was repaired.
func (m *Manager) load() error {
	var refuse func(checkpointState, error) error
	if m.cfg.RefuseForeign {
		refuse = m.refuse
	}
	saved, _, err := state.Restore(m.cfg.Store, decode, refuse, m.cfg.Logger)
	if err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	if m.cfg.Policy == Static && saved.Policy == Static {
		if err := m.heal(saved.Assigned, saved.Pools); err != nil {
			return err
		}
	}
	if string(m.state.encode()) == string(saved.encode()) {
		return nil
	}
	if err := state.Replace(m.cfg.Store, m.state.encode(), saved.Policy != "", m.cfg.Logger); err != nil {
		return fmt.Errorf("memory: %w", err)
	}
	return nil
}

// heal restores the assignments that the machine can still hold.
func (m *Manager) heal(assigned assignedBlocks, pools podPools) error {
	assigned, pools = assigned.clone(), maps.Clone(pools)
	nodes, lost := replay(m.empty, held(assigned, pools))
	var conflicts []Lost
	for _, l := range lost {
		for name := range assigned[l.PodUID] {
			if l.Container != "" && l.Container != name {
				continue
			}
			if m.cfg.Runs != nil && m.cfg.Runs(l.PodUID, name) {
				l.Container = name
				conflicts = append(conflicts, l)
			}
			delete(assigned[l.PodUID], name)
		}
		delete(pools, l.PodUID)
	}
	if len(conflicts) > 0 {
		return &ConflictError{Conflicts: conflicts}
	}
	if len(lost) > 0 {
		nodes, _ = replay(m.empty, held(assigned, pools))
	}
	m.state.Nodes, m.state.Assigned, m.state.Pools = nodes, assigned, pools
	return nil
}

// refuse returns the error with which a kubelet refuses to start with a checkpoint (rule
// mem-1), where decodeErr is the error of decode; nil if a kubelet uses it.
func (m *Manager) refuse(saved checkpointState, decodeErr error) error {
	file := fmt.Sprint(m.cfg.Store)
	switch {
	case decodeErr != nil:
		return fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", decodeErr, file)
	case saved.Policy != m.cfg.Policy:
		return fmt.Errorf("could not restore state from checkpoint: configured policy %q differs from state checkpoint policy %q, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", m.cfg.Policy, saved.Policy, file)
	case m.cfg.Policy == Static:
		if nodes, lost := replay(m.empty, held(saved.Assigned, saved.Pools)); len(lost) > 0 || !sameMachine(nodes, saved.Nodes) {
			return errors.New("the expected machine state is different from the real one")
		}
	}
	return nil
}

// sameMachine reports whether nodes have the same allocatable memory.
func sameMachine(a, b machineMemory) bool {
	totals := func(nodes machineMemory) map[int]Request {
		t := map[int]Request{}
		for id, n := range nodes {
			t[id] = Request{}
			for kind, table := range n.Memory {
				t[id][kind] = table.Allocatable
			}
		}
		return t
	}
	return reflect.DeepEqual(totals(a), totals(b))
}

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	return m.cfg.Policy == Static && len(podExclusiveMemory(pod, m.cfg.PodLevel)) > 0
}

// Hints implements topology.Provider.
func (m *Manager) Hints(pod *v1.Pod, c *v1.Container) topology.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	req := podExclusiveMemory(pod, m.cfg.PodLevel)
	if c != nil {
		req = exclusiveMemory(pod, c, m.cfg.PodLevel)
	}
	if len(req) == 0 {
		return nil
	}
	if c == nil && m.cfg.PodLevel.Pools(pod) {
		if _, _, err := divide(pod, req, 0, m.cfg.PodLevel); err != nil {
			out := topology.Hints{}
			for kind := range req {
				out[string(kind)] = []topology.Hint{}
			}
			return out
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var hints []topology.Hint
	if has, ok := m.nodesLocked(pod.UID, c); ok {
		hints = []topology.Hint{{Nodes: has, Preferred: true}}
	} else {
		var reusable map[topology.Mask]Request
		if c != nil {
			reusable = m.reusableLocked(pod, c)
		}
		hints = memoryHints(m.state.Nodes, req, reusable)
	}
	out := topology.Hints{}
	for kind := range req {
		out[string(kind)] = hints
	}
	return out
}

// nodesLocked returns the nodes of the container's memory; if c is nil, of the memory of any
// container of the pod.
func (m *Manager) nodesLocked(uid types.UID, c *v1.Container) (topology.Mask, bool) {
	for _, name := range slices.Sorted(maps.Keys(m.state.Assigned[uid])) {
		if c != nil && name != c.Name {
			continue
		}
		for _, b := range m.state.Assigned[uid][name] {
			return topology.MaskOf(b.Nodes...), true
		}
	}
	return 0, false
}

// Allocate implements topology.Provider.
func (m *Manager) Allocate(_ context.Context, pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	if m.cfg.Policy != Static {
		return nil
	}
	if m.cfg.PodLevel.Pools(pod) {
		return m.allocatePool(pod, c, where)
	}
	req := exclusiveMemory(pod, c, m.cfg.PodLevel)
	if len(req) == 0 {
		return nil
	}
	err := m.pin(pod, c, req, where)
	m.reportPin(PinInfo{Pod: pod, Container: c.Name, Error: err, Assignment: topology.NodeExclusive})
	return err
}

func (m *Manager) reportPin(info PinInfo) {
	if m.cfg.Hooks.Pinned != nil {
		m.cfg.Hooks.Pinned(info)
	}
}

func (m *Manager) pin(pod *v1.Pod, c *v1.Container, req Request, where topology.Hint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.state.Assigned[pod.UID][c.Name]; ok {
		return nil
	}
	reusable := m.reusableLocked(pod, c)
	nodes, err := choose(m.state.Nodes, req, reusable, where)
	if err != nil {
		return err
	}
	next := m.state.Assigned.clone()
	if next[pod.UID] == nil {
		next[pod.UID] = map[string][]Block{}
	}
	for _, kind := range slices.Sorted(maps.Keys(req)) {
		inherit(pod, next[pod.UID], nodes, kind, req[kind])
		next[pod.UID][c.Name] = append(next[pod.UID][c.Name], Block{Nodes: nodes.IDs(), Type: kind, Size: req[kind]})
	}
	return m.replaceLocked(next, m.state.Pools)
}

// inherit reduces the blocks of init containers on exactly these nodes by up to size, for
// the container that reuses them.
func inherit(pod *v1.Pod, containers map[string][]Block, nodes topology.Mask, kind v1.ResourceName, size uint64) {
	for _, name := range slices.Sorted(maps.Keys(containers)) {
		if !podspec.RunsToCompletion(pod, name) {
			continue
		}
		for i := range containers[name] {
			b := &containers[name][i]
			if b.Type == kind && topology.MaskOf(b.Nodes...) == nodes {
				part := min(size, b.Size)
				b.Size -= part
				size -= part
			}
		}
	}
}

// reusableLocked returns the memory of the pod's init containers that terminate before c
// starts, by nodes and kind.
func (m *Manager) reusableLocked(pod *v1.Pod, c *v1.Container) map[topology.Mask]Request {
	reusable := map[topology.Mask]Request{}
	for name, blocks := range m.state.Assigned[pod.UID] {
		if !podspec.RunsToCompletion(pod, name) || name == c.Name {
			continue
		}
		for _, b := range blocks {
			nodes := topology.MaskOf(b.Nodes...)
			if reusable[nodes] == nil {
				reusable[nodes] = Request{}
			}
			reusable[nodes][b.Type] += b.Size
		}
	}
	return reusable
}

// replaceLocked computes the state of the nodes for next, saves it, and makes it current.
func (m *Manager) replaceLocked(next assignedBlocks, pools podPools) error {
	nodes, lost := replay(m.empty, held(next, pools))
	if len(lost) > 0 {
		return fmt.Errorf("memory: container %q of pod %q: %w: %s", lost[0].Container, lost[0].PodUID, errTooLittle, lost[0].Why)
	}
	s := checkpointState{Policy: m.cfg.Policy, Nodes: nodes, Assigned: next, Pools: pools}
	if err := m.cfg.Store.Save(s.encode()); err != nil {
		return fmt.Errorf("memory: save checkpoint: %w", err)
	}
	m.state = s
	return nil
}

// Free implements topology.Provider.
func (m *Manager) Free(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.holdsLocked(uid) {
		return
	}
	next, pools := m.state.Assigned.clone(), maps.Clone(m.state.Pools)
	delete(next, uid)
	delete(pools, uid)
	if err := m.replaceLocked(next, pools); err != nil {
		// The allocation is restored at the next start and released then.
		m.cfg.Logger.Error("Failed to save checkpoint after releasing memory; will save with the next change", "podUID", uid, "err", err)
		m.state.Assigned, m.state.Pools = next, pools
		m.state.Nodes, _ = replay(m.empty, held(next, pools))
	}
}

// Retain releases the memory of all pods for which keep returns false.
func (m *Manager) Retain(keep func(uid types.UID) bool) {
	s := m.snapshot()
	for uid := range held(s.Assigned, s.Pools) {
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

// Nodes returns the NUMA nodes of a container's memory; 0 means all nodes.
func (m *Manager) Nodes(uid types.UID, container string) topology.Mask {
	m.mu.Lock()
	defer m.mu.Unlock()
	var nodes topology.Mask
	for _, b := range m.state.Assigned[uid][container] {
		nodes |= topology.MaskOf(b.Nodes...)
	}
	return nodes
}

// Blocks returns the memory that is allocated to a container alone.
func (m *Manager) Blocks(uid types.UID, container string) []Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.state.Pools[uid].Shared[container] {
		return nil
	}
	return slices.Clone(m.state.Assigned[uid][container])
}

// Allocatable returns the allocatable memory by node; nil with the policy None.
func (m *Manager) Allocatable() []Block {
	var blocks []Block
	for _, id := range slices.Sorted(maps.Keys(m.empty)) {
		for _, kind := range slices.Sorted(maps.Keys(m.empty[id].Memory)) {
			if size := m.empty[id].Memory[kind].Allocatable; size > 0 {
				blocks = append(blocks, Block{Nodes: []int{id}, Type: kind, Size: size})
			}
		}
	}
	return blocks
}

// snapshot returns a copy of the state.
func (m *Manager) snapshot() checkpointState {
	m.mu.Lock()
	defer m.mu.Unlock()
	return checkpointState{Policy: m.state.Policy, Nodes: m.state.Nodes.clone(), Assigned: m.state.Assigned.clone(), Pools: maps.Clone(m.state.Pools)}
}
