package device

import (
	"maps"
	"slices"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Preference returns the devices that a plugin prefers to allocate: size devices out of
// available that include must. If it is nil or returns nil, there is no preference. IDs
// that are not available are ignored.
type Preference func(available, must []string, size int) []string

// Choose selects n devices (rule dev-6): first those in reusable, which init containers
// of the pod have had; then those close to the nodes of the hint; then those that the
// plugin prefers; then those close to other nodes; then the rest; within each group by
// ID. It returns fewer than n if there are not enough. It is pure except for calling
// prefer.
func Choose(free, reusable map[string]Device, n int, where topology.Hint, prefer Preference) []string {
	c := chooser{need: n, chosen: map[string]bool{}}
	c.from(slices.Sorted(maps.Keys(reusable)))
	if c.need == 0 {
		return c.list()
	}
	var aligned, unaligned, nowhere []string
	for _, id := range slices.Sorted(maps.Keys(free)) {
		switch nodes := free[id].Nodes; {
		case where.Nodes == 0 || nodes == 0:
			nowhere = append(nowhere, id)
		case nodes&where.Nodes != 0:
			aligned = append(aligned, id)
		default:
			unaligned = append(unaligned, id)
		}
	}
	ask := func(available []string) []string {
		if prefer == nil {
			return nil
		}
		must := c.list()
		wanted := prefer(union(available, must), must, n)
		return slices.DeleteFunc(slices.Clone(wanted), func(id string) bool { return !slices.Contains(available, id) })
	}
	if c.need < len(aligned) {
		c.from(ask(aligned))
		c.from(aligned)
		return c.list()
	}
	c.from(aligned)
	if c.need > 0 {
		c.from(ask(slices.Sorted(maps.Keys(free))))
	}
	c.from(unaligned)
	c.from(nowhere)
	return c.list()
}

type chooser struct {
	need   int
	chosen map[string]bool
}

func (c *chooser) from(ids []string) {
	for _, id := range ids {
		if c.need > 0 && !c.chosen[id] {
			c.chosen[id] = true
			c.need--
		}
	}
}

func (c *chooser) list() []string { return slices.Sorted(maps.Keys(c.chosen)) }

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}

// deviceHints returns the sets of nodes from which n devices, including all of reusable,
// can be allocated now. Sets with as few nodes as n devices need are preferred. The
// result is nil if no device has NUMA nodes. It is a pure function.
func deviceHints(nodes topology.Mask, all, free, reusable map[string]Device, n int) []topology.Hint {
	placed := false
	for _, d := range all {
		placed = placed || d.Nodes != 0
	}
	if !placed {
		return nil
	}
	hints := []topology.Hint{}
	if len(free)+len(reusable) < n {
		return hints
	}
	within := func(set topology.Mask, devices map[string]Device) int {
		count := 0
		for _, d := range devices {
			if d.Nodes&set != 0 {
				count++
			}
		}
		return count
	}
	least := topology.MaxNodes + 1
	for set := range nodes.Subsets() {
		if within(set, all) >= n {
			least = min(least, set.Count())
		}
		again := within(set, reusable)
		if again == len(reusable) && again+within(set, free) >= n {
			hints = append(hints, topology.Hint{Nodes: set})
		}
	}
	for i := range hints {
		hints[i].Preferred = hints[i].Nodes.Count() == least
	}
	return hints
}
