package apitest

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// namespaceLocked returns a namespace; nil if it does not exist.
func (s *Server) namespaceLocked(name string) *v1.Namespace {
	i := s.table.of(s.kindsLocked()[schema.GroupResource{Resource: "namespaces"}]).all[key{"", name}]
	if i == nil {
		return nil
	}
	ns, _ := i.object.(*v1.Namespace)
	return ns
}

// initialNamespaces are the namespaces that always exist.
var initialNamespaces = []string{"default", "kube-node-lease", "kube-public", "kube-system"}

// admitNamespaceLocked rejects new objects in a namespace that terminates, and, with
// RequireNamespaces, in one that does not exist.
func (s *Server) admitNamespaceLocked(r *request, one object) error {
	name := one.GetNamespace()
	if name == "" {
		return nil
	}
	ns := s.namespaceLocked(name)
	switch {
	case ns == nil && s.RequireNamespaces && !slices.Contains(initialNamespaces, name):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	case ns != nil && ns.DeletionTimestamp != nil:
		err := apierrors.NewForbidden(r.kind.resource(), one.GetName(), fmt.Errorf("unable to create new content in namespace %s because it is being terminated", name))
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: v1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", name), Field: "metadata.namespace"}}
		return err
	}
	return nil
}

// emptyNamespace deletes the contents of a namespace.
func (s *Server) emptyNamespace(name string) {
	s.mu.Lock()
	var contents []ref
	for _, k := range s.kindsLocked().sorted() {
		if o := s.table.tables[k.resource()]; o != nil && k.namespaced {
			for _, i := range sorted(o.in(name), everything) {
				if i.object.GetDeletionTimestamp() == nil {
					contents = append(contents, ref{k, keyOf(i.object)})
				}
			}
		}
	}
	s.mu.Unlock()
	for _, d := range contents {
		s.discard(d, &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	}
	s.finishNamespace(name)
}

// finishNamespace removes the finalizer of a namespace that terminates and is empty.
func (s *Server) finishNamespace(name string) {
	s.mu.Lock()
	ns := s.namespaceLocked(name)
	done := ns != nil && ns.DeletionTimestamp != nil && finalizing(ns)
	for _, o := range s.table.tables {
		done = done && len(o.byNamespace[name]) == 0
	}
	k := s.kindsLocked()[schema.GroupResource{Resource: "namespaces"}]
	s.mu.Unlock()
	if done {
		s.edit(ref{k, key{"", name}}, func(o object) {
			ns := o.(*v1.Namespace)
			ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f v1.FinalizerName) bool { return f == v1.FinalizerKubernetes })
		})
	}
}
