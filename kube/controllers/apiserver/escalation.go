package apiserver

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	clusterrole "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	clusterrolebinding "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	role "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	rolebinding "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"
)

// confirm rejects a write of a role or binding that grants more than the user of ctx has, with
// the code of kube-apiserver. Objects are in the internal version, and resource has its group.
func (a *access) confirm(ctx context.Context, resource string, next, old runtime.Object) error {
	if a.resolver == nil {
		return nil
	}
	var guard rest.CreaterUpdater
	switch stored := (permitted{old: old}); resource {
	case "roles." + rbacv1.GroupName:
		guard = role.NewStorage(stored, a.authorizer, a.resolver)
	case "clusterroles." + rbacv1.GroupName:
		guard = clusterrole.NewStorage(stored, a.authorizer, a.resolver)
	case "rolebindings." + rbacv1.GroupName:
		guard = rolebinding.NewStorage(stored, a.authorizer, a.resolver)
	case "clusterrolebindings." + rbacv1.GroupName:
		guard = clusterrolebinding.NewStorage(stored, a.authorizer, a.resolver)
	default:
		return nil
	}
	var err error
	if old == nil {
		_, err = guard.Create(ctx, next, nil, nil)
	} else {
		_, _, err = guard.Update(ctx, "", rest.DefaultUpdatedObjectInfo(next), nil, nil, false, nil)
	}
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok && apierrors.IsNotFound(err) { // the role of a binding
		return apierrors.NewNotFound(schema.ParseGroupResource(resource), status.ErrStatus.Details.Name)
	}
	return err
}

// permitted is the storage of the writes that a guard permits: it stores nothing.
type permitted struct {
	rest.StandardStorage // nil: guards call Create and Update only

	old runtime.Object
}

func (permitted) Create(_ context.Context, o runtime.Object, _ rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return o, nil
}

func (p permitted) Update(
	ctx context.Context, _ string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	o, err := info.UpdatedObject(ctx, p.old)
	return o, false, err
}
