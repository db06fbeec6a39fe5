package apitest

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

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
	source     object         // the definition, as it is stored
	tree       map[string]any // of source; must not be changed
	extension  Extension      // Server.Extension
}

// A definedVersion is a version of a custom resource.
type definedVersion struct {
	Name         string `json:"name"`
	Served       bool   `json:"served"`
	Storage      bool   `json:"storage"`
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

	schema map[string]any // part of definition.tree; nil: none
	root   *property      // of schema
	types  func() managedfields.TypeConverter
}

// crdResource is the resource of definitions.
var crdResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// defined serves the resource of a stored CustomResourceDefinition.
func (s *Server) defined(k *kind, o object) {
	if k.resource() != crdResource || o.GetDeletionTimestamp() != nil {
		return
	}
	one, err := s.resourceOf(o)
	if err != nil {
		return // validated
	}
	s.mu.Lock()
	all := make(kinds, len(s.served)+1)
	for gr, k := range s.kindsLocked() {
		all[gr] = k
	}
	old := all[one.resource()]
	if old == nil || old.crd != nil {
		all[one.resource()] = one
	}
	s.serveLocked(all)
	s.mu.Unlock()
	s.dropManagers(old)
	s.edit(ref{k, keyOf(o)}, establish)
}

// resourceOf returns the resource that a definition defines. If only the status of the
// definition has changed, it shares what was made of its schemas.
func (s *Server) resourceOf(o object) (*kind, error) {
	t, err := treeOf(o)
	if err != nil {
		return nil, err
	}
	group, _, _ := unstructured.NestedString(t, "spec", "group")
	plural, _, _ := unstructured.NestedString(t, "spec", "names", "plural")
	s.mu.Lock()
	old := s.kindsLocked()[schema.GroupResource{Group: group, Resource: plural}]
	s.mu.Unlock()
	if old != nil && old.crd != nil && sameMap(old.crd.tree["spec"], t["spec"]) {
		one, d := *old, *old.crd
		d.source, d.tree = o, t
		one.crd = &d
		return &one, nil
	}
	d, err := parseDefinition(o, t)
	if err != nil {
		return nil, err
	}
	d.extension = s.Extension
	return d.resource(), nil
}

// treeOf returns the JSON tree of an object, which must not be changed.
func treeOf(o object) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return tree(o)
}

// sameMap reports whether two values are the same map.
func sameMap(a, b any) bool {
	x, ok := a.(map[string]any)
	y, also := b.(map[string]any)
	return ok && also && reflect.ValueOf(x).Pointer() == reflect.ValueOf(y).Pointer()
}

// undefined stops serving a resource and deletes its objects.
func (s *Server) undefined(k *kind, o object) {
	if k.resource() != crdResource {
		return
	}
	t, err := treeOf(o)
	if err != nil {
		return
	}
	group, _, _ := unstructured.NestedString(t, "spec", "group")
	plural, _, _ := unstructured.NestedString(t, "spec", "names", "plural")
	gr := schema.GroupResource{Group: group, Resource: plural}
	s.mu.Lock()
	old := s.served[gr]
	if old == nil || old.crd == nil {
		s.mu.Unlock()
		return
	}
	for _, i := range sorted(s.table.of(old).all, everything) {
		s.removeLocked(i)
	}
	all := make(kinds, len(s.served))
	for other, k := range s.served {
		if other != gr {
			all[other] = k
		}
	}
	s.serveLocked(all)
	s.mu.Unlock()
	s.dropManagers(old)
}

// parseDefinition parses a definition, whose JSON tree is t. Of the schemas only the JSON tree
// and the properties are kept, which share the parts that the tree shares.
func parseDefinition(o object, t map[string]any) (*definition, error) {
	spec, _ := t["spec"].(map[string]any)
	header := maps.Clone(spec)
	var schemas []map[string]any
	if versions, ok := spec["versions"].([]any); ok {
		without := make([]any, len(versions))
		for i, v := range versions {
			one, _ := v.(map[string]any)
			found, _, _ := unstructured.NestedFieldNoCopy(one, "schema", "openAPIV3Schema")
			of, _ := found.(map[string]any)
			schemas = append(schemas, of)
			one = maps.Clone(one)
			delete(one, "schema")
			without[i] = one
		}
		header["versions"] = without
	}
	data, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	d := &definition{source: o, tree: t}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, err
	}
	parser := propertyParser{}
	for i := range d.Versions {
		if schemas[i] == nil {
			continue
		}
		d.Versions[i].schema = schemas[i]
		if d.Versions[i].root, err = parser.parse(schemas[i]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// model returns the schema of a version as a JSON tree, whose root and whose properties the
// caller may change.
func (d *definition) model(version string) map[string]any {
	v := d.version(version)
	if v == nil || v.schema == nil {
		return map[string]any{}
	}
	model := maps.Clone(v.schema)
	if properties, ok := model["properties"].(map[string]any); ok {
		model["properties"] = maps.Clone(properties)
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
	for i, v := range d.Versions {
		d.Versions[i].types = sync.OnceValue(func() managedfields.TypeConverter { return mergeTypes(k, v.Name) })
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

// mergeTypes returns the types by which applied fields are merged: those of the schema, or,
// without a schema that the library can use, deduced ones.
func mergeTypes(k *kind, version string) managedfields.TypeConverter {
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
	if !ok || v == nil || v.root == nil {
		return nil
	}
	unknown, errs := v.root.applyRoot(u.Object)
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
