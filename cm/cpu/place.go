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
