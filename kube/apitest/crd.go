package apitest

import (
	"encoding/json"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// A definition is what the server uses of a CustomResourceDefinition.
type definition struct {
	Group string `json:"group"`
	Scope string `json:"scope"`
	Names struct {
		Plural     string   `json:"plural"`
		Singular   string   `json:"singular"`
		Kind       string   `json:"kind"`
		ShortNames []string `json:"shortNames"`
		Categories []string `json:"categories"`
	} `json:"names"`
	Versions []definedVersion `json:"versions"`

	selectable []string
	source     object    // the definition, as it is stored
	extension  Extension // Server.Extension
}

// A definedVersion is a version of a custom resource.
type definedVersion struct {
	Name    string `json:"name"`
	Served  bool   `json:"served"`
	Storage bool   `json:"storage"`
	Schema  struct {
		OpenAPI *property       `json:"-"`
		Raw     json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
	Subresources struct {
		Status *struct{} `json:"status"`
		Scale  *struct {
			Replicas string `json:"specReplicasPath"`
			Status   string `json:"statusReplicasPath"`
			Selector string `json:"labelSelectorPath"`
		} `json:"scale"`
	} `json:"subresources"`
	SelectableFields []struct {
		JSONPath string `json:"jsonPath"`
	} `json:"selectableFields"`
}

// crdResource is the resource of definitions.
var crdResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// defined serves the resource of a stored CustomResourceDefinition.
func (s *Server) defined(k *kind, o object) {
	if k.resource() != crdResource || o.GetDeletionTimestamp() != nil {
		return
	}
	d, err := parseDefinition(o)
	if err != nil {
		return // validated
	}
	d.extension = s.Extension
	one := d.resource()
	s.mu.Lock()
	all := make(kinds, len(s.served)+1)
	for gr, k := range s.kindsLocked() {
		all[gr] = k
	}
	if old := all[one.resource()]; old == nil || old.crd != nil {
		all[one.resource()] = one
	}
	s.serveLocked(all)
	s.mu.Unlock()
	s.edit(ref{k, keyOf(o)}, establish)
}

// undefined stops serving a resource and deletes its objects.
func (s *Server) undefined(k *kind, o object) {
	if k.resource() != crdResource {
		return
	}
	d, err := parseDefinition(o)
	if err != nil {
		return
	}
	gr := schema.GroupResource{Group: d.Group, Resource: d.Names.Plural}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.served[gr] == nil || s.served[gr].crd == nil {
		return
	}
	for _, i := range sorted(s.table.of(s.served[gr]).all, everything) {
		s.removeLocked(i)
	}
	all := make(kinds, len(s.served))
	for other, k := range s.served {
		if other != gr {
			all[other] = k
		}
	}
	s.serveLocked(all)
}

func parseDefinition(o object) (*definition, error) {
	t, err := tree(o)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(t["spec"])
	if err != nil {
		return nil, err
	}
	d := &definition{source: o}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, err
	}
	for i := range d.Versions {
		v := &d.Versions[i].Schema
		if len(v.Raw) == 0 {
			continue
		}
		v.OpenAPI = &property{}
		if err := json.Unmarshal(v.Raw, v.OpenAPI); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// model returns the schema of a version as a JSON tree.
func (d *definition) model(version string) map[string]any {
	model := map[string]any{}
	if v := d.version(version); v != nil && len(v.Schema.Raw) > 0 {
		_ = json.Unmarshal(v.Schema.Raw, &model) // parsed before
	}
	return model
}

// resource returns the resource that a definition defines.
func (d *definition) resource() *kind {
	k := &kind{
		group: d.Group, plural: d.Names.Plural, singular: d.Names.Singular, kind: d.Names.Kind, namespaced: d.Scope == "Namespaced",
		short: d.Names.ShortNames, categories: d.Names.Categories, generation: true, custom: true, crd: d,
	}
	if k.singular == "" {
		k.singular = strings.ToLower(k.kind)
	}
	for _, v := range d.Versions {
		if v.Storage {
			k.versions = append([]string{v.Name}, k.versions...)
		} else {
			k.versions = append(k.versions, v.Name)
		}
		if v.Subresources.Status != nil && !k.has("status") {
			k.subresources = append(k.subresources, "status")
		}
		if v.Subresources.Scale != nil && !k.has("scale") {
			k.subresources = append(k.subresources, "scale")
		}
		for _, f := range v.SelectableFields {
			d.selectable = append(d.selectable, strings.TrimPrefix(f.JSONPath, "."))
		}
	}
	return k
}

func (d *definition) version(name string) *definedVersion {
	i := slices.IndexFunc(d.Versions, func(v definedVersion) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Versions[i]
}

func (d *definition) serves(version string) bool {
	v := d.version(version)
	return v != nil && v.Served
}

func (d *definition) scale(version string) scalePaths {
	v := d.version(version)
	if v == nil || v.Subresources.Scale == nil {
		return scalePaths{}
	}
	path := func(p string) string { return strings.TrimPrefix(p, ".") }
	return scalePaths{path(v.Subresources.Scale.Replicas), path(v.Subresources.Scale.Status), path(v.Subresources.Scale.Selector)}
}

// types returns the types by which applied fields are merged: those of the schema, or,
// without a schema that the library can use, deduced ones.
func (d *definition) types(k *kind, version string) managedfields.TypeConverter {
	b := newModels("#/definitions/")
	b.kind(k, version)
	data, err := json.Marshal(b.definitions)
	schemas := map[string]*spec.Schema{}
	if err == nil {
		err = json.Unmarshal(data, &schemas)
	}
	if err == nil {
		var types managedfields.TypeConverter
		if types, err = managedfields.NewTypeConverter(schemas, false); err == nil {
			return types
		}
	}
	return managedfields.NewDeducedTypeConverter()
}

// apply defaults and validates an object by the schema, and prunes unknown fields.
func (d *definition) apply(r *request, o object) error {
	u, ok := o.(*unstructured.Unstructured)
	v := d.version(r.gvk.Version)
	if !ok || v == nil || v.Schema.OpenAPI == nil {
		return nil
	}
	unknown, errs := v.Schema.OpenAPI.applyRoot(u.Object)
	if err := r.unknownFields(unknown); err != nil {
		return err
	}
	if len(errs) > 0 && !r.unchecked {
		return apierrors.NewInvalid(r.kind.groupKind(), u.GetName(), errs)
	}
	return nil
}

// establish sets the conditions of a definition that is served.
func establish(o object) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok {
		t, err := tree(o)
		if err != nil {
			return
		}
		u = &unstructured.Unstructured{Object: t}
		defer func() { setTree(o, u.Object) }()
	}
	t := u.Object // its fields, except status, may be shared with the stored object
	at := metav1.Now().UTC().Format("2006-01-02T15:04:05Z")
	conditions, _, _ := unstructured.NestedFieldNoCopy(t, "status", "conditions")
	list, _ := conditions.([]any)
	for _, c := range list {
		if one, _ := c.(map[string]any); one["type"] == "Established" {
			return
		}
	}
	names, _, _ := unstructured.NestedMap(t, "spec", "names")
	var stored []any
	versions, _, _ := unstructured.NestedFieldNoCopy(t, "spec", "versions")
	list, _ = versions.([]any)
	for _, v := range list {
		if one, _ := v.(map[string]any); one["storage"] == true {
			stored = append(stored, one["name"])
		}
	}
	t["status"] = map[string]any{"acceptedNames": names, "storedVersions": stored, "conditions": []any{
		map[string]any{"type": "NamesAccepted", "status": "True", "reason": "NoConflicts", "message": "no conflicts found", "lastTransitionTime": at},
		map[string]any{"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": "the initial names have been accepted", "lastTransitionTime": at},
	}}
}
