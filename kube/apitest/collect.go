package apitest

import (
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Without Server.CollectionLatency, the garbage collector has no goroutine: each write does the
// work that it causes before it is answered. stored and removed are called, without the lock,
// after each change.

// stored continues the deletion of an object that waits for its dependents or contents.
func (s *Server) stored(k *kind, o object) {
	s.defined(k, o)
	if o.GetDeletionTimestamp() == nil || s.NoCollection {
		return
	}
	s.collection(func() { s.continueDeletion(k, o) })
}

// continueDeletion does the work of controllers for an object that was marked for deletion.
func (s *Server) continueDeletion(k *kind, o object) {
	at := ref{k, keyOf(o)}
	uid := o.GetUID()
	if ns, ok := o.(*v1.Namespace); ok && finalizing(ns) {
		s.emptyNamespace(ns.Name)
		return
	}
	if slices.Contains(o.GetFinalizers(), metav1.FinalizerOrphanDependents) {
		for _, d := range s.dependentsOf(uid) {
			s.edit(d, func(o object) { dropOwner(o, uid) })
		}
		s.edit(at, func(o object) { dropFinalizer(o, metav1.FinalizerOrphanDependents) })
		return
	}
	if !slices.Contains(o.GetFinalizers(), metav1.FinalizerDeleteDependents) {
		return
	}
	for _, d := range s.dependentsOf(uid) {
		s.collect(d, uid)
	}
	if !s.blocked(uid) {
		s.edit(at, func(o object) { dropFinalizer(o, metav1.FinalizerDeleteDependents) })
	}
}

// removed deletes the dependents of a deleted object, and continues the deletions that
// waited for it.
func (s *Server) removed(k *kind, o object) {
	s.undefined(k, o)
	if s.NoCollection {
		return
	}
	s.collection(func() { s.afterRemoval(o) })
}

// afterRemoval does the work of controllers for an object that was removed.
func (s *Server) afterRemoval(o object) {
	uid := o.GetUID()
	for _, d := range s.dependentsOf(uid) {
		s.collect(d, uid)
	}
	for _, owner := range o.GetOwnerReferences() {
		s.mu.Lock()
		var waiting object
		var k *kind
		if at, ok := s.table.uidKeys[owner.UID]; ok {
			if i := s.table.of(at.kind).all[at.key]; i != nil && i.object.GetDeletionTimestamp() != nil {
				waiting = i.object
			}
			k = at.kind
		}
		s.mu.Unlock()
		if waiting != nil && slices.Contains(waiting.GetFinalizers(), metav1.FinalizerDeleteDependents) && !s.blocked(owner.UID) {
			s.edit(ref{k, keyOf(waiting)}, func(o object) { dropFinalizer(o, metav1.FinalizerDeleteDependents) })
		}
	}
	if o.GetNamespace() != "" {
		s.finishNamespace(o.GetNamespace())
	}
}

// A collection is work of the garbage collector that is due at a time.
type collection struct {
	at   time.Time
	work func()
}

// collection does the work, or, with Server.CollectionLatency, does it later, in the order of the
// calls. The goroutine ends when nothing is left to do.
func (s *Server) collection(work func()) {
	if s.CollectionLatency <= 0 {
		work()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.collections = append(s.collections, collection{time.Now().Add(s.CollectionLatency), work})
	if len(s.collections) == 1 {
		go s.collectLater()
	}
}

// collectLater does the work that is due until there is none.
func (s *Server) collectLater() {
	for {
		s.mu.Lock()
		next := s.collections[0]
		s.mu.Unlock()
		time.Sleep(time.Until(next.at))
		next.work()
		s.mu.Lock()
		s.collections = s.collections[1:]
		done := len(s.collections) == 0
		s.mu.Unlock()
		if done {
			return
		}
	}
}

// dependentsOf returns the objects that an object owns.
func (s *Server) dependentsOf(uid types.UID) []ref {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Keys(s.table.dependents[uid]), func(a, b ref) int {
		if a.kind != b.kind {
			return slices.Compare([]string{a.kind.group, a.kind.plural}, []string{b.kind.group, b.kind.plural})
		}
		return a.key.compare(b.key)
	})
}

// collect deletes a dependent of an owner that is deleted, or, if it has other owners,
// removes the reference.
func (s *Server) collect(d ref, owner types.UID) {
	s.mu.Lock()
	i := s.table.of(d.kind).all[d.key]
	others := false
	policy := metav1.DeletePropagationBackground
	if i != nil {
		for _, reference := range i.object.GetOwnerReferences() {
			_, exists := s.table.uidKeys[reference.UID]
			others = others || exists && reference.UID != owner
			if reference.UID == owner && exists && reference.BlockOwnerDeletion != nil && *reference.BlockOwnerDeletion && len(s.table.dependents[i.object.GetUID()]) > 0 {
				policy = metav1.DeletePropagationForeground
			}
		}
	}
	s.mu.Unlock()
	switch {
	case i == nil:
	case others:
		s.edit(d, func(o object) { dropOwner(o, owner) })
	case i.object.GetDeletionTimestamp() == nil:
		s.discard(d, &metav1.DeleteOptions{PropagationPolicy: &policy})
	}
}

// blocked reports whether an owner has dependents that block its deletion.
func (s *Server) blocked(uid types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for d := range s.table.dependents[uid] {
		i := s.table.of(d.kind).all[d.key]
		if i == nil {
			continue
		}
		for _, owner := range i.object.GetOwnerReferences() {
			if owner.UID == uid && owner.BlockOwnerDeletion != nil && *owner.BlockOwnerDeletion {
				return true
			}
		}
	}
	return false
}

// discard deletes an object without admission.
func (s *Server) discard(d ref, opts *metav1.DeleteOptions) {
	r := &request{
		Call: Call{Verb: "delete", Resource: d.kind.plural, Namespace: d.key.namespace, Name: d.key.name},
		kind: d.kind, gvk: d.kind.stored(), internal: true,
	}
	_, _ = s.deleteNamed(r, opts) // not found: it is deleted
}

// edit changes the metadata of an object, if it exists.
func (s *Server) edit(d ref, change func(object)) {
	for {
		s.mu.Lock()
		was := s.table.of(d.kind).all[d.key]
		s.mu.Unlock()
		if was == nil {
			return
		}
		next := was.object
		if _, ok := next.(*unstructured.Unstructured); ok {
			next = detached(next) // shares the schemas of a definition, which are large
		} else {
			next = next.DeepCopyObject().(object)
		}
		change(next)
		if same(was.object, next) || s.commit(d.kind, was, next) != nil {
			return
		}
	}
}

func dropFinalizer(o object, name string) {
	o.SetFinalizers(slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == name }))
}

func dropOwner(o object, uid types.UID) {
	o.SetOwnerReferences(slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == uid }))
}
