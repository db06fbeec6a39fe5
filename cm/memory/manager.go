package memory

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// A Policy is how memory is given out.
type Policy string

// The policies, by the names of KubeletConfiguration.memoryManagerPolicy (mem-1).
const (
	None   Policy = "None"   // everybody uses all nodes
	Static Policy = "Static" // Guaranteed pods get memory of certain nodes
)

// ParsePolicy returns the policy of that name; "" is None.
func ParsePolicy(name string) (Policy, error) {
	switch p := Policy(name); p {
	case "":
		return None, nil
	case None, Static:
		return p, nil
	default:
		return "", fmt.Errorf("memory: unknown policy: %q", name)
	}
}

// Config says how a [Manager] works.
type Config struct {
	// Machine, required.
	Machine *topology.Machine

	// Policy; "" is None.
	Policy Policy

	// Reserved is what nobody gets, by NUMA node. Static needs it, and that its
	// sums are Total: what is reserved for the system and the agent, and the
	// threshold of hard eviction (mem-2).
	Reserved map[int]Request
	Total    Request

	// Store keeps what is given out. Nil: memory.
	Store state.Store

	// Runs reports whether a container runs now, for a state that no longer fits
	// the machine. Nil: none does.
	Runs func(uid types.UID, container string) bool

	// RefuseForeign makes Open fail, as a kubelet does, where the state is of
	// another policy, another machine, or broken (mem-1), instead of mending it.
	RefuseForeign bool

	// Logger; nil discards.
	Logger *slog.Logger

	Hooks Hooks
}

// Hooks are told what happens, for metrics. Each may be nil. They are called with no
// lock held.
type Hooks struct {
	// Pinned is told of each container that was to get memory of certain nodes.
	Pinned func(PinInfo)
}

// PinInfo is what became of a container.
type PinInfo struct {
	Pod       *v1.Pod
	Container string
	Error     error // nil: it has it
}

// A ConflictError says that containers run with memory that they can't have any
// more. It is up to the caller to stop them; then there is no conflict.
type ConflictError struct {
	Conflicts []Lost
}

func (e *ConflictError) Error() string {
	var all []string
	for _, c := range e.Conflicts {
		all = append(all, fmt.Sprintf("container %q of pod %q, %s on NUMA nodes %v: %s", c.Container, c.PodUID, c.Block.Type, c.Block.Nodes, c.Why))
	}
	return "memory: containers run with memory that they can't have: " + strings.Join(all, "; ")
}

// A Manager gives memory of NUMA nodes to containers. It is a topology.Provider.
// Its methods may be called from any goroutine.
type Manager struct {
	cfg   Config
	empty Nodes

	mu    sync.Mutex // guards the fields below
	state State
}

// Open checks the Config, reads the state and mends it: it returns a
// *ConflictError where that can't be done while certain containers run.
func Open(cfg Config) (*Manager, error) {
	if cfg.Machine == nil {
		return nil, errors.New("memory: Config.Machine is nil")
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
	m := &Manager{cfg: cfg, state: State{Policy: cfg.Policy}}
	if cfg.Policy == Static {
		there := map[int]bool{}
		for _, n := range cfg.Machine.Nodes {
			there[n.ID] = true
		}
		if cfg.Total[v1.ResourceMemory] == 0 {
			return nil, errors.New("memory: the Static policy requires reserved memory")
		}
		if err := CheckReserved(there, cfg.Reserved, cfg.Total); err != nil {
			return nil, err
		}
		m.empty = Empty(cfg.Machine, cfg.Reserved)
		m.state.Nodes = m.empty
	}
	return m, m.load()
}

// load reads what was saved, mends it, and saves it again if it was.
func (m *Manager) load() error {
	saved, err := m.saved()
	if err != nil {
		return err
	}
	if m.cfg.Policy == Static && saved.Policy == Static {
		if err := m.heal(saved.Assigned); err != nil {
			return err
		}
	}
	if string(m.state.Encode()) == string(saved.Encode()) {
		return nil
	}
	if saved.Policy != "" {
		m.cfg.Logger.Warn("the state of the memory was mended", "was", saved.Policy)
		if err := m.cfg.Store.Keep(); err != nil {
			return fmt.Errorf("memory: keep a copy of the state: %w", err)
		}
	}
	return m.save(m.state)
}

// heal takes over the assignments that the machine can still hold (F-53).
func (m *Manager) heal(assigned Assigned) error {
	assigned = assigned.clone()
	nodes, lost := Replay(m.empty, assigned)
	var conflicts []Lost
	for _, l := range lost {
		if m.cfg.Runs != nil && m.cfg.Runs(l.PodUID, l.Container) {
			conflicts = append(conflicts, l)
		}
		delete(assigned[l.PodUID], l.Container)
	}
	if len(conflicts) > 0 {
		return &ConflictError{Conflicts: conflicts}
	}
	if len(lost) > 0 {
		nodes, _ = Replay(m.empty, assigned)
	}
	m.state.Nodes, m.state.Assigned = nodes, assigned
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
	if m.cfg.RefuseForeign {
		file := fmt.Sprint(m.cfg.Store)
		switch {
		case err != nil:
			return State{}, fmt.Errorf("could not restore state from checkpoint: %w, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", err, file)
		case saved.Policy != m.cfg.Policy:
			return State{}, fmt.Errorf("could not restore state from checkpoint: configured policy %q differs from state checkpoint policy %q, please drain this node and delete the memory manager checkpoint file %q before restarting Kubelet", m.cfg.Policy, saved.Policy, file)
		case m.cfg.Policy == Static:
			if nodes, lost := Replay(m.empty, saved.Assigned); len(lost) > 0 || !sameMachine(nodes, saved.Nodes) {
				return State{}, errors.New("memory: the expected machine state is different from the real one")
			}
		}
	}
	if err == nil {
		return saved, nil
	}
	m.cfg.Logger.Warn("the state of the memory can't be used; it is made anew", "err", err)
	if err := m.cfg.Store.Keep(); err != nil {
		return State{}, fmt.Errorf("memory: keep a copy of the state: %w", err)
	}
	return State{}, nil
}

// sameMachine compares what nodes have in all.
func sameMachine(a, b Nodes) bool {
	totals := func(nodes Nodes) map[int]Request {
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

func (m *Manager) save(s State) error {
	if err := m.cfg.Store.Save(s.Encode()); err != nil {
		return fmt.Errorf("memory: save the state: %w", err)
	}
	return nil
}

// Concerns implements topology.Provider.
func (m *Manager) Concerns(pod *v1.Pod) bool {
	return m.cfg.Policy == Static && len(podWants(pod)) > 0
}

// Hints implements topology.Provider.
func (m *Manager) Hints(pod *v1.Pod, c *v1.Container) topology.Hints {
	if m.cfg.Policy != Static {
		return nil
	}
	req := podWants(pod)
	if c != nil {
		req = Wants(pod, c)
	}
	if len(req) == 0 {
		return nil
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
		hints = Hints(m.state.Nodes, req, reusable)
	}
	out := topology.Hints{}
	for kind := range req {
		out[string(kind)] = hints
	}
	return out
}

// nodesLocked returns the nodes that the container has memory of; without one,
// those of any container of the pod.
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
	req := Wants(pod, c)
	if m.cfg.Policy != Static || len(req) == 0 {
		return nil
	}
	err := m.pin(pod, c, req, where)
	if m.cfg.Hooks.Pinned != nil {
		m.cfg.Hooks.Pinned(PinInfo{Pod: pod, Container: c.Name, Error: err})
	}
	return err
}

func (m *Manager) pin(pod *v1.Pod, c *v1.Container, req Request, where topology.Hint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.state.Assigned[pod.UID][c.Name]; ok {
		return nil
	}
	reusable := m.reusableLocked(pod, c)
	nodes, err := Choose(m.state.Nodes, req, reusable, where)
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
	return m.replaceLocked(next)
}

// inherit takes up to size of what init containers have on exactly these nodes, for
// the container that comes after them (mem-4).
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

// reusableLocked returns what the pod's init containers that have ended when c
// starts have, by nodes and kind.
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

// replaceLocked works out what the nodes are, saves it, and makes it what counts.
func (m *Manager) replaceLocked(next Assigned) error {
	nodes, lost := Replay(m.empty, next)
	if len(lost) > 0 {
		return fmt.Errorf("memory: container %q of pod %q: %w: %s", lost[0].Container, lost[0].PodUID, ErrTooLittle, lost[0].Why)
	}
	s := State{Policy: m.cfg.Policy, Nodes: nodes, Assigned: next}
	if err := m.save(s); err != nil {
		return err
	}
	m.state = s
	return nil
}

// Free implements topology.Provider.
func (m *Manager) Free(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, has := m.state.Assigned[uid]; !has {
		return
	}
	next := m.state.Assigned.clone()
	delete(next, uid)
	if err := m.replaceLocked(next); err != nil {
		// What is not saved comes back with the next start, and is freed then.
		m.cfg.Logger.Error("memory was freed and that can't be saved", "pod", uid, "err", err)
		m.state.Assigned = next
		m.state.Nodes, _ = Replay(m.empty, next)
	}
}

// Retain frees the memory of all pods but those of which is says yes.
func (m *Manager) Retain(is func(uid types.UID) bool) {
	for uid := range m.State().Assigned {
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

// Nodes returns the NUMA nodes whose memory a container may use; 0: all.
func (m *Manager) Nodes(uid types.UID, container string) topology.Mask {
	var nodes topology.Mask
	for _, b := range m.Blocks(uid, container) {
		nodes |= topology.MaskOf(b.Nodes...)
	}
	return nodes
}

// Blocks returns the memory that a container has for itself.
func (m *Manager) Blocks(uid types.UID, container string) []Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.state.Assigned[uid][container])
}

// Allocatable returns what containers can have in all, by node; nothing under None.
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

// State returns a copy of what is given out.
func (m *Manager) State() State {
	m.mu.Lock()
	defer m.mu.Unlock()
	return State{Policy: m.state.Policy, Nodes: m.state.Nodes.clone(), Assigned: m.state.Assigned.clone()}
}
