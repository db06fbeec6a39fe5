package cpu

import (
	"fmt"

	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// place selects n of the free CPUs like [Take], first from the nodes of the hint or, with
// Options.AlignBySocket, from their sockets; then from the others. It is a pure function.
func place(m *topology.Machine, opts Options, free cpuset.CPUSet, n int, where topology.Hint) (cpuset.CPUSet, error) {
	if n > free.Size() {
		return cpuset.New(), fmt.Errorf("%w: requested=%d, available=%d", errTooFew, n, free.Size())
	}
	if where.Nodes == 0 || where.Nodes == m.AllNodes() {
		return Take(m, opts, free, n)
	}
	aligned := free.Intersection(near(m, opts, where.Nodes))
	first := min(n, aligned.Size())
	if opts.FullPCPUsOnly {
		first -= first % m.ThreadsPerCore()
	}
	taken, err := Take(m, opts, aligned, first)
	if err != nil || first == n {
		return taken, err
	}
	rest, err := Take(m, opts, free.Difference(taken), n-first)
	return taken.Union(rest), err
}

// placeReusing is place for a container that may have the reusable CPUs, of init containers
// of its pod, as well as the free ones. As many of the reusable ones as possible are
// selected, since the pod keeps the others until it is removed without using them.
func placeReusing(m *topology.Machine, opts Options, free, reusable cpuset.CPUSet, n int, where topology.Hint) (cpuset.CPUSet, error) {
	cpus, err := place(m, opts, free.Union(reusable), n, where)
	if err != nil || cpus.Intersection(reusable).Size() == min(n, reusable.Size()) {
		return cpus, err
	}
	if n <= reusable.Size() {
		return place(m, opts, reusable, n, where)
	}
	taken := reusable
	if !opts.DistributeAcrossCore { // complete the cores that are in use
		others := free.Intersection(coresOf(m, reusable)).List()
		taken = taken.Union(cpuset.New(others[:min(len(others), n-taken.Size())]...))
	}
	if where.Nodes == 0 {
		where.Nodes = m.NodesOf(reusable)
	}
	rest, err := place(m, opts, free.Difference(taken), n-taken.Size(), where)
	return taken.Union(rest), err
}

// coresOf returns all CPUs of the cores of cpus.
func coresOf(m *topology.Machine, cpus cpuset.CPUSet) cpuset.CPUSet {
	cores := map[int]bool{}
	for _, c := range m.CPUs {
		if cpus.Contains(c.ID) {
			cores[c.Core] = true
		}
	}
	return m.Where(func(c topology.CPU) bool { return cores[c.Core] })
}

// near returns the CPUs of the nodes, or with AlignBySocket of their sockets.
func near(m *topology.Machine, opts Options, nodes topology.Mask) cpuset.CPUSet {
	if !opts.AlignBySocket {
		return m.InNodes(nodes)
	}
	sockets := socketsOf(m, nodes)
	return m.Where(func(c topology.CPU) bool { return sockets[c.Socket] })
}

func socketsOf(m *topology.Machine, nodes topology.Mask) map[int]bool {
	sockets := map[int]bool{}
	for _, c := range m.CPUs {
		if nodes.Has(c.Node) {
			sockets[c.Socket] = true
		}
	}
	return sockets
}

// cpuHints returns the sets of nodes from which n CPUs, including all of reusable, can be
// taken now. Sets with as few nodes as n CPUs need on an idle machine are preferred; with
// Options.AlignBySocket also those with as few sockets. The result is empty, not nil, if
// there is none. It is a pure function.
func cpuHints(m *topology.Machine, opts Options, free, reusable cpuset.CPUSet, n int) []topology.Hint {
	has, now := map[int]int{}, map[int]int{}
	available := free.Union(reusable)
	socketsIn := map[int]topology.Mask{}
	for _, c := range m.CPUs {
		has[c.Node]++
		if available.Contains(c.ID) {
			now[c.Node]++
		}
		socketsIn[c.Socket] |= topology.MaskOf(c.Node)
	}
	sockets := func(nodes topology.Mask) int {
		count := 0
		for _, in := range socketsIn {
			if in&nodes != 0 {
				count++
			}
		}
		return count
	}
	sum := func(in map[int]int, nodes topology.Mask) int {
		total := 0
		for _, id := range nodes.IDs() {
			total += in[id]
		}
		return total
	}
	bound := m.NodesOf(reusable)
	leastNodes, leastSockets := topology.MaxNodes+1, len(socketsIn)+1
	hints := []topology.Hint{}
	for nodes := range m.AllNodes().Subsets() {
		if sum(has, nodes) >= n {
			leastNodes = min(leastNodes, nodes.Count())
			if nodes.Count() == leastNodes {
				leastSockets = min(leastSockets, sockets(nodes))
			}
		}
		if nodes&bound == bound && sum(now, nodes) >= n {
			hints = append(hints, topology.Hint{Nodes: nodes})
		}
	}
	for i := range hints {
		nodes := hints[i].Nodes
		hints[i].Preferred = nodes.Count() == leastNodes || opts.AlignBySocket && sockets(nodes) == leastSockets
	}
	return hints
}
