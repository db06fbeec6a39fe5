package topology

import (
	"cmp"
	"iter"
	"math/bits"
	"strconv"
	"strings"
)

// A Mask is a set of NUMA nodes: bit i is node i.
type Mask uint64

// MaskOf returns the set of the nodes. IDs outside of 0 to 63 are ignored.
func MaskOf(ids ...int) Mask {
	var m Mask
	for _, id := range ids {
		if id >= 0 && id < MaxNodes {
			m |= 1 << id
		}
	}
	return m
}

// Has reports whether the node is in the set.
func (m Mask) Has(id int) bool { return id >= 0 && id < MaxNodes && m&(1<<id) != 0 }

// Count returns the number of nodes in the set.
func (m Mask) Count() int { return bits.OnesCount64(uint64(m)) }

// IDs returns the nodes in ascending order.
func (m Mask) IDs() []int {
	ids := make([]int, 0, m.Count())
	for m != 0 {
		ids = append(ids, bits.TrailingZeros64(uint64(m)))
		m &= m - 1
	}
	return ids
}

// String returns the set in the format of the kernel's cpuset.mems: "0,2".
func (m Mask) String() string {
	var parts []string
	for _, id := range m.IDs() {
		parts = append(parts, strconv.Itoa(id))
	}
	return strings.Join(parts, ",")
}

// Subsets yields the non-empty subsets of m, those with fewer nodes first, then in
// numerical order of the lowest nodes.
func (m Mask) Subsets() iter.Seq[Mask] {
	ids := m.IDs()
	return func(yield func(Mask) bool) {
		var of func(size, from int, chosen Mask) bool
		of = func(size, from int, chosen Mask) bool {
			if size == 0 {
				return yield(chosen)
			}
			for i := from; i+size <= len(ids); i++ {
				if !of(size-1, i+1, chosen|MaskOf(ids[i])) {
					return false
				}
			}
			return true
		}
		for size := 1; size <= len(ids); size++ {
			if !of(size, 0, 0) {
				return
			}
		}
	}
}

// narrower compares two sets by number of nodes, then by value.
func narrower(a, b Mask) int {
	return cmp.Or(cmp.Compare(a.Count(), b.Count()), cmp.Compare(a, b))
}
