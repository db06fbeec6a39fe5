package topology

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// MaxNodes is the maximum number of NUMA nodes in a [Mask].
const MaxNodes = 64

// A CPU is a logical CPU that is online.
type CPU struct {
	ID     int
	Core   int // the lowest CPU of its physical core
	Uncore int // the lowest CPU that shares its last level cache
	Node   int // its NUMA node
	Socket int // its physical package
}

// A Node is a NUMA node. It may have no CPUs, or no memory.
type Node struct {
	ID int

	// MemoryBytes is its memory in bytes, including huge pages.
	MemoryBytes uint64

	// HugePages is the number of huge pages by page size in bytes.
	HugePages map[int64]int64

	// Distances are the distances to the nodes in the order of Machine.Nodes; 10 is the
	// distance of a node to itself. Nil means unknown.
	Distances []int
}

// A Machine is the CPU and memory topology of a machine. [Read] and [NewMachine] create
// it. It is immutable and safe for concurrent use.
type Machine struct {
	CPUs    []CPU  // by ID
	Nodes   []Node // by ID; at least one
	Offline cpuset.CPUSet

	byID map[int]int // index in CPUs
	all  cpuset.CPUSet
}

// NewMachine validates and sorts the CPUs and nodes of a machine.
func NewMachine(cpus []CPU, nodes []Node, offline cpuset.CPUSet) (*Machine, error) {
	m := &Machine{CPUs: slices.Clone(cpus), Nodes: slices.Clone(nodes), Offline: offline, byID: map[int]int{}}
	slices.SortFunc(m.CPUs, func(a, b CPU) int { return a.ID - b.ID })
	slices.SortFunc(m.Nodes, func(a, b Node) int { return a.ID - b.ID })
	if len(cpus) == 0 {
		return nil, fmt.Errorf("topology: no CPU is online")
	}
	for i, n := range m.Nodes {
		if n.ID < 0 || n.ID >= MaxNodes {
			return nil, fmt.Errorf("topology: NUMA node %d is outside of 0 to %d", n.ID, MaxNodes-1)
		}
		if i > 0 && m.Nodes[i-1].ID == n.ID {
			return nil, fmt.Errorf("topology: duplicate NUMA node %d", n.ID)
		}
		if n.Distances != nil && len(n.Distances) != len(m.Nodes) {
			return nil, fmt.Errorf("topology: NUMA node %d has %d distances to %d nodes", n.ID, len(n.Distances), len(m.Nodes))
		}
	}
	ids := make([]int, len(m.CPUs))
	for i, c := range m.CPUs {
		if _, twice := m.byID[c.ID]; twice || c.ID < 0 {
			return nil, fmt.Errorf("topology: CPU %d is duplicate or negative", c.ID)
		}
		if !slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.ID == c.Node }) {
			return nil, fmt.Errorf("topology: CPU %d is in NUMA node %d, which does not exist", c.ID, c.Node)
		}
		m.byID[c.ID], ids[i] = i, c.ID
	}
	m.all = cpuset.New(ids...)
	return m, nil
}

// All returns the online CPUs.
func (m *Machine) All() cpuset.CPUSet { return m.all }

// Place returns the index of a CPU in m.CPUs and whether it is online.
func (m *Machine) Place(id int) (int, bool) {
	i, ok := m.byID[id]
	return i, ok
}

// AllNodes returns the NUMA nodes of the machine.
func (m *Machine) AllNodes() Mask {
	var all Mask
	for _, n := range m.Nodes {
		all |= MaskOf(n.ID)
	}
	return all
}

// Where returns the CPUs for which is returns true.
func (m *Machine) Where(is func(CPU) bool) cpuset.CPUSet {
	var ids []int
	for _, c := range m.CPUs {
		if is(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.New(ids...)
}

// InNodes returns the CPUs of the NUMA nodes.
func (m *Machine) InNodes(nodes Mask) cpuset.CPUSet {
	return m.Where(func(c CPU) bool { return nodes.Has(c.Node) })
}

// NodesOf returns the NUMA nodes of the CPUs. CPUs that are not online are ignored.
func (m *Machine) NodesOf(cpus cpuset.CPUSet) Mask {
	var nodes Mask
	for _, c := range m.CPUs {
		if cpus.Contains(c.ID) {
			nodes |= MaskOf(c.Node)
		}
	}
	return nodes
}

// ThreadsPerCore returns the number of CPUs per core; the maximum if cores differ.
func (m *Machine) ThreadsPerCore() int {
	most, count := 1, map[int]int{}
	for _, c := range m.CPUs {
		count[c.Core]++
		most = max(most, count[c.Core])
	}
	return most
}

// Sockets returns the number of physical packages.
func (m *Machine) Sockets() int {
	seen := map[int]bool{}
	for _, c := range m.CPUs {
		seen[c.Socket] = true
	}
	return len(seen)
}

// Distance returns the mean distance between the nodes, including that of each to itself.
// Unknown distances count as 10 for the node itself and 20 for another.
func (m *Machine) Distance(nodes Mask) float64 {
	sum, pairs := 0, 0
	for i, from := range m.Nodes {
		if !nodes.Has(from.ID) {
			continue
		}
		for j, to := range m.Nodes {
			if !nodes.Has(to.ID) {
				continue
			}
			pairs++
			switch {
			case from.Distances != nil:
				sum += from.Distances[j]
			case i == j:
				sum += 10
			default:
				sum += 20
			}
		}
	}
	if pairs == 0 {
		return 0
	}
	return float64(sum) / float64(pairs)
}
