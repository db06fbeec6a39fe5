package pleg

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A state is what the comparison sees of a container or a sandbox. A sandbox
// counts as a container: ready is running, not ready is exited (pleg-2).
type state uint8

const (
	absent state = iota
	unknown
	created
	running
	exited
)

func containerState(s runtime.ContainerState) state {
	switch s {
	case runtime.ContainerCreated:
		return created
	case runtime.ContainerRunning:
		return running
	case runtime.ContainerExited:
		return exited
	default:
		return unknown
	}
}

func sandboxState(s runtime.SandboxState) state {
	switch s {
	case runtime.SandboxReady:
		return running
	case runtime.SandboxNotReady:
		return exited
	default:
		return unknown
	}
}

// same reports whether two looks at a pod show the same things in the same
// states; nil is a pod with nothing.
func same(a, b *runtime.Pod) bool {
	if identical(a, b) {
		return true
	}
	for range diff(a, b) {
		return false
	}
	return true
}

// identical is same if the order is the same too. It allocates nothing, because
// it answers for every pod on every list; the order of a runtime's lists being
// fixed, a pod on which nothing changed passes here.
func identical(a, b *runtime.Pod) bool {
	if a == b {
		return true
	}
	if a == nil {
		return len(b.Sandboxes) == 0 && len(b.Containers) == 0
	}
	if b == nil {
		return len(a.Sandboxes) == 0 && len(a.Containers) == 0
	}
	if len(a.Sandboxes) != len(b.Sandboxes) || len(a.Containers) != len(b.Containers) {
		return false
	}
	for i := range a.Containers {
		x, y := &a.Containers[i], &b.Containers[i]
		if x.State != y.State || x.ID != y.ID {
			return false
		}
	}
	for i := range a.Sandboxes {
		x, y := &a.Sandboxes[i], &b.Sandboxes[i]
		if x.State != y.State || x.ID != y.ID {
			return false
		}
	}
	return true
}

// An instance is a container or a sandbox in one look or two.
type instance struct {
	id       string
	created  time.Time
	from, to state
}

// rank orders the changes of one comparison: what is gone, what died, what
// changed, what started. The place of an old container is free before a new
// one takes it.
func (i instance) rank() int {
	switch i.to {
	case absent:
		return 0
	case exited:
		return 1
	case running:
		return 3
	default:
		return 2
	}
}

// diff yields the events that lead from old to new, two looks at one pod, nil
// being a pod with nothing. They come by rank, then the oldest first, then by
// ID, so that equal looks give equal events. Looks that differ only in the
// order of things yield nothing.
func diff(old, new *runtime.Pod) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		if identical(old, new) {
			return
		}
		e := Event{}
		if new != nil {
			e.UID = new.UID
		} else {
			e.UID = old.UID
		}
		var room [32]instance // on the stack: pods rarely hold more
		for _, i := range changes(room[:0], old, new) {
			e.ContainerID = i.id
			// Removal without an exit that was seen is an exit and a
			// removal (pleg-7): each running container is told to die once.
			if i.to == absent && i.from != exited {
				e.Type = ContainerDied
				if !yield(e) {
					return
				}
			}
			e.Type = entering(i.to)
			if !yield(e) {
				return
			}
		}
	}
}

// entering returns the type of the event for a container that came into the
// state (pleg-4 … pleg-7).
func entering(s state) EventType {
	switch s {
	case running:
		return ContainerStarted
	case exited:
		return ContainerDied
	case absent:
		return ContainerRemoved
	default:
		return ContainerChanged
	}
}

// changes appends what is not the same in old and new, in the order of the
// events.
func changes(all []instance, old, new *runtime.Pod) []instance {
	all = appendInstances(all, old)
	for i := range all {
		all[i].from, all[i].to = all[i].to, absent
	}
	all = appendInstances(all, new)

	// The sort is stable, so that of an ID which a look has twice, against
	// its contract, the first counts: the newest.
	slices.SortStableFunc(all, func(a, b instance) int { return strings.Compare(a.id, b.id) })
	merged := all[:0]
	for _, i := range all {
		if n := len(merged); n > 0 && merged[n-1].id == i.id {
			m := &merged[n-1]
			m.from = cmp.Or(m.from, i.from)
			m.to = cmp.Or(m.to, i.to)
			continue
		}
		merged = append(merged, i)
	}
	merged = slices.DeleteFunc(merged, func(i instance) bool { return i.from == i.to }) // pleg-8
	slices.SortFunc(merged, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.created.Compare(b.created), strings.Compare(a.id, b.id))
	})
	return merged
}

// appendInstances appends what p shows, as the states that it came to.
func appendInstances(all []instance, p *runtime.Pod) []instance {
	if p == nil {
		return all
	}
	for i := range p.Sandboxes {
		s := &p.Sandboxes[i]
		all = append(all, instance{id: s.ID, created: s.CreatedAt, to: sandboxState(s.State)})
	}
	for i := range p.Containers {
		c := &p.Containers[i]
		all = append(all, instance{id: c.ID, created: c.CreatedAt, to: containerState(c.State)})
	}
	return all
}
