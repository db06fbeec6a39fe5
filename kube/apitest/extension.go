package apitest

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An Extension replaces parts of the server by those of kube-apiserver, whose libraries are
// large. Its methods are called concurrently. Objects have the version of the request; a
// definition is the CustomResourceDefinition of the resource, nil for others, and must not be
// changed.
type Extension interface {
	// Prepare completes and validates a.Next, between the two steps of Admission. It is not
	// called for deletions. An error rejects the write.
	Prepare(ctx context.Context, a *Attempt) error

	// Convert returns a custom resource in another version; it may return o itself, but
	// must not change it.
	Convert(ctx context.Context, definition, o runtime.Object, version schema.GroupVersion) (runtime.Object, error)

	// Table returns the table of objects that kubectl prints, or nil for that of the server.
	// Rows have no objects.
	Table(ctx context.Context, definition runtime.Object, kind schema.GroupVersionKind, objects []runtime.Object) (*metav1.Table, error)

	// Review completes an object that is created but not stored: a review of package
	// authentication or authorization, or a TokenRequest for the ServiceAccount of the call.
	Review(ctx context.Context, c Call, user User, o runtime.Object) error
}

// prepare calls Server.Extension for an object of the version of the request.
func (s *Server) prepare(r *request, old, next object) error {
	if s.Extension == nil || r.internal || r.Subresource == "binding" || r.Subresource == "eviction" || r.Subresource == "scale" {
		return nil
	}
	if old == nil || !slices.EqualFunc(next.GetManagedFields(), old.GetManagedFields(), sameFields) {
		dropBroken(next)
	}
	a, err := r.attempt(old, next)
	if err != nil {
		return err
	}
	return r.rejection(s.Extension.Prepare(r.ctx, a))
}

// tabulate returns the table of objects.
func (s *Server) tabulate(k *kind, objects []object, single object, gvk schema.GroupVersionKind) (*metav1.Table, error) {
	if s.Extension == nil {
		return table(objects, single, gvk), nil
	}
	ctx := context.Background() // watches share the encoded rows
	converted := make([]runtime.Object, len(objects))
	for i, o := range objects {
		one, err := k.convert(o, gvk)
		if err != nil {
			return nil, err
		}
		converted[i] = one
	}
	var definition runtime.Object
	if k.crd != nil {
		definition = k.crd.source
	}
	t, err := s.Extension.Table(ctx, definition, gvk, converted)
	if t == nil || err != nil {
		return table(objects, single, gvk), err
	}
	t.TypeMeta = metav1.TypeMeta{Kind: "Table", APIVersion: "meta.k8s.io/v1"}
	if single != nil {
		t.ListMeta = metav1.ListMeta{ResourceVersion: single.GetResourceVersion()}
	}
	for i := range t.Rows {
		t.Rows[i].Object = runtime.RawExtension{Object: partial(objects[i])}
	}
	return t, nil
}
