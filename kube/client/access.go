package client

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
)

// An access reads objects of one kind.
type access struct {
	list  func(context.Context, metav1.ListOptions) (apiruntime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
	get   func(context.Context, string, metav1.GetOptions) (metav1.Object, error)
}

// accessTo returns the access to objects of a kind in a namespace. Reads of other kinds
// than those below return an error.
func accessTo(c kubernetes.Interface, kind, namespace string) access {
	switch kind {
	case kindConfigMap:
		api := c.CoreV1().ConfigMaps(namespace)
		return access{lister(api.List), api.Watch, getter(api.Get)}
	case kindSecret:
		api := c.CoreV1().Secrets(namespace)
		return access{lister(api.List), api.Watch, getter(api.Get)}
	case kindService:
		api := c.CoreV1().Services(namespace)
		return access{lister(api.List), api.Watch, getter(api.Get)}
	case kindRuntimeClass:
		api := c.NodeV1().RuntimeClasses()
		return access{lister(api.List), api.Watch, getter(api.Get)}
	case kindCSIDriver:
		api := c.StorageV1().CSIDrivers()
		return access{lister(api.List), api.Watch, getter(api.Get)}
	}
	err := fmt.Errorf("client: no access to kind %q", kind)
	return access{
		list:  func(context.Context, metav1.ListOptions) (apiruntime.Object, error) { return nil, err },
		watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return nil, err },
		get:   func(context.Context, string, metav1.GetOptions) (metav1.Object, error) { return nil, err },
	}
}

func getter[T metav1.Object](get func(context.Context, string, metav1.GetOptions) (T, error)) func(context.Context, string, metav1.GetOptions) (metav1.Object, error) {
	return func(ctx context.Context, name string, opts metav1.GetOptions) (metav1.Object, error) {
		object, err := get(ctx, name, opts)
		if err != nil {
			return nil, err
		}
		return withoutManagedFields(object), nil
	}
}

// immutable reports whether the object is immutable, so that it need not be watched.
func immutable(object metav1.Object) bool {
	switch o := object.(type) {
	case *v1.Secret:
		return o.Immutable != nil && *o.Immutable
	case *v1.ConfigMap:
		return o.Immutable != nil && *o.Immutable
	}
	return false
}
