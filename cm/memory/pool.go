package memory

import (
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// A podPool is the memory of a pod that is allocated memory as a whole.
type podPool struct {
	Blocks []Block

	// Shared are the containers without memory of their own. Their blocks in assignedBlocks are what
	// the others leave of the pool. A kubelet does not save them: they are nil until the pod is
	// admitted again.
	Shared map[string]bool
}

// podPools are the pools by pod.
type podPools map[types.UID]podPool

// held returns the blocks that are allocated from nodes: those of a pool instead of those of the
// containers of its pod. A pool has no container.
func held(assigned assignedBlocks, pools podPools) assignedBlocks {
	all := maps.Clone(assigned)
	if all == nil {
		all = assignedBlocks{}
	}
	for uid, pool := range pools {
		all[uid] = map[string][]Block{"": pool.Blocks}
	}
	return all
}

// divide divides the memory of a pod among its containers (KEP-5526): that which they request for those with
// memory of their own; init containers leave theirs to those that start after them; all others share
// what remains in the end, except that an init container has all that sidecars do not have yet. It is
// a pure function.
func divide(pod *v1.Pod, pool Request, nodes topology.Mask, scope topology.Scope) (map[string][]Block, map[string]bool, error) {
	assigned, shared := map[string][]Block{}, map[string]bool{}
	free := pool.plus(nil)
	for c := range podspec.Containers(pod) {
		own, passes := exclusiveMemory(pod, c, scope), podspec.RunsToCompletion(pod, c.Name)
		if len(own) == 0 {
			shared[c.Name] = true
			if passes {
				if kind := used(free, pool); kind != "" {
					return nil, nil, fmt.Errorf("pod rejected, pod has shared init containers but no %s available for them", kind)
				}
				assigned[c.Name] = blocksOf(free, nodes)
			}
			continue
		}
		assigned[c.Name] = blocksOf(own, nodes)
		if !passes {
			for kind, size := range own {
				free[kind] -= min(size, free[kind])
			}
		}
	}
	for name := range shared {
		if _, ok := assigned[name]; ok {
			continue
		}
		if kind := used(free, pool); kind != "" {
			return nil, nil, fmt.Errorf("pod rejected, sum of exclusive container %s requests equals pod budget, leaving no memory for shared containers", kind)
		}
		assigned[name] = blocksOf(free, nodes)
	}
	return assigned, shared, nil
}

// used returns a kind of memory of a pool of which nothing is free.
func used(free, pool Request) v1.ResourceName {
	for _, kind := range slices.Sorted(maps.Keys(pool)) {
		if free[kind] == 0 {
			return kind
		}
	}
	return ""
}

func blocksOf(req Request, nodes topology.Mask) []Block {
	var blocks []Block
	for _, kind := range slices.Sorted(maps.Keys(req)) {
		if req[kind] > 0 {
			blocks = append(blocks, Block{Nodes: nodes.IDs(), Type: kind, Size: req[kind]})
		}
	}
	return blocks
}

// allocatePool is Allocate for the first container of a pod that is allocated memory as a whole. It
// allocates that of all containers.
func (m *Manager) allocatePool(pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	req := podExclusiveMemory(pod, m.cfg.PodLevel)
	if len(req) == 0 {
		return nil
	}
	given, err := m.pinPool(pod, req, where)
	if err != nil {
		m.reportPin(PinInfo{Pod: pod, Container: c.Name, Error: err, Assignment: topology.PodExclusive})
		return err
	}
	for _, info := range given {
		m.reportPin(info)
	}
	return nil
}

// pinPool allocates the memory of a pod as a whole and divides it, unless it has it already. It returns
// what its containers have got.
func (m *Manager) pinPool(pod *v1.Pod, req Request, where topology.Hint) ([]PinInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pool, known := m.state.Pools[pod.UID]
	if known && pool.Shared != nil {
		return nil, nil
	}
	nodes, err := m.poolNodesLocked(pod, pool, req, where)
	if err != nil {
		return nil, err
	}
	assigned, shared, err := divide(pod, req, nodes, m.cfg.PodLevel)
	if err != nil {
		return nil, &runtime.Rejection{Reason: topology.ReasonEmptyPool, Message: err.Error(), Err: err}
	}
	if !known {
		pool.Blocks = blocksOf(req, nodes)
	}
	pool.Shared = shared
	has, next, pools := m.state.Assigned[pod.UID], m.state.Assigned.clone(), maps.Clone(m.state.Pools)
	if pools == nil {
		pools = podPools{}
	}
	next[pod.UID], pools[pod.UID] = assigned, pool
	if err := m.replaceLocked(next, pools); err != nil {
		return nil, err
	}
	var given []PinInfo
	for c := range podspec.Containers(pod) {
		info := PinInfo{Pod: pod, Container: c.Name, Assignment: topology.PodExclusive}
		if shared[c.Name] {
			info.Assignment = topology.PodShared
		}
		if _, kept := has[c.Name]; !kept {
			given = append(given, info)
		}
	}
	return given, nil
}

// poolNodesLocked returns the nodes of a pool; for a new one, whose blocks are nil, those that suit it best.
func (m *Manager) poolNodesLocked(pod *v1.Pod, pool podPool, req Request, where topology.Hint) (nodes topology.Mask, err error) {
	for _, b := range pool.Blocks {
		nodes |= topology.MaskOf(b.Nodes...)
	}
	if nodes != 0 {
		return nodes, nil
	}
	others := m.state.Assigned.clone()
	delete(others, pod.UID) // its containers may have got memory of their own before
	state, lost := replay(m.empty, held(others, m.state.Pools))
	if len(lost) > 0 {
		return 0, fmt.Errorf("memory: container %q of pod %q: %s", lost[0].Container, lost[0].PodUID, lost[0].Why)
	}
	return choose(state, req, nil, where)
}

// PodBlocks returns the memory of a pod that is allocated memory as a whole (see Config.PodLevel),
// that of its containers included; nil for other pods.
func (m *Manager) PodBlocks(uid types.UID) []Block {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.state.Pools[uid].Blocks)
}
