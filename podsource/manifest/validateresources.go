package manifest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation/field"
	podresource "k8s.io/component-helpers/resource"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

func validateResources(r *v1.ResourceRequirements, path *field.Path) (errs field.ErrorList) {
	check := func(kind string, list v1.ResourceList) {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			at := path.Child(kind).Key(string(name))
			errs = append(errs, validateResourceName(name, at)...)
			errs = append(errs, validateQuantity(name, list[name], at)...)
		}
	}
	check("limits", r.Limits)
	check("requests", r.Requests)

	for _, name := range slices.Sorted(maps.Keys(r.Requests)) {
		request, at := r.Requests[name], path.Child("requests").Key(string(name))
		limit, limited := r.Limits[name]
		switch {
		case !limited && !overcommittable(name):
			errs = append(errs, field.Required(path.Child("limits").Key(string(name)), "limit must be set for non overcommitable resources"))
		case !limited:
		case !overcommittable(name) && request.Cmp(limit) != 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be equal to %s limit of %s", name, limit.String())))
		case request.Cmp(limit) > 0:
			errs = append(errs, field.Invalid(at, request.String(), fmt.Sprintf("must be less than or equal to %s limit of %s", name, limit.String())))
		}
	}
	names := make(map[string]bool)
	huge, base := false, false
	for _, list := range []v1.ResourceList{r.Limits, r.Requests} {
		for name := range list {
			huge = huge || podspec.IsHugePages(name)
			base = base || name == v1.ResourceCPU || name == v1.ResourceMemory
		}
	}
	if huge && !base {
		errs = append(errs, field.Forbidden(path, "HugePages require cpu or memory"))
	}
	for i, claim := range r.Claims {
		key, at := claim.Name+"/"+claim.Request, path.Child("claims").Index(i)
		if claim.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		}
		if names[key] {
			errs = append(errs, field.Duplicate(at, claim.Name))
		}
		names[key] = true
	}
	return errs
}

// validatePodResources checks those of the pod as a whole.
func validatePodResources(spec *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	for _, name := range slices.Sorted(maps.Keys(spec.Overhead)) {
		at := path.Child("overhead").Key(string(name))
		errs = append(errs, validateResourceName(name, at)...)
		errs = append(errs, validateQuantity(name, spec.Overhead[name], at)...)
	}
	r := spec.Resources
	if r == nil {
		return errs
	}
	at := path.Child("resources")
	errs = append(errs, validateResources(r, at)...)
	for _, kind := range []struct {
		name string
		list v1.ResourceList
	}{{"limits", r.Limits}, {"requests", r.Requests}} {
		for _, name := range slices.Sorted(maps.Keys(kind.list)) {
			if !podresource.IsSupportedPodLevelResource(name) {
				errs = append(errs, field.NotSupported(at.Child(kind.name).Key(string(name)), name, []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceHugePagesPrefix + "*"}))
			}
		}
	}
	if len(r.Claims) > 0 {
		errs = append(errs, field.Forbidden(at.Child("claims"), "claims are set per container"))
	}
	return errs
}

// validateResourceName takes what Kubernetes names itself, and anything under
// a domain of its own.
func validateResourceName(name v1.ResourceName, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "a resource has a name")}
	}
	if errs := invalid(path, name, content.IsLabelKey(string(name))); errs != nil {
		return errs
	}
	switch {
	case isNative(name), strings.Contains(string(name), "/"):
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, "must be a standard resource for containers, or have a domain prefix")}
}

func validateQuantity(name v1.ResourceName, q resource.Quantity, path *field.Path) (errs field.ErrorList) {
	if q.Sign() < 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be greater than or equal to 0"))
	}
	if (!isNative(name) || podspec.IsHugePages(name)) && q.MilliValue()%1000 != 0 {
		errs = append(errs, field.Invalid(path, q.String(), "must be an integer"))
	}
	return errs
}

func isNative(name v1.ResourceName) bool {
	return name == v1.ResourceCPU || name == v1.ResourceMemory || name == v1.ResourceEphemeralStorage || podspec.IsHugePages(name)
}

// overcommittable reports whether more may be promised than there is: not of
// devices, and not of huge pages.
func overcommittable(name v1.ResourceName) bool {
	return isNative(name) && !podspec.IsHugePages(name) || strings.Contains(string(name), "kubernetes.io/")
}
