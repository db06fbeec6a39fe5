package fakecri

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// pastMax is the number of changes of sandboxes, and of containers, that are recorded for
// stale lists. It limits the age of stale lists.
const pastMax = 4096

// A history records the earlier states of objects, if Config.Faults is set.
type history struct {
	kept       bool
	sandboxes  undo[*runtimeapi.PodSandbox]
	containers undo[*runtimeapi.Container]
}

// An undo is a ring buffer of the last changes of objects of one kind.
type undo[T any] struct {
	ring []before[T]
	next int // where the next one goes, once the ring is full
}

// A before is the state of an object in lists until a change; the zero value of T if it
// did not exist.
type before[T any] struct {
	until time.Time
	id    string
	item  T
}

// note records the state of an object before a change.
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

// since returns the states, age ago, of the objects that have changed since then.
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

// An item is the representation of an object in lists.
type item interface {
	comparable
	GetId() string
	GetCreatedAt() int64
}

// aged returns the list as of age ago, including objects removed since, oldest first.
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
