package topology

import (
	"cmp"
	"slices"
)

// A Hint is a set of NUMA nodes from which a resource can be allocated.
type Hint struct {
	// Nodes is 0 if any nodes are suitable.
	Nodes Mask

	// Preferred is true if no smaller set of nodes could satisfy the request.
	Preferred bool
}

// Any returns the hint of a request without NUMA preference.
func Any() Hint { return Hint{Preferred: true} }

// Hints are the hints of one provider by resource. A nil list means that the resource can
// be allocated from any nodes; an empty list that it cannot be allocated. No resources
// means no preference.
type Hints map[string][]Hint

// Merge returns the nodes from which all providers can allocate, and whether the policy
// admits the pod with these (rules top-2, top-3). It is a pure function whose result does
// not depend on the order of providers, resources and hints.
//
// A combination contains one hint of each resource. Its nodes are the intersection of
// those of its hints; it is preferred if all its hints are preferred and have the same
// nodes. The best combination is a preferred one with the fewest nodes, then with the
// lowest nodes; with Options.PreferClosest distance is compared before the lowest nodes.
// Among combinations that are not preferred, the best has a number of nodes closest to
// that of the most demanding resource, as in the kubelet: fewer nodes would not suffice.
func Merge(m *Machine, p Policy, opts Options, providers []Hints) (Hint, bool) {
	if p == None {
		return Hint{}, true
	}
	all := m.AllNodes()
	lists := hintLists(p, providers)
	best := bestHint(m, opts, all, lists)
	if p == SingleNUMANode && best.Nodes == all {
		best.Nodes = 0 // one NUMA node, or no provider has a preference
	}
	return best, p == BestEffort || best.Preferred
}

// hintLists returns the list of hints of each resource that restricts the nodes.
func hintLists(p Policy, providers []Hints) [][]Hint {
	var lists [][]Hint
	for _, hints := range providers {
		for _, list := range hints {
			switch {
			case list == nil:
				continue // any nodes are preferred
			case len(list) == 0:
				list = []Hint{{}} // cannot be allocated: not preferred
			}
			if p == SingleNUMANode {
				var single []Hint
				for _, h := range list {
					if h.Preferred && h.Nodes.Count() <= 1 {
						single = append(single, h)
					}
				}
				list = single
			}
			lists = append(lists, list)
		}
	}
	return lists
}

// bestHint first searches for a preferred combination, which needs no enumeration: its
// nodes are in a hint of every list.
func bestHint(m *Machine, opts Options, all Mask, lists [][]Hint) Hint {
	best, found := Hint{Nodes: all}, false
	offer := func(h Hint, needs int) {
		if h.Nodes&all != 0 && (!found || better(m, opts, needs, h, best)) {
			best, found = h, true
		}
	}
	anywhere := true
	for _, list := range lists {
		has := preferredIn(list)
		if has[0] {
			continue // any nodes are preferred
		}
		anywhere = false
		for nodes := range has {
			if everywhere(lists, nodes) {
				offer(Hint{Nodes: nodes & all, Preferred: true}, 0)
			}
		}
		break // a common preference is in the first list that restricts the nodes
	}
	if anywhere {
		offer(Hint{Nodes: all, Preferred: true}, 0)
		for nodes := range candidates(lists) {
			if everywhere(lists, nodes) {
				offer(Hint{Nodes: nodes & all, Preferred: true}, 0)
			}
		}
	}
	if found {
		return best
	}
	needs := 0 // nodes, of the most demanding resource
	for _, list := range lists {
		least := 0
		for _, h := range list {
			if n := h.Nodes.Count(); n > 0 && (least == 0 || n < least) {
				least = n
			}
		}
		needs = max(needs, least)
	}
	for _, nodes := range combine(all, lists) {
		offer(Hint{Nodes: nodes}, needs)
	}
	return best
}

// preferredIn returns the nodes of the preferred hints in a list.
func preferredIn(list []Hint) map[Mask]bool {
	has := map[Mask]bool{}
	for _, h := range list {
		if h.Preferred {
			has[h.Nodes] = true
		}
	}
	return has
}

// candidates returns the nodes of all preferred hints.
func candidates(lists [][]Hint) map[Mask]bool {
	all := map[Mask]bool{}
	for _, list := range lists {
		for nodes := range preferredIn(list) {
			all[nodes] = true
		}
	}
	return all
}

// everywhere reports whether each list has a preferred hint for these nodes or for any
// nodes.
func everywhere(lists [][]Hint, nodes Mask) bool {
	for _, list := range lists {
		if !slices.ContainsFunc(list, func(h Hint) bool { return h.Preferred && (h.Nodes == nodes || h.Nodes == 0) }) {
			return false
		}
	}
	return true
}

// combine returns the intersections of all combinations of hints. It handles one list
// after the other and removes duplicates: the work is bounded by the number of sets of
// nodes, not by the product of the lengths of the lists.
func combine(all Mask, lists [][]Hint) []Mask {
	reached := []Mask{all}
	seen := newMaskSet(all)
	for _, list := range lists {
		var given, next []Mask
		seen.clear()
		for _, h := range list {
			nodes := h.Nodes & all
			if h.Nodes == 0 {
				nodes = all
			}
			if seen.add(nodes) {
				given = append(given, nodes)
			}
		}
		seen.clear()
		for _, a := range reached {
			for _, b := range given {
				if seen.add(a & b) {
					next = append(next, a&b)
				}
			}
		}
		reached = next
	}
	return reached
}

// A maskSet is a set of masks: a table if all node IDs are small, as they usually are.
type maskSet struct {
	table []bool
	rest  map[Mask]bool
}

func newMaskSet(all Mask) *maskSet {
	if all < 1<<16 {
		return &maskSet{table: make([]bool, all+1)}
	}
	return &maskSet{rest: map[Mask]bool{}}
}

func (s *maskSet) clear() {
	clear(s.table)
	clear(s.rest)
}

// add adds m and reports whether it was absent.
func (s *maskSet) add(m Mask) bool {
	if s.table != nil {
		was := s.table[m]
		s.table[m] = true
		return !was
	}
	was := s.rest[m]
	s.rest[m] = true
	return !was
}

// better reports whether a is better than b.
func better(m *Machine, opts Options, needs int, a, b Hint) bool {
	if a.Preferred != b.Preferred {
		return a.Preferred
	}
	if !a.Preferred {
		if d := cmp.Compare(excess(a.Nodes, needs), excess(b.Nodes, needs)); d != 0 {
			return d < 0
		}
	}
	closer := 0
	if opts.PreferClosest && a.Nodes.Count() == b.Nodes.Count() {
		closer = cmp.Compare(m.Distance(a.Nodes), m.Distance(b.Nodes))
	}
	return cmp.Or(closer, narrower(a.Nodes, b.Nodes)) < 0
}

// excess returns the sort key of a combination that is not preferred: first those with as
// many nodes as needed, then those with fewer, then those with more.
func excess(nodes Mask, needs int) int {
	n := nodes.Count()
	if n > needs {
		return MaxNodes + n
	}
	return needs - n
}
