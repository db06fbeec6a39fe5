package fakecri

import (
	"errors"
	"fmt"
	"iter"
	"strings"
)

var (
	errNoSuchID    = errors.New("not found")
	errEmptyID     = errors.New("prefix can't be empty")
	errAmbiguousID = errors.New("multiple IDs found with provided prefix")
)

// A chain is a list of objects in the order of their creation, with an index by ID.
// The zero value is empty.
type chain[T any] struct {
	byID        map[string]*link[T]
	first, last *link[T]
}

type link[T any] struct {
	id         string
	value      T
	prev, next *link[T]
}

func (c *chain[T]) add(id string, value T) {
	if c.byID == nil {
		c.byID = map[string]*link[T]{}
	}
	l := &link[T]{id: id, value: value, prev: c.last}
	if c.last != nil {
		c.last.next = l
	} else {
		c.first = l
	}
	c.last, c.byID[id] = l, l
}

func (c *chain[T]) remove(id string) {
	l := c.byID[id]
	if l == nil {
		return
	}
	delete(c.byID, id)
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		c.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	} else {
		c.last = l.prev
	}
}

// find returns the object with a complete ID or a unique prefix of one, as in
// containerd. Prefixes take a search of all objects.
func (c *chain[T]) find(id string) (T, error) {
	l, err := c.lookup(id)
	if err != nil {
		var none T
		return none, err
	}
	return l.value, nil
}

func (c *chain[T]) lookup(id string) (*link[T], error) {
	if l, ok := c.byID[id]; ok {
		return l, nil
	}
	if id == "" {
		return nil, errEmptyID
	}
	if len(id) >= idLength {
		return nil, errNoSuchID
	}
	var found *link[T]
	for l := c.first; l != nil; l = l.next {
		if !strings.HasPrefix(l.id, id) {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("%w: %s", errAmbiguousID, id)
		}
		found = l
	}
	if found == nil {
		return nil, errNoSuchID
	}
	return found, nil
}

// all yields the objects, oldest first. The yielded object may be removed.
func (c *chain[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for l := c.first; l != nil; {
			next := l.next
			if !yield(l.value) {
				return
			}
			l = next
		}
	}
}

// only yields the object with this ID, if any.
func (c *chain[T]) only(id string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if l, ok := c.byID[id]; ok {
			yield(l.value)
		}
	}
}

// whole returns the complete ID for a prefix, or the argument if there is none.
func (c *chain[T]) whole(id string) string {
	if l, err := c.lookup(id); err == nil {
		return l.id
	}
	return id
}
