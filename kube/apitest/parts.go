package apitest

import (
	"reflect"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// setStatus replaces the status of o by that of from, which shares it.
func setStatus(o, from object) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		other := from.(*unstructured.Unstructured)
		if status, ok := other.Object["status"]; ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
		return
	}
	if field := reflect.ValueOf(o).Elem().FieldByName("Status"); field.IsValid() {
		field.Set(reflect.ValueOf(from).Elem().FieldByName("Status"))
	}
}

// withMeta returns a copy of o with the metadata and the status of from.
func withMeta(o, from object) object {
	out := shallow(o)
	if u, ok := out.(*unstructured.Unstructured); ok {
		other := from.(*unstructured.Unstructured)
		fields := make(map[string]any, len(u.Object))
		for name, value := range u.Object {
			fields[name] = value
		}
		for _, name := range []string{"metadata", "status"} {
			delete(fields, name)
			if value, ok := other.Object[name]; ok {
				fields[name] = value
			}
		}
		return &unstructured.Unstructured{Object: fields}
	}
	setStatus(out, from)
	reflect.ValueOf(out).Elem().FieldByName("ObjectMeta").Set(reflect.ValueOf(from).Elem().FieldByName("ObjectMeta"))
	return out
}

// sameContent reports whether two objects differ at most in metadata and status.
func sameContent(a, b object) bool {
	return equality.Semantic.DeepEqual(withMeta(a, b), b)
}

// same reports whether two objects differ at most in their kind and in the times of
// managed fields.
func same(a, b object) bool {
	if lease, ok := a.(*coordinationv1.Lease); ok && !lease.Spec.RenewTime.Equal(b.(*coordinationv1.Lease).Spec.RenewTime) {
		return false // without reflection: most writes of a cluster are renewals
	}
	if !sameEntries(a.GetManagedFields(), b.GetManagedFields()) {
		return false
	}
	x, y := detached(a), detached(b)
	x.SetManagedFields(nil)
	y.SetManagedFields(nil)
	x.GetObjectKind().SetGroupVersionKind(y.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(x, y)
}

// sameEntries reports whether managed fields differ at most in their times.
func sameEntries(a, b []metav1.ManagedFieldsEntry) bool {
	return slices.EqualFunc(a, b, func(x, y metav1.ManagedFieldsEntry) bool {
		if (x.FieldsV1 == nil) != (y.FieldsV1 == nil) || x.FieldsV1 != nil && !x.FieldsV1.Equal(*y.FieldsV1) {
			return false
		}
		return x.Manager == y.Manager && x.Operation == y.Operation && x.APIVersion == y.APIVersion && x.FieldsType == y.FieldsType && x.Subresource == y.Subresource
	})
}

// detached returns a copy of o whose metadata can be set; it shares all else.
func detached(o object) object {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		return shallow(o)
	}
	fields := make(map[string]any, len(u.Object))
	for name, value := range u.Object {
		fields[name] = value
	}
	if old, ok := fields["metadata"].(map[string]any); ok {
		fresh := make(map[string]any, len(old))
		for name, value := range old {
			fresh[name] = value
		}
		fields["metadata"] = fresh
	}
	return &unstructured.Unstructured{Object: fields}
}

// zeroStatus clears the status.
func zeroStatus(o object) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		delete(u.Object, "status")
		return
	}
	if field := reflect.ValueOf(o).Elem().FieldByName("Status"); field.IsValid() {
		field.SetZero()
	}
}

// withoutSpec returns a copy of a typed object without its spec; it shares all else.
func withoutSpec(o object) object {
	out := shallow(o)
	if field := reflect.ValueOf(out).Elem().FieldByName("Spec"); field.IsValid() {
		field.SetZero()
	}
	return out
}

// keepMeta gives o the metadata of from that a status update of a custom resource keeps:
// all but the managed fields and the version.
func keepMeta(o, from object) object {
	out := withMeta(from, from)
	setStatus(out, o)
	out = detached(out)
	out.SetManagedFields(o.GetManagedFields())
	out.SetResourceVersion(o.GetResourceVersion())
	out.SetUID(o.GetUID())
	return out
}
