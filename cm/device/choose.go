package device

import (
	"maps"
	"slices"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// A Preference is what a plugin would rather give: so many of those that are
// available, those among them that must be. Nil, or no answer, is none; IDs that
// are not available are ignored.
type Preference func(available, must []string, size int) []string

// Choose chooses n devices (dev-6): first those of reusable, which the pod's init
// containers have had, then those close to the hint's nodes, then what the plugin
// prefers, then others that are close to some node, then the rest; within each by
// ID. It returns fewer, if there are not enough. It is pure, but for asking.
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

// deviceHints returns from which nodes n devices could be given now, all of reusable
// among them. Preferred are those with as few nodes as n of all devices need. Nil:
// no device says where it is. A pure function.
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
