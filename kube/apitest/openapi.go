package apitest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	"google.golang.org/protobuf/proto"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// openAPI serves the descriptions of the types that kubectl and client-go use: to find out
// which parameters are supported, to merge, and to explain. Paths list only what is patched.
func (k kinds) openAPI(w http.ResponseWriter, r *http.Request) bool {
	path := strings.Trim(r.URL.Path, "/")
	if path == "openapi/v2" {
		k.openAPIv2(w, r)
		return true
	}
	groupVersion := strings.TrimPrefix(strings.TrimPrefix(path, "openapi/v3"), "/")
	var found any
	if groupVersion == "" {
		paths := map[string]any{}
		for _, group := range k.groups() {
			for _, v := range group.Versions {
				gv := schema.GroupVersion{Group: group.Name, Version: v.Version}
				at := pathOf(gv)
				paths[at] = map[string]any{"serverRelativeURL": "/openapi/v3/" + at + k.revision(gv)}
			}
		}
		found = map[string]any{"paths": paths}
	} else {
		b := newModels("#/components/schemas/")
		paths := map[string]any{}
		for _, one := range k.described() {
			for _, v := range one.served() {
				if gv := (schema.GroupVersion{Group: one.group, Version: v}); pathOf(gv) == groupVersion {
					b.kind(one, v)
					paths[one.path(v)] = one.operations(v, false)
				}
			}
		}
		if len(paths) == 0 {
			writeError(w, errNotServed)
			return true
		}
		found = map[string]any{
			"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": serverVersion.GitVersion},
			"paths": paths, "components": map[string]any{"schemas": b.definitions},
		}
	}
	data, err := json.Marshal(found)
	if err != nil {
		writeError(w, err)
		return true
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
	return true
}

// revision returns the query of the URL of a group version with custom resources, which changes
// with their definitions: clients, such as MutatingAdmissionPolicies, keep a document as long
// as its URL is the same.
func (k kinds) revision(gv schema.GroupVersion) string {
	sum, some := sha256.New(), false
	for _, one := range k.sorted() {
		if one.group == gv.Group && one.crd != nil && one.crd.serves(gv.Version) {
			some = true
			_, _ = fmt.Fprintln(sum, one.plural, one.crd.source.GetUID(), one.crd.source.GetGeneration())
		}
	}
	if !some {
		return ""
	}
	return fmt.Sprintf("?hash=%X", sum.Sum(nil))
}

// described returns the kinds whose types are known.
func (k kinds) described() []*kind {
	return slices.DeleteFunc(k.sorted(), func(one *kind) bool { return one.verbsOf != nil })
}

func (k kinds) openAPIv2(w http.ResponseWriter, r *http.Request) {
	b := newModels("#/definitions/")
	paths := map[string]any{}
	for _, one := range k.described() {
		for _, v := range one.served() {
			b.kind(one, v)
			paths[one.path(v)] = one.operations(v, true)
		}
	}
	data, err := json.Marshal(map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "Kubernetes", "version": serverVersion.GitVersion},
		"paths": paths, "definitions": b.definitions,
	})
	mime := "application/json"
	if accept := r.Header.Get("Accept"); err == nil && strings.Contains(accept, "proto-openapi") {
		mime = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
		var document *openapi_v2.Document
		if document, err = openapi_v2.ParseDocument(data); err == nil {
			data, err = proto.Marshal(document)
		}
	}
	if err != nil {
		writeError(w, apierrors.NewInternalError(err))
		return
	}
	w.Header().Set("Content-Type", mime)
	_, _ = w.Write(data)
}

func pathOf(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// path returns the path of objects of a kind.
func (k *kind) path(version string) string {
	path := "/" + pathOf(schema.GroupVersion{Group: k.group, Version: version})
	if k.namespaced {
		path += "/namespaces/{namespace}"
	}
	return path + "/" + k.plural + "/{name}"
}

// operations describes the patch of a kind, with its parameters.
func (k *kind) operations(version string, v2 bool) any {
	var parameters []any
	for _, name := range []string{"dryRun", "fieldManager", "fieldValidation", "force"} {
		p := map[string]any{"name": name, "in": "query"}
		kind := "string"
		if name == "force" {
			kind = "boolean"
		}
		if v2 {
			p["type"] = kind
		} else {
			p["schema"] = map[string]any{"type": kind}
		}
		parameters = append(parameters, p)
	}
	return map[string]any{"patch": map[string]any{
		"parameters": parameters, "responses": map[string]any{"200": map[string]any{"description": "OK"}},
		"x-kubernetes-group-version-kind": gvkExtension(k.gvk(version)), "x-kubernetes-action": "patch",
	}}
}

func gvkExtension(gvk schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}
}

// kind adds the description of a kind.
func (b *models) kind(k *kind, version string) {
	gvk := k.gvk(version)
	var model map[string]any
	name := k.group + "." + version + "." + k.kind
	switch {
	case k.crd != nil:
		model = k.crd.model(version)
		properties, _ := model["properties"].(map[string]any)
		if properties == nil {
			properties = map[string]any{}
			model["properties"] = properties
		}
		properties["apiVersion"], properties["kind"] = map[string]any{"type": "string"}, map[string]any{"type": "string"}
		properties["metadata"] = map[string]any{"allOf": []any{b.objectMeta()}}
		if b.prefix == "#/definitions/" {
			properties["metadata"] = b.objectMeta()
		}
		parts := strings.Split(k.group, ".")
		slices.Reverse(parts)
		name = strings.Join(append(parts, version, k.kind), ".")
	case k.scheme == nil:
		model = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	default:
		model, name = b.root(k.make(version))
	}
	model["x-kubernetes-group-version-kind"] = []any{gvkExtension(gvk)}
	b.definitions[name] = model
}
