package pleg

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// A state is the state of a container or sandbox in a comparison. A sandbox counts as a container:
// ready is running, not ready is exited (rule pleg-2).
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

// equal reports whether a and b have the same containers and sandboxes in the same states. A nil pod
// has none.
func equal(a, b *runtime.Pod) bool {
	if identical(a, b) {
		return true
	}
	for range diff(a, b) {
		return false
	}
	return true
}

// identical is equal for pods whose containers and sandboxes are in the same order, as in
// consecutive lists of a runtime. It is called for every pod of every list and does not allocate.
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

// An instance is a container or a sandbox with its states in two reads.
type instance struct {
	id       string
	created  time.Time
	from, to state
}

// rank orders the changes of one comparison: removed, died, changed, started. The removal of a
// container is thus reported before the start of its successor.
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

// diff yields the events that lead from old to new, which are two reads of one pod; a nil pod has no
// containers. They are ordered by rank, then oldest first, then by ID, so that equal reads yield
// equal events. If only the order of containers differs it yields nothing.
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
		var room [32]instance // on the stack; enough for most pods
		for _, i := range changes(room[:0], old, new) {
			e.ContainerID = i.id
			// The removal of a container whose exit was not observed is
			// reported as an exit and a removal (rule pleg-7).
			if i.to == absent && i.from != exited {
				e.Type = ContainerDied
				if !yield(e) {
					return
				}
			}
			e.Type = eventType(i.to)
			if !yield(e) {
				return
			}
		}
	}
}

// eventType returns the type of the event for a container that has entered the state.
func eventType(s state) EventType {
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

// changes appends the instances whose states differ in old and new, in the order of the events.
func changes(all []instance, old, new *runtime.Pod) []instance {
	all = appendInstances(all, old)
	for i := range all {
		all[i].from, all[i].to = all[i].to, absent
	}
	all = appendInstances(all, new)

	// The sort is stable: if a runtime lists an ID twice, the first entry, which is the
	// newest, is used.
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
	merged = slices.DeleteFunc(merged, func(i instance) bool { return i.from == i.to })
	slices.SortFunc(merged, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.created.Compare(b.created), strings.Compare(a.id, b.id))
	})
	return merged
}

// appendInstances appends the instances of p, with their states as to.
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
