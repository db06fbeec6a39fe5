package apitest

import (
	"net/http"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
)

// scalePaths are the paths of the fields that the subresource scale presents.
type scalePaths struct{ replicas, status, selector string }

func (k *kind) scalePaths(version string) scalePaths {
	if k.crd != nil {
		return k.crd.scale(version)
	}
	return scalePaths{"spec.replicas", "status.replicas", "spec.selector"}
}

var scaleKind = autoscalingv1.SchemeGroupVersion.WithKind("Scale")

// scaleOf returns the scale of an object.
func scaleOf(r *request, o object) (*autoscalingv1.Scale, error) {
	t, err := tree(o)
	if err != nil {
		return nil, err
	}
	paths := r.kind.scalePaths(r.gvk.Version)
	sc := &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{
		Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp(),
	}}
	sc.GetObjectKind().SetGroupVersionKind(scaleKind)
	number := func(path string) int32 {
		n, _ := valueAt(t, strings.Split(path, ".")).(int64)
		return int32(n)
	}
	sc.Spec.Replicas, sc.Status.Replicas = number(paths.replicas), number(paths.status)
	switch selector := valueAt(t, strings.Split(paths.selector, ".")).(type) {
	case string:
		sc.Status.Selector = selector
	case map[string]any:
		if rc, ok := o.(*v1.ReplicationController); ok {
			sc.Status.Selector = labels.Set(rc.Spec.Selector).String()
			break
		}
		var ls metav1.LabelSelector
		if runtime.DefaultUnstructuredConverter.FromUnstructured(selector, &ls) == nil {
			sc.Status.Selector = metav1.FormatLabelSelector(&ls)
		}
	}
	return sc, nil
}

func (s *Server) getScale(r *request, i *item) (answer, error) {
	sc, err := scaleOf(r, i.object)
	return answer{object: sc, code: http.StatusOK}, err
}

func (s *Server) updateScale(r *request) (answer, error) {
	decoded, err := r.decode(scheme.Scheme, scaleKind)
	if err != nil {
		return answer{}, err
	}
	return s.setScale(r, func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error) { return decoded.(*autoscalingv1.Scale), nil })
}

func (s *Server) patchScale(r *request) (answer, error) {
	kind := types.PatchType(r.bodyType())
	switch kind {
	case types.StrategicMergePatchType: // a Scale has no lists
		kind = types.MergePatchType
	case types.JSONPatchType, types.MergePatchType:
	default:
		return answer{}, r.unsupportedMedia("application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json")
	}
	return s.setScale(r, func(current *autoscalingv1.Scale) (*autoscalingv1.Scale, error) {
		patch, err := r.mergePatch(kind)
		if err != nil {
			return nil, err
		}
		before, err := tree(current)
		if err != nil {
			return nil, err
		}
		after, err := r.patched(kind, before, patch)
		if err != nil {
			return nil, err
		}
		next := &autoscalingv1.Scale{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(after, next); err != nil {
			return nil, r.invalidPatch(err)
		}
		return next, nil
	})
}

// setScale sets the replicas of an object.
func (s *Server) setScale(r *request, edit func(*autoscalingv1.Scale) (*autoscalingv1.Scale, error)) (answer, error) {
	main := *r
	main.Subresource, main.Verb = "", "patch"
	main.tracking = "scale"
	done, err := s.change(&main, func(current object) (object, error) {
		before, err := scaleOf(r, current)
		if err != nil {
			return nil, err
		}
		after, err := edit(before)
		if err != nil {
			return nil, err
		}
		switch {
		case after.Spec.Replicas < 0:
			return nil, apierrors.NewInvalid(scaleKind.GroupKind(), r.Name, field.ErrorList{
				field.Invalid(field.NewPath("spec", "replicas"), after.Spec.Replicas, "must be greater than or equal to 0"),
			})
		case after.Name != "" && after.Name != r.Name:
			return nil, apierrors.NewBadRequest("the name of the object does not match the name on the URL")
		}
		t, err := tree(current)
		if err != nil {
			return nil, err
		}
		path := strings.Split(r.kind.scalePaths(r.gvk.Version).replicas, ".")
		if err := unstructured.SetNestedField(t, int64(after.Spec.Replicas), path...); err != nil {
			return nil, err
		}
		next, err := r.kind.fromTree(t, r.gvk, false)
		if err != nil {
			return nil, err
		}
		next.SetUID(after.UID)
		next.SetResourceVersion(after.ResourceVersion)
		return next, nil
	})
	if err != nil {
		return answer{}, err
	}
	result := done.object
	if done.item != nil {
		result = done.item.object
	}
	sc, err := scaleOf(r, result.(object))
	return answer{object: sc, code: http.StatusOK}, err
}
