package apitest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

func (s *Server) patch(r *request) (answer, error) {
	kind := types.PatchType(r.bodyType())
	switch kind {
	case types.ApplyYAMLPatchType:
		return s.apply(r)
	case types.StrategicMergePatchType:
		if r.kind.custom || r.kind.scheme == nil {
			return answer{}, r.unsupportedMedia("application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml")
		}
	case types.JSONPatchType, types.MergePatchType:
	default:
		return answer{}, r.unsupportedMedia("application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml")
	}
	return s.change(r, func(current object) (object, error) {
		patch, err := r.mergePatch(kind)
		if err != nil {
			return nil, err
		}
		part, isPart := r.patchable(current, patch)
		before, err := tree(part)
		if err != nil {
			return nil, err
		}
		after, err := r.patched(kind, before, patch)
		if err != nil {
			return nil, err
		}
		next, err := r.fromPatched(after)
		if err != nil {
			return nil, err
		}
		if isPart { // the spec of an updated status is ignored
			next.SetManagedFields(current.GetManagedFields())
		}
		if next.GetName() != r.Name || next.GetNamespace() != r.Namespace {
			return nil, apierrors.NewBadRequest("the name or namespace of the patched object does not match the request")
		}
		return next, r.custom(next)
	})
}

// patchable returns the part of current that a merge patch of a typed status can change, and
// false if that is all of it. The conversion of the rest, the spec and the managed fields,
// would take most of the time. patch is the result of mergePatch.
func (r *request) patchable(current object, patch map[string]any) (part object, ok bool) {
	_, loose := current.(*unstructured.Unstructured)
	metadata, _ := patch["metadata"].(map[string]any)
	if loose || patch == nil || r.Subresource != "status" || !preserves(patch, "spec") || !preserves(metadata, "managedFields") {
		return current, false
	}
	part = withoutSpec(current)
	part.SetManagedFields(nil)
	return part, true
}

// preserves reports whether a merge patch of an object does not change a field of it: it
// has neither the field nor a directive.
func preserves(patch map[string]any, field string) bool {
	for name := range patch {
		if name == field || strings.HasPrefix(name, "$") {
			return false
		}
	}
	return true
}

// fromPatched decodes a patched tree.
func (r *request) fromPatched(after map[string]any) (object, error) {
	var meta unstructured.Unstructured
	meta.Object = after
	if meta.GroupVersionKind() != r.gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the patched object is a %s of %s, not a %s", meta.GetKind(), meta.GetAPIVersion(), r.gvk.Kind))
	}
	next, err := r.kind.fromTree(after, r.gvk, r.fieldValidation() != "Ignore")
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		err = r.unknownFields(strict.Errors())
	} else if err != nil {
		return nil, r.invalidPatch(err)
	}
	return next, err
}

// invalidPatch is the answer to a patch whose result is not an object of the kind.
func (r *request) invalidPatch(err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(r.body), err.Error())})
}

// patched applies the patch of the body to a tree, which it may change; patch is the result
// of mergePatch.
func (r *request) patched(kind types.PatchType, before, patch map[string]any) (map[string]any, error) {
	switch kind {
	case types.JSONPatchType:
		return r.jsonPatched(before)
	case types.MergePatchType:
		return merge(before, patch), nil
	}
	schema, err := strategicpatch.NewPatchMetaFromStruct(r.kind.make(r.gvk.Version))
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(before, patch, schema)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return after, nil
}

// mergePatch decodes the body; nil if it is a JSON patch.
func (r *request) mergePatch(kind types.PatchType) (patch map[string]any, err error) {
	if kind == types.JSONPatchType {
		return nil, nil
	}
	strict, err := kjson.UnmarshalStrict(r.body, &patch, kjson.DisallowDuplicateFields)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	return patch, r.unknownFields(strict)
}

// maxPatchOperations is the number of operations that a JSON patch may have.
const maxPatchOperations = 10_000

func (r *request) jsonPatched(before map[string]any) (map[string]any, error) {
	patch, err := jsonpatch.DecodePatch(r.body)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	data, err := json.Marshal(before)
	if err != nil {
		return nil, err
	}
	if data, err = patch.Apply(data); err != nil { // Kubernetes does not report the reason
		return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", "", 0, false)
	}
	var after map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &after); err != nil {
		return nil, r.invalidPatch(err)
	}
	return after, nil
}

// merge applies a JSON merge patch (RFC 7396) to a tree, which it changes.
func merge(target, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		branch, isMap := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, name)
		case isMap:
			below, _ := target[name].(map[string]any)
			target[name] = merge(below, branch)
		default:
			target[name] = value
		}
	}
	return target
}
