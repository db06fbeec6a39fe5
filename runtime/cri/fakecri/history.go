package fakecri

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pastMax is how many changes are remembered of sandboxes, and of containers,
// so that lists can be stale. A list that is to be older than these is as old
// as they are.
const pastMax = 4096

// A history remembers what objects looked like before they changed. It is kept
// only where there are faults.
type history struct {
	kept       bool
	sandboxes  undo[*runtimeapi.PodSandbox]
	containers undo[*runtimeapi.Container]
}

// An undo is a ring of the last changes of objects of one kind.
type undo[T any] struct {
	ring []before[T]
	next int // where the next one goes, once the ring is full
}

// A before is what lists showed of an object until a change; the zero value of
// T if it was not there.
type before[T any] struct {
	until time.Time
	id    string
	item  T
}

// note remembers what an object looked like until now.
func note[T any](h *history, u *undo[T], id string, was T) {
	if h.kept {
		u.note(id, was)
	}
}

func (u *undo[T]) note(id string, was T) {
	b := before[T]{time.Now(), id, was}
	if len(u.ring) < pastMax {
		u.ring = append(u.ring, b)
		return
	}
	u.ring[u.next] = b
	u.next = (u.next + 1) % pastMax
}

// since returns what the objects that changed within age looked like before
// that.
func (u *undo[T]) since(age time.Duration) map[string]T {
	then := time.Now().Add(-age)
	was := map[string]T{}
	for i := range u.ring { // newest first
		b := u.ring[(u.next-1-i+2*len(u.ring))%len(u.ring)]
		if !b.until.After(then) {
			break
		}
		was[b.id] = b.item
	}
	return was
}

// An item is what lists show of an object.
type item interface {
	comparable
	GetId() string
	GetCreatedAt() int64
}

// aged lists what matched age ago, of objects that are there now and of those
// that were, oldest first.
func aged[O any, T item](u *undo[T], age time.Duration, objects iter.Seq[O], shown func(O) T, match func(T) bool) []T {
	was := u.since(age)
	for o := range objects {
		if now := shown(o); !has(was, now.GetId()) {
			was[now.GetId()] = now
		}
	}
	var none T
	var list []T
	for _, item := range was {
		if item != none && match(item) {
			list = append(list, item)
		}
	}
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(cmp.Compare(a.GetCreatedAt(), b.GetCreatedAt()), strings.Compare(a.GetId(), b.GetId()))
	})
	return list
}

func has[T any](m map[string]T, id string) bool {
	_, ok := m[id]
	return ok
}
