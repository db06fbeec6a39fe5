package apitest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// A kind is a resource that the server serves.
type kind struct {
	group, plural, singular, kind string
	versions                      []string // the stored version first, which is preferred
	namespaced                    bool
	short, categories             []string
	subresources                  []string
	generation                    bool            // metadata.generation counts changes of the spec
	review                        bool            // it can only be created, and is not stored
	scheme                        *runtime.Scheme // nil: objects are unstructured
	custom                        bool            // not Kubernetes' own
	crd                           *definition     // of a custom resource; nil for others
	verbsOf                       []string        // of a resource that is served by the handler of Server.Aggregate
}

func (k *kind) has(subresource string) bool { return slices.Contains(k.subresources, subresource) }

// deletesCollections reports whether the resource has the verb deletecollection.
func (k *kind) deletesCollections() bool {
	return k.custom || k.plural != "namespaces"
}

func (k *kind) resource() schema.GroupResource {
	return schema.GroupResource{Group: k.group, Resource: k.plural}
}

func (k *kind) groupKind() schema.GroupKind { return schema.GroupKind{Group: k.group, Kind: k.kind} }

func (k *kind) gvk(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.group, Version: version, Kind: k.kind}
}

// stored is the kind as it is stored.
func (k *kind) stored() schema.GroupVersionKind { return k.gvk(k.versions[0]) }

// make returns an empty object of a version.
func (k *kind) make(version string) object {
	gvk := k.gvk(version)
	if k.scheme == nil {
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(gvk)
		return u
	}
	o, err := k.scheme.New(gvk)
	if err != nil {
		panic(err) // versions are registered
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return o.(object)
}

// kinds are the served resources, by group and plural.
type kinds map[schema.GroupResource]*kind

// newKinds returns the resources of Kubernetes and those of custom, which described details.
func newKinds(custom *runtime.Scheme, described []metav1.APIResource) (kinds, error) {
	all := kinds{}
	known := map[schema.GroupKind]bool{}
	for _, k := range builtinKinds() {
		all[k.resource()] = k
		known[k.groupKind()] = true
	}
	if custom == nil {
		return all, nil
	}
	added := map[schema.GroupKind]*kind{}
	for _, gvk := range slices.SortedFunc(maps.Keys(custom.AllKnownTypes()), byPriority) {
		if known[gvk.GroupKind()] || gvk.Version == runtime.APIVersionInternal || reservedGroup(gvk.Group) || !custom.Recognizes(gvk.GroupVersion().WithKind(gvk.Kind+"List")) {
			if k := all.ofKind(gvk.GroupKind()); k != nil && k.scheme == nil && slices.Contains(k.versions, gvk.Version) {
				k.scheme = custom // the types of CustomResourceDefinition
			}
			continue
		}
		o, err := custom.New(gvk)
		if _, ok := o.(object); err != nil || !ok {
			continue
		}
		if k := added[gvk.GroupKind()]; k != nil {
			k.versions = append(k.versions, gvk.Version)
			continue
		}
		plural, singular := meta.UnsafeGuessKindToResource(gvk)
		k := &kind{
			group: gvk.Group, plural: plural.Resource, singular: singular.Resource, kind: gvk.Kind,
			versions: []string{gvk.Version}, namespaced: true, generation: true, scheme: custom, custom: true,
		}
		if reflect.TypeOf(o).Elem().Kind() == reflect.Struct {
			if _, ok := reflect.TypeOf(o).Elem().FieldByName("Status"); ok {
				k.subresources = []string{"status"}
			}
		}
		k.describe(described)
		added[gvk.GroupKind()], all[k.resource()] = k, k
	}
	for _, d := range described {
		if !strings.Contains(d.Name, "/") && added[schema.GroupKind{Group: d.Group, Kind: d.Kind}] == nil {
			return nil, fmt.Errorf("apitest: Server.Resources: Server.Scheme has no kind %s of group %q with a list, or it is Kubernetes' own", d.Kind, d.Group)
		}
	}
	return all, nil
}

// describe applies the entries for the kind.
func (k *kind) describe(described []metav1.APIResource) {
	listed := false
	for _, d := range described {
		if d.Group != k.group || d.Kind != k.kind || strings.Contains(d.Name, "/") {
			continue
		}
		listed = true
		k.plural, k.namespaced, k.short, k.categories = cmp.Or(d.Name, k.plural), d.Namespaced, d.ShortNames, d.Categories
		k.singular = cmp.Or(d.SingularName, k.singular)
	}
	if !listed {
		return
	}
	var subresources []string
	for _, d := range described {
		if plural, sub, ok := strings.Cut(d.Name, "/"); ok && plural == k.plural && d.Group == k.group {
			subresources = append(subresources, sub)
		}
	}
	if len(subresources) > 0 {
		k.subresources = subresources
	}
}

// byPriority sorts versions as discovery does: v2, v1, v1beta1.
func byPriority(a, b schema.GroupVersionKind) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
}

// reservedGroup reports whether a group is Kubernetes' own, so that types which the table
// does not list are not resources.
func reservedGroup(group string) bool {
	switch group {
	case "", "apps", "extensions", "policy", "batch", "autoscaling", "lifecycle.k8s.io":
		return true
	}
	return false
}

func (k kinds) ofKind(gk schema.GroupKind) *kind {
	for _, one := range k {
		if one.groupKind() == gk {
			return one
		}
	}
	return nil
}

// sorted returns the resources sorted by group and name.
func (k kinds) sorted() []*kind {
	return slices.SortedFunc(maps.Values(k), func(a, b *kind) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.plural, b.plural))
	})
}
