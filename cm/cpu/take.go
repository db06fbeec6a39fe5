package cpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// errTooFew says that fewer CPUs are free than are asked for.
var errTooFew = errors.New("not enough cpus available to satisfy request")

// Take chooses n of the free CPUs (cpu-5). It is a pure function: the same
// arguments give the same CPUs.
//
// Whole NUMA nodes and sockets come first, what holds the other before, as far as
// n has room for them; then, if the options want it, last level caches, then whole
// cores, then single CPUs. Within each of these the place with the fewest free
// CPUs comes first, to keep the others whole, then the lowest. CPUs that are not
// the machine's are not free.
//
// Too few free CPUs are [errTooFew].
func Take(m *topology.Machine, opts Options, free cpuset.CPUSet, n int) (cpuset.CPUSet, error) {
	t := newTaker(m, opts, free)
	if n < 0 || n > t.count {
		return cpuset.New(), fmt.Errorf("%w: requested=%d, available=%d", errTooFew, n, t.count)
	}
	if opts.DistributeAcrossNUMA && t.distribute(n) {
		return cpuset.New(t.taken...), nil
	}
	t.pack(n)
	return cpuset.New(t.taken...), nil
}

// A level is a way in which CPUs are grouped: by core, cache, node, socket.
type level func(topology.CPU) int

func byCore(c topology.CPU) int   { return c.Core }
func byUncore(c topology.CPU) int { return c.Uncore }
func byNode(c topology.CPU) int   { return c.Node }
func bySocket(c topology.CPU) int { return c.Socket }

// A group is the CPUs of one core, cache, node or socket.
type group struct {
	id   int
	free []topology.CPU // by ID
	all  int            // how many it has, free or not
}

// A taker takes CPUs out of those that are free.
type taker struct {
	m       *topology.Machine
	opts    Options
	free    []bool // by place in m.CPUs
	count   int    // free ones
	threads int    // of a whole core; a core with fewer is not one
	need    int
	taken   []int
}

func newTaker(m *topology.Machine, opts Options, free cpuset.CPUSet) *taker {
	t := &taker{m: m, opts: opts, free: make([]bool, len(m.CPUs)), threads: m.ThreadsPerCore()}
	for _, id := range free.UnsortedList() {
		if place, ok := m.Place(id); ok {
			t.free[place] = true
			t.count++
		}
	}
	return t
}

// groups returns those with free CPUs, in the order in which they are taken.
// within nil is the whole machine; else only CPUs of which it says yes count.
func (t *taker) groups(by level, within func(topology.CPU) bool) []group {
	var groups []group
	place := map[int]int{}
	for i, c := range t.m.CPUs {
		if within != nil && !within(c) {
			continue
		}
		id := by(c)
		at, ok := place[id]
		if !ok {
			at = len(groups)
			place[id] = at
			groups = append(groups, group{id: id})
		}
		groups[at].all++
		if t.free[i] {
			groups[at].free = append(groups[at].free, c)
		}
	}
	groups = slices.DeleteFunc(groups, func(g group) bool { return len(g.free) == 0 })
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(len(a.free), len(b.free)), cmp.Compare(a.id, b.id))
	})
	return groups
}

// take takes CPUs, as many as are needed.
func (t *taker) take(cpus []topology.CPU) {
	for _, c := range cpus[:min(len(cpus), t.need)] {
		place, _ := t.m.Place(c.ID)
		t.free[place] = false
		t.count--
		t.need--
		t.taken = append(t.taken, c.ID)
	}
}

// pack takes n more CPUs, close together.
func (t *taker) pack(n int) {
	t.need = n
	outer, inner := t.nesting()
	t.whole(outer)
	t.whole(inner)
	if t.opts.AlignByUncoreCache {
		t.caches()
	}
	if !t.opts.DistributeAcrossCore {
		for _, core := range t.cores() {
			if len(core.free) == t.threads && t.threads <= t.need {
				t.take(core.free)
			}
		}
	}
	if t.need > 0 {
		t.take(t.singles())
	}
}

// nesting tells whether NUMA nodes hold sockets or the other way round.
func (t *taker) nesting() (outer, inner level) {
	nodes := map[int]bool{}
	for _, c := range t.m.CPUs {
		nodes[c.Node] = true
	}
	if t.m.Sockets() >= len(nodes) {
		return byNode, bySocket
	}
	return bySocket, byNode
}

// whole takes groups of which everything is free and needed.
func (t *taker) whole(by level) {
	if t.need == 0 {
		return
	}
	for _, g := range t.groups(by, nil) {
		if len(g.free) == g.all && g.all <= t.need {
			t.take(g.free)
		}
	}
}

// caches takes whole caches, and then what is left to take from one that has it.
func (t *taker) caches() {
	t.whole(byUncore)
	if t.need == 0 {
		return
	}
	for _, g := range t.groups(byUncore, nil) {
		if len(g.free) < t.need {
			continue
		}
		here := func(c topology.CPU) bool { return c.Uncore == g.id }
		for _, core := range t.groups(byCore, here) {
			if len(core.free) == t.threads && t.threads <= t.need {
				t.take(core.free)
			}
		}
		for _, core := range t.groups(byCore, here) {
			t.take(core.free)
		}
		return
	}
}

// cores returns the cores with free CPUs, those of the fullest socket and node
// first.
func (t *taker) cores() []group {
	var cores []group
	outer, inner := t.nesting()
	for _, o := range t.groups(outer, nil) {
		for _, i := range t.groups(inner, func(c topology.CPU) bool { return outer(c) == o.id }) {
			cores = append(cores, t.groups(byCore, func(c topology.CPU) bool { return outer(c) == o.id && inner(c) == i.id })...)
		}
	}
	return cores
}

// singles returns the free CPUs in the order in which they are taken: packed, or
// one of each core before the second of any.
func (t *taker) singles() []topology.CPU {
	var cpus []topology.CPU
	if !t.opts.DistributeAcrossCore {
		for _, core := range t.cores() {
			cpus = append(cpus, core.free...)
		}
		return cpus
	}
	for _, socket := range t.groups(bySocket, nil) {
		var rounds [][]topology.CPU // the CPUs that would be the n-th in use of their core
		for _, core := range t.groups(byCore, func(c topology.CPU) bool { return c.Socket == socket.id }) {
			for nth, c := range core.free {
				used := core.all - len(core.free) + nth
				for len(rounds) <= used {
					rounds = append(rounds, nil)
				}
				rounds[used] = append(rounds[used], c)
			}
		}
		for _, round := range rounds {
			slices.SortFunc(round, func(a, b topology.CPU) int { return a.ID - b.ID })
			cpus = append(cpus, round...)
		}
	}
	return cpus
}
