package apiserver

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	apivalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresourcedefinition"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kubeparts/kubeparts/kube/apitest"
)

// A validator has the strategies of one version, as of a generation of the definition.
type validator struct {
	definition     types.UID
	generation     int64
	object, status rest.RESTUpdateStrategy
}

// schemas validates definitions, and custom resources by their schemas, with the code of
// kube-apiserver. The validators of a version are made when the first object is written.
type schemas struct {
	scheme *runtime.Scheme

	mu    sync.Mutex
	known map[version]*validator
}

// A version is a version of the custom resource that the definition with a name defines.
type version struct{ definition, name string }

func newSchemas() *schemas {
	s := &schemas{scheme: runtime.NewScheme(), known: map[version]*validator{}}
	install.Install(s.scheme)
	return s
}

// isDefinition reports whether a write is one of a CustomResourceDefinition.
func isDefinition(a *apitest.Attempt) bool {
	return a.Kind.Group == apiextensions.GroupName && a.Resource == "customresourcedefinitions"
}

// fields returns the fields of an object, which must not be changed.
func fields(o runtime.Object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(o)
}

// definition returns the definition of an object.
func definition(o runtime.Object) (*apiextensionsv1.CustomResourceDefinition, error) {
	t, err := fields(o)
	if err != nil {
		return nil, err
	}
	d := &apiextensionsv1.CustomResourceDefinition{}
	return d, runtime.DefaultUnstructuredConverter.FromUnstructured(t, d)
}

// defaults sets the defaults of a definition, and of kinds of Kubernetes.
func (s *schemas) defaults(a *apitest.Attempt) error {
	if a.Next != nil && a.Definition == nil && !isDefinition(a) {
		legacyscheme.Scheme.Default(a.Next)
	}
	if !isDefinition(a) || a.Next == nil || a.Subresource != "" {
		return nil
	}
	d, err := definition(a.Next)
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	s.scheme.Default(d)
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		return err
	}
	u, ok := a.Next.(*unstructured.Unstructured)
	if !ok {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(t, a.Next)
	}
	spec, _ := u.Object["spec"].(map[string]any)
	defaulted, _ := t["spec"].(map[string]any)
	for name, value := range defaulted { // in place of the schemas, which remain as they are sent
		if name != "versions" && spec != nil {
			spec[name] = value
		}
	}
	return nil
}

// internalDefinition returns a definition in the version that kube-apiserver validates.
func (s *schemas) internalDefinition(o runtime.Object) (*apiextensions.CustomResourceDefinition, error) {
	d, err := definition(o)
	if err != nil {
		return nil, err
	}
	s.scheme.Default(d)
	out := &apiextensions.CustomResourceDefinition{}
	return out, s.scheme.Convert(d, out, nil)
}

// validateDefinition validates a definition that is written. The definition is not changed.
func (s *schemas) validateDefinition(ctx context.Context, a *apitest.Attempt) error {
	next, err := s.internalDefinition(a.Next)
	if err != nil {
		return err
	}
	rules := customresourcedefinition.NewStrategy(s.scheme)
	if a.Old == nil {
		return before(ctx, rules, next, nil)
	}
	old, err := s.internalDefinition(a.Old)
	if err != nil {
		return err
	}
	return before(ctx, rules, next, old)
}

// strategy returns the strategy for a write of a custom resource, nil if the resource is that
// of a Go type.
func (s *schemas) strategy(a *apitest.Attempt) (rest.RESTUpdateStrategy, error) {
	if _, ok := a.Next.(*unstructured.Unstructured); !ok {
		return nil, nil // with a Go type: Server.Scheme
	}
	v, err := s.validator(a)
	switch {
	case err != nil:
		return nil, err
	case a.Subresource == "status":
		return v.status, nil
	}
	return v.object, nil
}

// validator returns the validator for the version of a write.
func (s *schemas) validator(a *apitest.Attempt) (*validator, error) {
	meta := a.Definition.(metav1.Object)
	key := version{meta.GetName(), a.Kind.Version}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.known[key]; v != nil && v.definition == meta.GetUID() && v.generation == meta.GetGeneration() {
		return v, nil
	}
	d, err := definition(a.Definition)
	if err != nil {
		return nil, err
	}
	s.scheme.Default(d)
	v, err := newValidator(d, a)
	if err != nil {
		return nil, err
	}
	v.definition, v.generation = meta.GetUID(), meta.GetGeneration()
	s.known[key] = v
	return v, nil
}

// newValidator makes the validator of a version as kube-apiserver does for its storage.
func newValidator(d *apiextensionsv1.CustomResourceDefinition, a *apitest.Attempt) (*validator, error) {
	given, err := apihelpers.GetSchemaForVersion(d, a.Kind.Version)
	if err != nil {
		return nil, err
	}
	if given == nil {
		return nil, fmt.Errorf("version %s has no schema", a.Kind.Version)
	}
	all := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(given, all, nil); err != nil {
		return nil, err
	}
	_, form, err := apivalidation.NewSchemaValidator(all.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	tree, err := structural.NewStructural(all.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	equal := newSharer()
	equal.share(form)
	equal.share(tree)
	whole := apivalidation.NewSchemaValidatorFromOpenAPI(form)
	subresources, err := apihelpers.GetSubresourcesForVersion(d, a.Kind.Version)
	if err != nil {
		return nil, err
	}
	var part apivalidation.SchemaValidator
	var status *apiextensions.CustomResourceSubresourceStatus
	var scale *apiextensions.CustomResourceSubresourceScale
	if subresources != nil && subresources.Status != nil {
		status = &apiextensions.CustomResourceSubresourceStatus{}
		if schema, ok := form.Properties["status"]; ok {
			part = apivalidation.NewSchemaValidatorFromOpenAPI(&schema)
		}
	}
	if subresources != nil && subresources.Scale != nil {
		scale = &apiextensions.CustomResourceSubresourceScale{}
		if err := apiextensionsv1.Convert_v1_CustomResourceSubresourceScale_To_apiextensions_CustomResourceSubresourceScale(subresources.Scale, scale, nil); err != nil {
			return nil, err
		}
	}
	rules := customresource.NewStrategy(typer{}, d.Spec.Scope == apiextensionsv1.NamespaceScoped, a.Kind, whole, part, tree, status, scale, nil)
	return &validator{object: rules, status: customresource.NewStatusStrategy(rules)}, nil
}
