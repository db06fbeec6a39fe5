package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/hugepages"
)

// ErrTooLittle says that there is less memory free than is asked for.
var ErrTooLittle = errors.New("not enough memory available to satisfy request")

// A Table is what a NUMA node has of one kind of memory, in bytes.
type Table struct {
	Total       uint64 `json:"total"`
	Reserved    uint64 `json:"systemReserved"` // for the system and the agent
	Allocatable uint64 `json:"allocatable"`
	Given       uint64 `json:"reserved"` // to containers
	Free        uint64 `json:"free"`
}

// A NodeState is what a NUMA node has, and with which others it is grouped.
type NodeState struct {
	// Assignments is how many blocks lie on it.
	Assignments int `json:"numberOfAssignments"`

	Memory map[v1.ResourceName]*Table `json:"memoryMap"`

	// Group is the nodes over which these blocks lie; the node alone, if there are
	// none (mem-3).
	Group []int `json:"cells"`
}

// Nodes are the NUMA nodes of a machine by ID.
type Nodes map[int]*NodeState

// A Block is memory of one kind that a container has, somewhere in a group of
// nodes.
type Block struct {
	Nodes []int           `json:"numaAffinity"`
	Type  v1.ResourceName `json:"type"`
	Size  uint64          `json:"size"` // in bytes
}

// Assigned is who has which blocks: by pod and container.
type Assigned map[types.UID]map[string][]Block

// A Request is how much of each kind of memory is asked for, in bytes.
type Request map[v1.ResourceName]uint64

// Empty returns the nodes of a machine of which nothing is given out yet.
// reserved is what nobody gets, by node and kind.
func Empty(m *topology.Machine, reserved map[int]Request) Nodes {
	nodes := Nodes{}
	for _, n := range m.Nodes {
		state := &NodeState{Memory: map[v1.ResourceName]*Table{}, Group: []int{n.ID}}
		pages := uint64(0)
		for size, count := range n.HugePages {
			kind, bytes := hugepages.Name(size), uint64(size*count)
			state.Memory[kind] = table(bytes, reserved[n.ID][kind])
			pages += bytes
		}
		state.Memory[v1.ResourceMemory] = table(n.MemoryBytes-min(n.MemoryBytes, pages), reserved[n.ID][v1.ResourceMemory])
		state.Memory[v1.ResourceMemory].Total = n.MemoryBytes
		nodes[n.ID] = state
	}
	return nodes
}

// table is that of a node that has so much that can be given out or reserved.
func table(usable, reserved uint64) *Table {
	t := &Table{Total: usable, Reserved: reserved, Allocatable: usable - min(usable, reserved)}
	t.Free = t.Allocatable
	return t
}

// clone returns a copy that can be changed.
func (n Nodes) clone() Nodes {
	c := Nodes{}
	for id, state := range n {
		s := &NodeState{Assignments: state.Assignments, Memory: map[v1.ResourceName]*Table{}, Group: slices.Clone(state.Group)}
		for kind, t := range state.Memory {
			copied := *t
			s.Memory[kind] = &copied
		}
		c[id] = s
	}
	return c
}

// all returns the IDs of the nodes as a set.
func (n Nodes) all() topology.Mask { return topology.MaskOf(slices.Collect(maps.Keys(n))...) }

// sum adds up what some nodes have of a kind.
func (n Nodes) sum(nodes topology.Mask, kind v1.ResourceName, of func(*Table) uint64) uint64 {
	var total uint64
	for _, id := range nodes.IDs() {
		if t := n[id].Memory[kind]; t != nil {
			total += of(t)
		}
	}
	return total
}

func allocatable(t *Table) uint64 { return t.Allocatable }
func free(t *Table) uint64        { return t.Free }

// groupable reports whether a block may lie over these nodes: none of them holds
// blocks that lie over others (mem-3).
func (n Nodes) groupable(nodes topology.Mask) bool {
	for _, id := range nodes.IDs() {
		if n[id].Assignments > 0 && topology.MaskOf(n[id].Group...) != nodes {
			return false
		}
	}
	return true
}

// Hints returns from which nodes a request can be served now, with reusable on top
// of what is free there: what init containers of the pod have had, by nodes
// (mem-4). Preferred are those with as few nodes as the request needs on an empty
// machine. Empty, not nil: from none. A pure function.
func Hints(nodes Nodes, req Request, reusable map[topology.Mask]Request) []topology.Hint {
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

// Choose says over which nodes a request is to lie: those of the hint, or, if it
// leaves that open, the best of the machine; with more nodes than the hint has, if
// these alone have too little. A pure function.
func Choose(nodes Nodes, req Request, reusable map[topology.Mask]Request, where topology.Hint) (topology.Mask, error) {
	hints := Hints(nodes, req, reusable)
	var best *topology.Hint
	for i, h := range hints {
		if h.Nodes&where.Nodes != where.Nodes {
			continue // it lacks one of the hint's
		}
		if h.Nodes == where.Nodes || best == nil || h.Preferred && !best.Preferred {
			best = &hints[i]
		}
		if h.Nodes == where.Nodes {
			break
		}
	}
	if best == nil {
		return 0, fmt.Errorf("%w: %s, in nodes [%s]", ErrTooLittle, req, where.Nodes)
	}
	return best.Nodes, nil
}

// String lists the request in order.
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

// take gives a block out of the nodes, the lower first.
func (n Nodes) take(nodes topology.Mask, kind v1.ResourceName, size uint64) {
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

// Replay returns what the nodes are after all blocks were given out, and those that
// can't be: of nodes that are not there, of memory that is not, or over nodes that
// are grouped otherwise. A pure function.
func Replay(empty Nodes, assigned Assigned) (Nodes, []Lost) {
	nodes := empty.clone()
	var lost []Lost
	for _, uid := range slices.Sorted(maps.Keys(assigned)) {
		for _, name := range slices.Sorted(maps.Keys(assigned[uid])) {
			for _, b := range assigned[uid][name] {
				set := topology.MaskOf(b.Nodes...)
				why := ""
				switch {
				case set == 0 || set&nodes.all() != set:
					why = "a NUMA node is not there"
				case !nodes.groupable(set):
					why = "its NUMA nodes are grouped otherwise"
				case nodes.sum(set, b.Type, free) < b.Size:
					why = "there is less memory"
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

// Lost is a block that can't be given to a container again.
type Lost struct {
	PodUID    types.UID
	Container string
	Block     Block
	Why       string
}
