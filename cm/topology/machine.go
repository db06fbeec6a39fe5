package topology

import (
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"
)

// MaxNodes is how many NUMA nodes a [Mask] has room for.
const MaxNodes = 64

// A CPU is one logical CPU that is online, and what it shares with others.
type CPU struct {
	ID     int
	Core   int // the lowest CPU of its physical core
	Uncore int // the lowest CPU that it shares its last level cache with
	Node   int // its NUMA node
	Socket int // its physical package
}

// A Node is a NUMA node. It may have no CPUs, or no memory.
type Node struct {
	ID int

	// MemoryBytes is all of its memory, huge pages included.
	MemoryBytes uint64

	// HugePages is how many huge pages it has, by their size in bytes.
	HugePages map[int64]int64

	// Distances to the nodes of the machine, in the order of Machine.Nodes; 10
	// is the node itself. Nil: not known.
	Distances []int
}

// A Machine is what the CPUs and memory of a machine look like. It is made by
// [Read] or [New] and is not changed after that: it can be used from many
// goroutines at once.
type Machine struct {
	CPUs    []CPU  // by ID
	Nodes   []Node // by ID; at least one
	Offline cpuset.CPUSet

	byID map[int]int // place in CPUs
	all  cpuset.CPUSet
}

// New checks what is known of a machine, and sorts it. An error names what is
// wrong.
func New(cpus []CPU, nodes []Node, offline cpuset.CPUSet) (*Machine, error) {
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
			return nil, fmt.Errorf("topology: NUMA node %d is there twice", n.ID)
		}
		if n.Distances != nil && len(n.Distances) != len(m.Nodes) {
			return nil, fmt.Errorf("topology: NUMA node %d has %d distances to %d nodes", n.ID, len(n.Distances), len(m.Nodes))
		}
	}
	ids := make([]int, len(m.CPUs))
	for i, c := range m.CPUs {
		if _, twice := m.byID[c.ID]; twice || c.ID < 0 {
			return nil, fmt.Errorf("topology: CPU %d is there twice, or negative", c.ID)
		}
		if !slices.ContainsFunc(m.Nodes, func(n Node) bool { return n.ID == c.Node }) {
			return nil, fmt.Errorf("topology: CPU %d is in NUMA node %d, which is not there", c.ID, c.Node)
		}
		m.byID[c.ID], ids[i] = i, c.ID
	}
	m.all = cpuset.New(ids...)
	return m, nil
}

// All returns the CPUs that are online.
func (m *Machine) All() cpuset.CPUSet { return m.all }

// Place returns where in m.CPUs a CPU is, and whether it is there.
func (m *Machine) Place(id int) (int, bool) {
	i, ok := m.byID[id]
	return i, ok
}

// AllNodes returns the NUMA nodes.
func (m *Machine) AllNodes() Mask {
	var all Mask
	for _, n := range m.Nodes {
		all |= MaskOf(n.ID)
	}
	return all
}

// Where returns the CPUs of which is says yes.
func (m *Machine) Where(is func(CPU) bool) cpuset.CPUSet {
	var ids []int
	for _, c := range m.CPUs {
		if is(c) {
			ids = append(ids, c.ID)
		}
	}
	return cpuset.New(ids...)
}

// InNodes returns the CPUs of these NUMA nodes.
func (m *Machine) InNodes(nodes Mask) cpuset.CPUSet {
	return m.Where(func(c CPU) bool { return nodes.Has(c.Node) })
}

// NodesOf returns the NUMA nodes of these CPUs; those that are not there are
// left out.
func (m *Machine) NodesOf(cpus cpuset.CPUSet) Mask {
	var nodes Mask
	for _, c := range m.CPUs {
		if cpus.Contains(c.ID) {
			nodes |= MaskOf(c.Node)
		}
	}
	return nodes
}

// ThreadsPerCore is how many CPUs a core has; the most, if they differ.
func (m *Machine) ThreadsPerCore() int {
	most, count := 1, map[int]int{}
	for _, c := range m.CPUs {
		count[c.Core]++
		most = max(most, count[c.Core])
	}
	return most
}

// Sockets is how many physical packages there are.
func (m *Machine) Sockets() int {
	seen := map[int]bool{}
	for _, c := range m.CPUs {
		seen[c.Socket] = true
	}
	return len(seen)
}

// Distance is the mean of the distances between each two of the nodes, and of
// each to itself. Distances that are not known count as 10 for the node itself
// and 20 for another.
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
