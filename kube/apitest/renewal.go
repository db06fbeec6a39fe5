package apitest

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// renewal returns the managed fields of next if the write only changes the renewal time of a
// lease, which the same manager has set before; false for other writes. Clusters renew
// leases far more often than they write anything else, and validation and the field manager
// take most of the time of such a write. Their result is the same.
func (r *request) renewal(was, next object) ([]metav1.ManagedFieldsEntry, bool) {
	before, isLease := was.(*coordinationv1.Lease)
	if !isLease || !renewed(before, next.(*coordinationv1.Lease)) {
		return nil, false
	}
	entries := slices.Clone(before.ManagedFields)
	own, version, manager := -1, r.gvk.GroupVersion().String(), r.fieldManager()
	for i, e := range entries {
		if e.FieldsV1 == nil || !bytes.Contains(e.FieldsV1.GetRawBytes(), []byte(`"f:renewTime":`)) {
			continue
		}
		if own >= 0 || e.Manager != manager || e.Operation != metav1.ManagedFieldsOperationUpdate || e.APIVersion != version || e.Subresource != "" {
			return nil, false
		}
		own = i
	}
	if own < 0 {
		return nil, false
	}
	entries[own].Time = new(now())
	if len(entries) > 1 {
		slices.SortStableFunc(entries, compareEntries)
	}
	return entries, true
}

// renewed reports whether two leases differ in nothing but the renewal time, which both have.
func renewed(was, is *coordinationv1.Lease) bool {
	if was.Spec.RenewTime == nil || is.Spec.RenewTime == nil || was.Spec.RenewTime.Equal(is.Spec.RenewTime) {
		return false
	}
	for _, names := range []map[string]string{is.Labels, is.Annotations} {
		if _, ok := names["renewTime"]; ok { // it is a managed field of the same name
			return false
		}
	}
	sameSecond := func(x, y metav1.ManagedFieldsEntry) bool { return second(x) == second(y) }
	switch entries := is.ManagedFields; {
	case len(entries) == 0: // the client leaves them as they are
	case !sameEntries(was.ManagedFields, entries), !slices.EqualFunc(was.ManagedFields, entries, sameSecond):
		return false
	}
	a := *was
	a.TypeMeta, a.ManagedFields, a.Spec.RenewTime = is.TypeMeta, is.ManagedFields, is.Spec.RenewTime
	return reflect.DeepEqual(&a, is)
}

// compareEntries sorts managed fields as field managers do.
func compareEntries(a, b metav1.ManagedFieldsEntry) int {
	if a.Operation != b.Operation {
		return cmp.Compare(a.Operation, b.Operation)
	}
	return cmp.Or(
		cmp.Compare(second(a), second(b)), cmp.Compare(a.Manager, b.Manager),
		cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Subresource, b.Subresource),
	)
}

// second returns the time of an entry in the precision of the API; that of the field
// manager is higher until the object was encoded.
func second(e metav1.ManagedFieldsEntry) int64 {
	if e.Time == nil {
		return time.Time{}.Unix()
	}
	return e.Time.Unix()
}
