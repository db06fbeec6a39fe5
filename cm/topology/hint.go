package topology

import (
	"cmp"
	"slices"
)

// A Hint is a set of NUMA nodes from which a resource could be given, and whether
// that would be as good as it gets.
type Hint struct {
	// Nodes; 0 says that it doesn't matter.
	Nodes Mask

	Preferred bool
}

// Any is the hint of one to whom it doesn't matter.
func Any() Hint { return Hint{Preferred: true} }

// Hints are what one provider can give, per resource (top-2). A resource with nil
// hints can come from anywhere; one with an empty list can't be given at all. No
// resources: it doesn't matter.
type Hints map[string][]Hint

// Merge finds the nodes from which all the providers can give (top-2, top-3), and
// whether the policy admits the pod with that. It is a pure function, and the
// order of providers, resources and hints doesn't matter to it.
//
// One hint of each resource is taken in every combination. A combination's nodes
// are those that all of its hints have; it is preferred if all of them are, and
// name the same nodes. The best combination is a preferred one, with the fewest
// nodes, then the lowest; with Options.PreferClosest the closest before the
// lowest. Among those that are not preferred, the number of nodes nearest to what
// the most demanding resource needs is best, as in the kubelet: fewer could not
// hold it.
func Merge(m *Machine, p Policy, opts Options, providers []Hints) (Hint, bool) {
	if p == None {
		return Hint{}, true
	}
	all := m.AllNodes()
	lists := hintLists(p, providers)
	best := bestHint(m, opts, all, lists)
	if p == SingleNUMANode && best.Nodes == all {
		best.Nodes = 0 // of a machine with one node, or nobody cares
	}
	return best, p == BestEffort || best.Preferred
}

// hintLists returns a list of hints per resource that matters.
func hintLists(p Policy, providers []Hints) [][]Hint {
	var lists [][]Hint
	for _, hints := range providers {
		for _, list := range hints {
			switch {
			case list == nil:
				continue // anywhere, and preferred: changes nothing
			case len(list) == 0:
				list = []Hint{{}} // nowhere: the pod is not as good as it gets
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

// bestHint looks for a preferred combination first, which needs no combining: its
// nodes are those of a hint of every list.
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
			continue // this one takes any
		}
		anywhere = false
		for nodes := range has {
			if everywhere(lists, nodes) {
				offer(Hint{Nodes: nodes & all, Preferred: true}, 0)
			}
		}
		break // what is preferred by all is in the first that does not take any
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

// preferredIn returns the nodes of the preferred hints of a list.
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

// everywhere reports whether each list has a preferred hint of these nodes, or one
// that takes any.
func everywhere(lists [][]Hint, nodes Mask) bool {
	for _, list := range lists {
		if !slices.ContainsFunc(list, func(h Hint) bool { return h.Preferred && (h.Nodes == nodes || h.Nodes == 0) }) {
			return false
		}
	}
	return true
}

// combine returns what a hint of each list have in common, in every combination. It
// goes through the lists one after the other and keeps what differs: the number of
// combinations is bounded by that of the sets of nodes, not by the product of the
// lists' lengths.
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

// A maskSet is a set of sets of nodes: a table where the IDs of the nodes are small,
// as they nearly always are.
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

// add reports whether m was not there.
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

// better reports whether a is to be taken before b.
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

// excess orders by number of nodes those that are not preferred: as many as
// needed, then the fewer below that, then more.
func excess(nodes Mask, needs int) int {
	n := nodes.Count()
	if n > needs {
		return MaxNodes + n
	}
	return needs - n
}
