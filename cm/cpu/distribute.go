package cpu

import (
	"math"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// distribute takes n CPUs in equal shares from as few NUMA nodes as possible, and reports
// whether that is possible. Of several sets of nodes it uses the one that leaves the
// machine most balanced, then the first.
func (t *taker) distribute(n int) bool {
	unit := 1
	if t.opts.FullPCPUsOnly {
		unit = t.m.ThreadsPerCore()
	}
	if n%unit != 0 {
		return false
	}
	free := map[int]int{}
	var nodes topology.Mask
	for i, c := range t.m.CPUs {
		if t.free[i] {
			free[c.Node]++
			nodes |= topology.MaskOf(c.Node)
		}
	}
	var best map[int]int // CPUs to take by node
	bestScore, size := math.Inf(1), 0
	for combo := range nodes.Subsets() {
		if combo.Count() != size && best != nil {
			break // fewer nodes are enough
		}
		size = combo.Count()
		shares := spread(combo, free, n, unit)
		if shares == nil {
			continue
		}
		if score := imbalance(nodes, free, shares); score < bestScore {
			best, bestScore = shares, score
		}
	}
	for _, id := range nodes.IDs() {
		if best[id] > 0 {
			t.packIn(id, best[id])
		}
	}
	return best != nil
}

// spread returns the number of CPUs to take from each node of combo; nil if they cannot
// provide n in equal shares. A remainder, smaller than a unit per node, is taken from the
// nodes with most free CPUs.
func spread(combo topology.Mask, free map[int]int, n, unit int) map[int]int {
	ids := combo.IDs()
	share := n / len(ids) / unit * unit
	if share == 0 {
		return nil
	}
	shares, total := map[int]int{}, 0
	for _, id := range ids {
		if free[id] < share {
			return nil
		}
		shares[id] = share
		total += free[id]
	}
	if total < n {
		return nil
	}
	for left := n - share*len(ids); left > 0; left -= unit {
		most := -1
		for _, id := range ids {
			if free[id]-shares[id] >= unit && (most < 0 || free[id]-shares[id] > free[most]-shares[most]) {
				most = id
			}
		}
		if most < 0 {
			return nil
		}
		shares[most] += unit
	}
	return shares
}

// imbalance returns the standard deviation of the free CPUs per node after the shares are
// taken.
func imbalance(nodes topology.Mask, free, shares map[int]int) float64 {
	sum, squares, n := 0.0, 0.0, float64(nodes.Count())
	for _, id := range nodes.IDs() {
		left := float64(free[id] - shares[id])
		sum += left
		squares += left * left
	}
	mean := sum / n
	return math.Sqrt(max(squares/n-mean*mean, 0))
}

// packIn takes n CPUs of one node.
func (t *taker) packIn(node, n int) {
	hidden := make([]bool, len(t.free))
	for i, c := range t.m.CPUs {
		if c.Node != node && t.free[i] {
			hidden[i], t.free[i] = true, false
		}
	}
	t.pack(n)
	for i := range hidden {
		t.free[i] = t.free[i] || hidden[i]
	}
}
