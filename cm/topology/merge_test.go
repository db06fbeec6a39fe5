package topology_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/cm/topology/topologytest"
	"github.com/kubeparts/kubeparts/internal/seedrun"
)

// brute merges by trying every combination, as top-2 requires.
func brute(m *topology.Machine, closest bool, lists [][]topology.Hint) topology.Hint {
	needs := 0
	for _, list := range lists {
		least := 0
		for _, h := range list {
			if n := h.Nodes.Count(); n > 0 && (least == 0 || n < least) {
				least = n
			}
		}
		needs = max(needs, least)
	}
	best, found := topology.Hint{Nodes: m.AllNodes()}, false
	var through func(at int, chosen []topology.Hint)
	through = func(at int, chosen []topology.Hint) {
		if at < len(lists) {
			for _, h := range lists[at] {
				through(at+1, append(chosen[:at:at], h))
			}
			return
		}
		h := topology.Hint{Nodes: m.AllNodes(), Preferred: true}
		var same topology.Mask
		for _, c := range chosen {
			h.Preferred = h.Preferred && c.Preferred
			if c.Nodes == 0 {
				continue
			}
			if same == 0 {
				same = c.Nodes
			}
			h.Preferred = h.Preferred && same == c.Nodes
			h.Nodes &= c.Nodes
		}
		if h.Nodes == 0 {
			return
		}
		if !found || before(m, closest, needs, h, best) {
			best, found = h, true
		}
	}
	through(0, nil)
	return best
}

func before(m *topology.Machine, closest bool, needs int, a, b topology.Hint) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	rank := func(h topology.Hint) int {
		switch n := h.Nodes.Count(); {
		case h.Preferred:
			return 0
		case n > needs:
			return 1000 + n
		default:
			return needs - n
		}
	}
	far := 0
	if closest {
		far = cmp.Compare(m.Distance(a.Nodes), m.Distance(b.Nodes))
	}
	if d := cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Nodes.Count(), b.Nodes.Count()), far); d != 0 {
		return d < 0
	}
	return a.Nodes < b.Nodes
}

func TestMergingIsGoingThroughAllCombinations(t *testing.T) {
	seed := seedrun.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	m := topologytest.Machine(t, "xeon-4s")
	for range 1000 {
		var lists [][]topology.Hint
		var providers []topology.Hints
		for i := range 1 + r.IntN(3) {
			list := []topology.Hint{}
			for range 1 + r.IntN(5) {
				list = append(list, topology.Hint{Nodes: topology.Mask(r.IntN(16)), Preferred: r.IntN(2) == 0})
			}
			lists = append(lists, list)
			providers = append(providers, topology.Hints{fmt.Sprint(i): list})
		}
		opts := topology.Options{PreferClosest: r.IntN(2) == 0}
		got, admitted := topology.Merge(m, topology.Restricted, opts, providers)
		want := brute(m, opts.PreferClosest, lists)
		require.Equal(t, want, got, "%v", lists)
		require.Equal(t, want.Preferred, admitted)
	}
}

// NUMA nodes may have high IDs.
func TestNodesWithHighIDsAreMerged(t *testing.T) {
	m := topologytest.Parse(t, "cpus 0-3\nnode 0 0-1 1Gi\nnode 40 2-3 1Gi")
	h := func(nodes ...int) []topology.Hint { return []topology.Hint{{Nodes: topology.MaskOf(nodes...)}} }
	best, admitted := topology.Merge(m, topology.BestEffort, topology.Options{}, []topology.Hints{{"a": h(0, 40)}, {"b": h(40)}})
	require.True(t, admitted)
	require.Equal(t, topology.Hint{Nodes: topology.MaskOf(40)}, best)
}
