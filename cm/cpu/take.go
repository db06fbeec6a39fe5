package cpu

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// errTooFew is returned if fewer CPUs are free than requested.
var errTooFew = errors.New("not enough cpus available to satisfy request")

// Take selects n of the free CPUs. It is a pure function (rule cpu-5).
//
// It takes whole NUMA nodes and sockets first, the enclosing ones before the enclosed, as
// far as n allows; then, with Options.AlignByUncoreCache, last level caches; then whole
// cores; then single CPUs. Within each of these the group with the fewest free CPUs comes
// first, to leave others whole, then the lowest. Only CPUs that are online count as
// free.
//
// It returns an error if fewer than n CPUs are free.
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

// A level returns the group of a CPU: core, cache, node or socket.
type level func(topology.CPU) int

func byCore(c topology.CPU) int   { return c.Core }
func byUncore(c topology.CPU) int { return c.Uncore }
func byNode(c topology.CPU) int   { return c.Node }
func bySocket(c topology.CPU) int { return c.Socket }

// A group is the CPUs of one core, cache, node or socket.
type group struct {
	id   int
	free []topology.CPU // by ID
	all  int            // number of CPUs, free or not
}

// A taker takes free CPUs.
type taker struct {
	m       *topology.Machine
	opts    Options
	free    []bool // by index in m.CPUs
	count   int    // free ones
	threads int    // threads of a whole core
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

// groups returns the groups with free CPUs in the order in which they are taken. If
// within is not nil, only CPUs for which it returns true count.
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

// take takes CPUs, at most those still needed.
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

// nesting returns whether NUMA nodes contain sockets or sockets contain NUMA nodes.
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

// whole takes groups that are completely free and needed.
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

// caches takes whole caches, and the remainder from one that has enough free CPUs.
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

// cores returns the cores with free CPUs, those of the fullest socket and node first.
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

// singles returns the free CPUs in the order in which they are taken: packed, or with
// DistributeAcrossCore one of each core before the second of any.
func (t *taker) singles() []topology.CPU {
	var cpus []topology.CPU
	if !t.opts.DistributeAcrossCore {
		for _, core := range t.cores() {
			cpus = append(cpus, core.free...)
		}
		return cpus
	}
	for _, socket := range t.groups(bySocket, nil) {
		var rounds [][]topology.CPU // by the number of CPUs of their core in use
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
