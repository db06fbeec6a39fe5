package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// errTooLittle is returned if less memory is free than requested.
var errTooLittle = errors.New("not enough memory available to satisfy request")

// A memoryTable is the memory of one kind in a NUMA node, in bytes.
type memoryTable struct {
	Total       uint64 `json:"total"`
	Reserved    uint64 `json:"systemReserved"` // for the system and the agent
	Allocatable uint64 `json:"allocatable"`
	Given       uint64 `json:"reserved"` // allocated to containers
	Free        uint64 `json:"free"`
}

// A nodeMemory is the memory of a NUMA node and the group that it is part of.
type nodeMemory struct {
	// Assignments is the number of blocks on the node.
	Assignments int `json:"numberOfAssignments"`

	Memory map[v1.ResourceName]*memoryTable `json:"memoryMap"`

	// Group are the nodes that share these blocks; only the node itself if there are
	// none.
	Group []int `json:"cells"`
}

// A machineMemory is the memory of the NUMA nodes by ID.
type machineMemory map[int]*nodeMemory

// A Block is memory of one kind that is allocated to a container from a group of nodes.
type Block struct {
	Nodes []int           `json:"numaAffinity"`
	Type  v1.ResourceName `json:"type"`
	Size  uint64          `json:"size"` // in bytes
}

// assignedBlocks are the allocated blocks by pod and container.
type assignedBlocks map[types.UID]map[string][]Block

// A Request is the requested amount of each kind of memory in bytes.
type Request map[v1.ResourceName]uint64

// emptyNodes returns the nodes of a machine without allocations. reserved is the memory
// that is not allocated, by node and kind.
func emptyNodes(m *topology.Machine, reserved map[int]Request) machineMemory {
	nodes := machineMemory{}
	for _, n := range m.Nodes {
		state := &nodeMemory{Memory: map[v1.ResourceName]*memoryTable{}, Group: []int{n.ID}}
		pages := uint64(0)
		for size, count := range n.HugePages {
			kind, bytes := podspec.HugePagesName(size), uint64(size*count)
			state.Memory[kind] = table(bytes, reserved[n.ID][kind])
			pages += bytes
		}
		state.Memory[v1.ResourceMemory] = table(n.MemoryBytes-min(n.MemoryBytes, pages), reserved[n.ID][v1.ResourceMemory])
		state.Memory[v1.ResourceMemory].Total = n.MemoryBytes
		nodes[n.ID] = state
	}
	return nodes
}

// table returns the table of a node without allocations.
func table(usable, reserved uint64) *memoryTable {
	t := &memoryTable{Total: usable, Reserved: reserved, Allocatable: usable - min(usable, reserved)}
	t.Free = t.Allocatable
	return t
}

// clone returns an independent copy.
func (n machineMemory) clone() machineMemory {
	c := machineMemory{}
	for id, state := range n {
		s := &nodeMemory{Assignments: state.Assignments, Memory: map[v1.ResourceName]*memoryTable{}, Group: slices.Clone(state.Group)}
		for kind, t := range state.Memory {
			copied := *t
			s.Memory[kind] = &copied
		}
		c[id] = s
	}
	return c
}

// all returns the set of the nodes.
func (n machineMemory) all() topology.Mask { return topology.MaskOf(slices.Collect(maps.Keys(n))...) }

// sum adds up the memory of a kind in some nodes.
func (n machineMemory) sum(nodes topology.Mask, kind v1.ResourceName, of func(*memoryTable) uint64) uint64 {
	var total uint64
	for _, id := range nodes.IDs() {
		if t := n[id].Memory[kind]; t != nil {
			total += of(t)
		}
	}
	return total
}

func allocatable(t *memoryTable) uint64 { return t.Allocatable }
func free(t *memoryTable) uint64        { return t.Free }

// groupable reports whether a block may be allocated from exactly these nodes: none of
// them is part of another group.
func (n machineMemory) groupable(nodes topology.Mask) bool {
	for _, id := range nodes.IDs() {
		if n[id].Assignments > 0 && topology.MaskOf(n[id].Group...) != nodes {
			return false
		}
	}
	return true
}

// memoryHints returns the sets of nodes that can satisfy a request now, including the
// memory of init containers that the container can reuse there. Sets with as few nodes as
// the request needs on an idle machine are preferred. The result is empty, not nil, if
// there is none. It is a pure function.
func memoryHints(nodes machineMemory, req Request, reusable map[topology.Mask]Request) []topology.Hint {
	least := topology.MaxNodes + 1
	hints := []topology.Hint{}
	for set := range nodes.all().Subsets() {
		fits, fitsEmpty := nodes.groupable(set), true
		for kind, size := range req {
			fitsEmpty = fitsEmpty && nodes.sum(set, kind, allocatable) >= size
			fits = fits && nodes.sum(set, kind, free)+reusable[set][kind] >= size
		}
		if fitsEmpty {
			least = min(least, set.Count())
		}
		if fits {
			hints = append(hints, topology.Hint{Nodes: set})
		}
	}
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == least
	}
	return hints
}

// choose returns the nodes for a request: those of the hint, or the best ones if it has
// none; more nodes if those of the hint have too little memory. It is a pure function.
func choose(nodes machineMemory, req Request, reusable map[topology.Mask]Request, where topology.Hint) (topology.Mask, error) {
	hints := memoryHints(nodes, req, reusable)
	var best *topology.Hint
	for i, h := range hints {
		if h.Nodes&where.Nodes != where.Nodes {
			continue // it lacks a node of the hint
		}
		if h.Nodes == where.Nodes || best == nil || h.Preferred && !best.Preferred {
			best = &hints[i]
		}
		if h.Nodes == where.Nodes {
			break
		}
	}
	if best == nil {
		return 0, fmt.Errorf("%w: %s, in nodes [%s]", errTooLittle, req, where.Nodes)
	}
	return best.Nodes, nil
}

// String lists the request in order: "hugepages-2Mi=4194304, memory=1073741824".
func (r Request) String() string {
	text := ""
	for _, kind := range slices.Sorted(maps.Keys(r)) {
		if text != "" {
			text += ", "
		}
		text += fmt.Sprintf("%s=%d", kind, r[kind])
	}
	return text
}

// take allocates a block from the nodes, the lowest first.
func (n machineMemory) take(nodes topology.Mask, kind v1.ResourceName, size uint64) {
	for _, id := range nodes.IDs() {
		state := n[id]
		state.Assignments++
		state.Group = nodes.IDs()
		t := state.Memory[kind]
		if t == nil {
			continue
		}
		part := min(size, t.Free)
		t.Free -= part
		t.Given += part
		size -= part
	}
}

// replay returns the nodes after all blocks were allocated, and the blocks that cannot
// be: their nodes or memory do not exist, or their nodes are in other groups. It is a
// pure function.
func replay(empty machineMemory, assigned assignedBlocks) (machineMemory, []Lost) {
	nodes := empty.clone()
	var lost []Lost
	for _, uid := range slices.Sorted(maps.Keys(assigned)) {
		for _, name := range slices.Sorted(maps.Keys(assigned[uid])) {
			for _, b := range assigned[uid][name] {
				set := topology.MaskOf(b.Nodes...)
				why := ""
				switch {
				case set == 0 || set&nodes.all() != set:
					why = "a NUMA node does not exist"
				case !nodes.groupable(set):
					why = "its NUMA nodes are in other groups"
				case nodes.sum(set, b.Type, free) < b.Size:
					why = "not enough memory"
				}
				if why != "" {
					lost = append(lost, Lost{PodUID: uid, Container: name, Block: b, Why: why})
					continue
				}
				nodes.take(set, b.Type, b.Size)
			}
		}
	}
	return nodes, lost
}

// Lost is a block that cannot be allocated to its container again.
type Lost struct {
	PodUID    types.UID
	Container string
	Block     Block
	Why       string
}
