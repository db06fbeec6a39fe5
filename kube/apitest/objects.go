package apitest

import (
	"fmt"
	"reflect"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Put creates or replaces objects as they are, without defaults, validation and admission,
// and with their status. It returns copies of the stored objects. It panics if the server
// does not serve their kind.
func (s *Server) Put(objects ...runtime.Object) []runtime.Object {
	var out []runtime.Object
	for _, o := range objects {
		k, one, err := s.storable(o)
		if err != nil {
			panic(err)
		}
		s.mu.Lock()
		if was := s.table.of(k).all[keyOf(one)]; was != nil && one.GetUID() == "" {
			one.SetUID(was.object.GetUID())
		}
		stored := s.putLocked(k, one).object
		s.mu.Unlock()
		s.stored(k, stored)
		out = append(out, public(stored))
	}
	return out
}

// storable returns a copy of an object in the stored version of its kind.
func (s *Server) storable(o runtime.Object) (*kind, object, error) {
	given, ok := o.(object)
	if !ok {
		return nil, nil, fmt.Errorf("apitest: %T has no metadata", o)
	}
	gvk := o.GetObjectKind().GroupVersionKind()
	if _, loose := o.(*unstructured.Unstructured); !loose {
		var known []schema.GroupVersionKind
		for _, sch := range []*runtime.Scheme{scheme.Scheme, s.Scheme} {
			if sch != nil && len(known) == 0 {
				known, _, _ = sch.ObjectKinds(o)
			}
		}
		if len(known) == 0 {
			return nil, nil, fmt.Errorf("apitest: %T is in no scheme", o)
		}
		if !slices.Contains(known, gvk) {
			gvk = known[0]
		}
	}
	s.mu.Lock()
	all := s.kindsLocked()
	k := all.ofKind(gvk.GroupKind())
	if k != nil && k.group == "events.k8s.io" {
		k = all[schema.GroupResource{Resource: "events"}]
	}
	s.mu.Unlock()
	if k == nil || k.review {
		return nil, nil, fmt.Errorf("apitest: kind %s of group %q is not served", gvk.Kind, gvk.Group)
	}
	one := given.DeepCopyObject().(object)
	one.GetObjectKind().SetGroupVersionKind(gvk)
	one, err := k.convert(one, k.stored())
	return k, one, err
}

// Remove deletes an object immediately, without its grace period and finalizers. A missing
// object is not an error. The resource is a plural name, with its group if several have it:
// "pods", "widgets.example.com".
func (s *Server) Remove(resource, namespace, name string) {
	s.mu.Lock()
	k := s.kindLocked(resource)
	was := s.table.of(k).all[key{namespace, name}]
	if was != nil {
		s.removeLocked(was)
	}
	s.mu.Unlock()
	if was != nil {
		s.removed(k, was.object)
	}
}

// Get returns a copy of an object; nil if it does not exist. The resource is named as for
// Remove.
func (s *Server) Get(resource, namespace, name string) runtime.Object {
	s.mu.Lock()
	i := s.table.of(s.kindLocked(resource)).all[key{namespace, name}]
	s.mu.Unlock()
	if i == nil {
		return nil
	}
	return public(i.object)
}

// Pod returns a copy of a pod; nil if it does not exist.
func (s *Server) Pod(namespace, name string) *v1.Pod {
	pod, _ := s.Get("pods", namespace, name).(*v1.Pod)
	return pod
}

// List returns copies of all objects of a resource, sorted by namespace and name. The
// resource is named as for Remove.
func (s *Server) List(resource string) []runtime.Object {
	s.mu.Lock()
	items := sorted(s.table.of(s.kindLocked(resource)).all, everything)
	s.mu.Unlock()
	var out []runtime.Object
	for _, i := range items {
		out = append(out, public(i.object))
	}
	return out
}

// public returns a copy for users of Go types, which do not have their kind set.
func public(o object) runtime.Object {
	out := o.DeepCopyObject()
	if _, loose := out.(*unstructured.Unstructured); !loose {
		out.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	}
	return out
}

// shallow returns a copy of the struct of a typed object, which shares all else.
func shallow(o object) object {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: u.Object}
	}
	copied := reflect.New(reflect.TypeOf(o).Elem())
	copied.Elem().Set(reflect.ValueOf(o).Elem())
	return copied.Interface().(object)
}

// kindLocked returns the resource of a plural name with or without its group. It panics if
// the server does not serve it.
func (s *Server) kindLocked(name string) *kind {
	all := s.kindsLocked()
	gr := schema.ParseGroupResource(name)
	if k := all[gr]; k != nil {
		return k
	}
	if gr.Group == "" {
		for _, k := range all.sorted() {
			if k.plural == name {
				return k
			}
		}
	}
	panic(fmt.Sprintf("apitest: resource %q is not served", name))
}

// Compact deletes the history: watches from earlier versions result in 410 Gone, including
// open ones.
func (s *Server) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.table.version++
	s.table.horizon = s.table.version
	for _, o := range s.table.tables {
		o.compacted, o.log = s.table.version, nil
		for w := range o.watchers {
			w.expireLocked()
		}
	}
}
