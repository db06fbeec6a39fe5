package oom

import (
	"maps"
	"slices"
)

// newKills returns the kills between two reads of the counters of cgroups, sorted by
// cgroup. A new cgroup counts completely; a cgroup whose count has decreased was created
// again.
func newKills(before, after map[string]uint64) []Kill {
	var out []Kill
	for _, cgroup := range slices.Sorted(maps.Keys(after)) {
		n := after[cgroup]
		if was := before[cgroup]; was <= n {
			n -= was
		}
		if n > 0 {
			out = append(out, Kill{Cgroup: cgroup, Count: int(min(n, 1<<30))})
		}
	}
	return out
}
