package apiserver

import (
	"context"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// Prepare implements [apitest.Extension] with the strategies of kube-apiserver.
func (c *chain) Prepare(ctx context.Context, a *apitest.Attempt) error {
	ctx = warning.WithWarningRecorder(withRequest(ctx, a), warnings(a.Warn))
	switch {
	case isDefinition(a):
		if a.Subresource != "" {
			return nil
		}
		return c.schemas.validateDefinition(ctx, a)
	case a.Definition != nil:
		s, err := c.schemas.strategy(a)
		if s == nil || err != nil {
			return err
		}
		return before(ctx, s, a.Next, a.Old)
	}
	resource := schema.GroupResource{Group: a.Kind.Group, Resource: a.Resource}.String()
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	s := c.strategies[resource]
	if s == nil {
		return validateMetadata(a)
	}
	next, err := internal(a.Next, a.Kind)
	if err != nil {
		return err
	}
	if a.Old != nil {
		legacyscheme.Scheme.Default(a.Old) // as when kube-apiserver reads it: objects of Put may have none
	}
	old, err := internal(a.Old, a.Kind)
	if err != nil {
		return err
	}
	if err := c.access.confirm(ctx, resource, next, old); err != nil {
		return err
	}
	if err := before(ctx, s, next, old); err != nil {
		return err
	}
	out, err := legacyscheme.Scheme.UnsafeConvertToVersion(next, a.Kind.GroupVersion())
	if err != nil {
		return err
	}
	reflect.ValueOf(a.Next).Elem().Set(reflect.ValueOf(out).Elem())
	return nil
}

// before prepares and validates next, which replaces old unless that is nil.
func before(ctx context.Context, s rest.RESTUpdateStrategy, next, old runtime.Object) error {
	if old != nil {
		return rest.BeforeUpdate(s, ctx, next, old)
	}
	create, ok := s.(rest.RESTCreateStrategy)
	if !ok {
		return apierrors.NewMethodNotSupported(schema.GroupResource{}, "create")
	}
	meta := next.(metav1.Object)
	if meta.GetUID() == "" { // the server sets it when the object is stored
		meta.SetUID("pending")
		defer meta.SetUID("")
	}
	return rest.BeforeCreate(create, ctx, next)
}

// internal returns an object of a version, which may be nil, in the internal version.
func internal(o runtime.Object, kind schema.GroupVersionKind) (runtime.Object, error) {
	if o == nil {
		return nil, nil
	}
	o.GetObjectKind().SetGroupVersionKind(kind)
	return legacyscheme.Scheme.UnsafeConvertToVersion(o, runtime.InternalGroupVersioner)
}

// validateMetadata validates an object of a kind without a strategy.
func validateMetadata(a *apitest.Attempt) error {
	meta := a.Next.(metav1.Object)
	errs := validation.ValidateObjectMetaAccessor(meta, a.Namespace != "", validation.NameIsDNSSubdomain, field.NewPath("metadata"))
	if a.Old != nil {
		errs = append(errs, validation.ValidateObjectMetaAccessorUpdate(meta, a.Old.(metav1.Object), field.NewPath("metadata"))...)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(a.Kind.GroupKind(), meta.GetName(), errs)
	}
	return nil
}

// withRequest returns a context with what strategies need of the request of a write.
func withRequest(ctx context.Context, a *apitest.Attempt) context.Context {
	ctx = request.WithNamespace(ctx, a.Namespace)
	ctx = request.WithUser(ctx, info(a.User))
	return request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true, Verb: a.Verb, Namespace: a.Namespace, Name: a.Name, Resource: a.Resource, Subresource: a.Subresource,
		APIGroup: a.Kind.Group, APIVersion: a.Kind.Version,
	})
}

// info returns a user in the form of the libraries.
func info(u apitest.User) user.Info {
	return &user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
}
