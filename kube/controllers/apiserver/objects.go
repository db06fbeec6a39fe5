package apiserver

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// objects implement what plugins need of the types of a write: the types of client-go, and
// unstructured custom resources, whose versions are equivalent.
type objects struct {
	runtime.ObjectTyper
	runtime.EquivalentResourceMapper
	convert func(o *unstructured.Unstructured, version schema.GroupVersion) (runtime.Object, error)
}

// newObjects returns the interfaces for a write.
func (c *chain) newObjects(ctx context.Context, a *apitest.Attempt) *objects {
	equivalent := runtime.EquivalentResourceMapper(noEquivalents{})
	if versions := servedVersions(a.Definition); len(versions) > 1 {
		registry := runtime.NewEquivalentResourceRegistry()
		for _, v := range versions {
			gv := schema.GroupVersion{Group: a.Kind.Group, Version: v}
			registry.RegisterKindFor(gv.WithResource(a.Resource), a.Subresource, gv.WithKind(a.Kind.Kind))
		}
		equivalent = registry
	}
	return &objects{ObjectTyper: typer{}, EquivalentResourceMapper: equivalent, convert: func(o *unstructured.Unstructured, version schema.GroupVersion) (runtime.Object, error) {
		return c.Convert(ctx, a.Definition, o, version)
	}}
}

// noEquivalents is the mapper of resources with one version.
type noEquivalents struct{}

func (noEquivalents) EquivalentResourcesFor(schema.GroupVersionResource, string) []schema.GroupVersionResource {
	return nil
}

func (noEquivalents) KindFor(schema.GroupVersionResource, string) schema.GroupVersionKind {
	return schema.GroupVersionKind{}
}

// servedVersions returns the names of the versions that a definition serves.
func servedVersions(definition runtime.Object) []string {
	u, ok := definition.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	versions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "spec", "versions")
	list, _ := versions.([]any)
	var names []string
	for _, v := range list {
		if one, _ := v.(map[string]any); one["served"] == true {
			name, _ := one["name"].(string)
			names = append(names, name)
		}
	}
	return names
}

// typer is the ObjectTyper of typed and unstructured objects.
type typer struct{}

func (typer) ObjectKinds(o runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return []schema.GroupVersionKind{u.GroupVersionKind()}, false, nil
	}
	return scheme.Scheme.ObjectKinds(o)
}

func (typer) Recognizes(schema.GroupVersionKind) bool { return true }

func (o *objects) GetObjectCreater() runtime.ObjectCreater                       { return o }
func (o *objects) GetObjectTyper() runtime.ObjectTyper                           { return o }
func (o *objects) GetObjectDefaulter() runtime.ObjectDefaulter                   { return o }
func (o *objects) GetObjectConvertor() runtime.ObjectConvertor                   { return o }
func (o *objects) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return o }

// New returns an empty object.
func (o *objects) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if scheme.Scheme.Recognizes(gvk) {
		return scheme.Scheme.New(gvk)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Default sets the defaults of kinds of Kubernetes; those of schemas follow the chain.
func (o *objects) Default(in runtime.Object) { legacyscheme.Scheme.Default(in) }

// Convert copies in to out, which are of one type, and converts custom resources.
func (o *objects) Convert(in, out, _ any) error {
	if from, ok := in.(*unstructured.Unstructured); ok {
		to, ok := out.(*unstructured.Unstructured)
		if !ok {
			return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, out)
		}
		gvk := to.GroupVersionKind()
		if gvk.Kind == "" || gvk == from.GroupVersionKind() {
			to.Object = from.DeepCopy().Object
			return nil
		}
		converted, err := o.convert(from, gvk.GroupVersion())
		if err != nil {
			return err
		}
		to.Object = converted.(*unstructured.Unstructured).Object
		return nil
	}
	if reflect.TypeOf(in) != reflect.TypeOf(out) {
		return scheme.Scheme.Convert(in, out, nil)
	}
	from, ok := in.(runtime.Object)
	if !ok {
		return fmt.Errorf("cannot convert %T", in)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
	return nil
}

// ConvertToVersion returns in, which has the version.
func (o *objects) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	return in, nil
}

// ConvertFieldLabel returns its arguments.
func (o *objects) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}
