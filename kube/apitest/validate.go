package apitest

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/podsource/manifest"
)

func (s *Server) validateCreate(r *request, o object) error {
	meta := field.NewPath("metadata")
	if o.GetName() == "" {
		return apierrors.NewInvalid(r.kind.groupKind(), "", field.ErrorList{field.Required(meta.Child("name"), "name or generateName is required")})
	}
	if s.Raw {
		return nil
	}
	dropBroken(o)
	if s.Extension != nil && !r.internal {
		return nil // validated
	}
	errs := validation.ValidateObjectMetaAccessor(o, r.kind.namespaced, r.kind.nameRule(), meta)
	if pod, ok := o.(*v1.Pod); ok {
		errs = manifest.Validate(pod)
	}
	return r.invalid(o, append(errs, validateContent(o)...))
}

func (s *Server) validateUpdate(r *request, was, o object) error {
	if s.Raw {
		return nil
	}
	if !slices.EqualFunc(o.GetManagedFields(), was.GetManagedFields(), sameFields) { // most writes repeat what they have read
		dropBroken(o)
	}
	if s.Extension != nil && !r.internal {
		return nil // validated
	}
	errs := validation.ValidateObjectMetaAccessorUpdate(o, was, field.NewPath("metadata"))
	if r.Subresource == "" {
		old := was.DeepCopyObject().(object)
		setDefaults(old) // objects of Put may have none
		errs = append(errs, validateContent(o)...)
		errs = append(errs, validateImmutable(old, o)...)
	}
	return r.invalid(o, errs)
}

// dropBroken removes managed fields that cannot be decoded, as field managers do.
func dropBroken(o object) {
	if managedfields.ValidateManagedFields(o.GetManagedFields()) != nil {
		o.SetManagedFields(nil)
	}
}

// sameFields reports whether two entries are equally valid: whether both have fields, and the same ones.
// An entry without fields is never valid, so two of them are not the same.
func sameFields(a, b metav1.ManagedFieldsEntry) bool {
	return a.FieldsV1 != nil && b.FieldsV1 != nil && sameEntries([]metav1.ManagedFieldsEntry{a}, []metav1.ManagedFieldsEntry{b})
}

func (r *request) invalid(o object, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(r.kind.groupKind(), o.GetName(), errs)
}

// nameRule returns the rule for names of objects.
func (k *kind) nameRule() validation.ValidateNameFunc {
	switch k.plural {
	case "namespaces":
		return validation.ValidateNamespaceName
	case "services":
		return validation.NameIsDNS1035Label
	case "roles", "rolebindings", "clusterroles", "clusterrolebindings":
		return func(name string, prefix bool) []string {
			if prefix {
				return content.IsPathSegmentPrefix(name)
			}
			return content.IsPathSegmentName(name)
		}
	case "clustertrustbundles":
		return func(name string, prefix bool) []string {
			signer, rest, _ := strings.Cut(name, ":")
			if rest == "" {
				return validation.NameIsDNSSubdomain(signer, prefix)
			}
			return nil
		}
	}
	return validation.NameIsDNSSubdomain
}

// validateContent checks the fields of objects with pod templates, which are those that
// controllers depend on. Other kinds have no rules.
func validateContent(o object) field.ErrorList {
	spec := field.NewPath("spec")
	switch o := o.(type) {
	case *appsv1.Deployment:
		return append(nonNegative(o.Spec.Replicas, spec.Child("replicas")), validateTemplate(o.Spec.Selector, &o.Spec.Template, v1.RestartPolicyAlways)...)
	case *appsv1.ReplicaSet:
		return append(nonNegative(o.Spec.Replicas, spec.Child("replicas")), validateTemplate(o.Spec.Selector, &o.Spec.Template, v1.RestartPolicyAlways)...)
	case *appsv1.StatefulSet:
		return append(nonNegative(o.Spec.Replicas, spec.Child("replicas")), validateTemplate(o.Spec.Selector, &o.Spec.Template, v1.RestartPolicyAlways)...)
	case *appsv1.DaemonSet:
		return validateTemplate(o.Spec.Selector, &o.Spec.Template, v1.RestartPolicyAlways)
	case *batchv1.Job:
		return validatePodSpec(&o.Spec.Template, spec.Child("template"), v1.RestartPolicyOnFailure, v1.RestartPolicyNever)
	case *batchv1.CronJob:
		var errs field.ErrorList
		if o.Spec.Schedule == "" {
			errs = append(errs, field.Required(spec.Child("schedule"), ""))
		}
		return append(errs, validatePodSpec(&o.Spec.JobTemplate.Spec.Template, spec.Child("jobTemplate", "spec", "template"), v1.RestartPolicyOnFailure, v1.RestartPolicyNever)...)
	}
	return nil
}

func nonNegative(n *int32, at *field.Path) field.ErrorList {
	if n != nil && *n < 0 {
		return field.ErrorList{field.Invalid(at, *n, "must be greater than or equal to 0").WithOrigin("minimum")}
	}
	return nil
}

func validateTemplate(selector *metav1.LabelSelector, template *v1.PodTemplateSpec, restart v1.RestartPolicy) field.ErrorList {
	spec := field.NewPath("spec")
	var errs field.ErrorList
	if selector == nil {
		errs = append(errs, field.Required(spec.Child("selector"), ""))
	} else if matcher, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		errs = append(errs, field.Invalid(spec.Child("selector"), selector, err.Error()))
	} else if matcher.Empty() {
		errs = append(errs, field.Invalid(spec.Child("selector"), selector, "empty selector is invalid for deployment"))
	} else if !matcher.Matches(labels.Set(template.Labels)) {
		errs = append(errs, field.Invalid(spec.Child("template", "metadata", "labels"), template.Labels, "`selector` does not match template `labels`"))
	}
	return append(errs, validatePodSpec(template, spec.Child("template"), restart)...)
}

// validatePodSpec checks the pod of a template.
func validatePodSpec(template *v1.PodTemplateSpec, at *field.Path, restart ...v1.RestartPolicy) field.ErrorList {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "template", Namespace: "template", Labels: template.Labels, Annotations: template.Annotations}, Spec: template.Spec}
	errs := manifest.Validate(pod)
	for _, err := range errs {
		err.Field = at.String() + "." + err.Field
	}
	for _, policy := range restart {
		if template.Spec.RestartPolicy == policy {
			return errs
		}
	}
	return append(errs, field.NotSupported(at.Child("spec", "restartPolicy"), template.Spec.RestartPolicy, restart))
}

// validateImmutable checks the fields that an update must not change.
func validateImmutable(was, o object) field.ErrorList {
	spec := field.NewPath("spec")
	immutable := func(is, old any, names ...string) field.ErrorList {
		at := spec
		for _, name := range names {
			at = at.Child(name)
		}
		return validation.ValidateImmutableField(is, old, at)
	}
	switch o := o.(type) {
	case *v1.Pod:
		return validatePodUpdate(was.(*v1.Pod), o)
	case *appsv1.Deployment:
		return immutable(o.Spec.Selector, was.(*appsv1.Deployment).Spec.Selector, "selector")
	case *appsv1.ReplicaSet:
		return immutable(o.Spec.Selector, was.(*appsv1.ReplicaSet).Spec.Selector, "selector")
	case *appsv1.DaemonSet:
		return immutable(o.Spec.Selector, was.(*appsv1.DaemonSet).Spec.Selector, "selector")
	case *appsv1.StatefulSet:
		return validateStatefulSetUpdate(was.(*appsv1.StatefulSet), o)
	case *batchv1.Job:
		old := was.(*batchv1.Job)
		errs := immutable(o.Spec.Selector, old.Spec.Selector, "selector")
		if old.Spec.Suspend == nil || !*old.Spec.Suspend {
			errs = append(errs, immutable(o.Spec.Template, old.Spec.Template, "template")...)
		}
		return append(errs, immutable(o.Spec.CompletionMode, old.Spec.CompletionMode, "completionMode")...)
	case *v1.ConfigMap:
		old := was.(*v1.ConfigMap)
		if old.Immutable != nil && *old.Immutable && (!equality.Semantic.DeepEqual(old.Data, o.Data) || !equality.Semantic.DeepEqual(old.BinaryData, o.BinaryData)) {
			return field.ErrorList{field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")}
		}
	case *v1.Secret:
		old := was.(*v1.Secret)
		errs := validation.ValidateImmutableField(o.Type, old.Type, field.NewPath("type"))
		if old.Immutable != nil && *old.Immutable && !equality.Semantic.DeepEqual(old.Data, o.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
		return errs
	}
	return nil
}

// validateStatefulSetUpdate compares all fields of the spec but those that may change.
func validateStatefulSetUpdate(was, o *appsv1.StatefulSet) field.ErrorList {
	spec := o.Spec
	spec.Replicas, spec.Template, spec.UpdateStrategy = was.Spec.Replicas, was.Spec.Template, was.Spec.UpdateStrategy
	spec.PersistentVolumeClaimRetentionPolicy, spec.MinReadySeconds = was.Spec.PersistentVolumeClaimRetentionPolicy, was.Spec.MinReadySeconds
	spec.Ordinals, spec.RevisionHistoryLimit = was.Spec.Ordinals, was.Spec.RevisionHistoryLimit
	if equality.Semantic.DeepEqual(spec, was.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden")}
}

// validatePodUpdate compares all fields of the spec but those that may change.
func validatePodUpdate(was, pod *v1.Pod) field.ErrorList {
	spec := pod.Spec.DeepCopy()
	copyImages(spec.Containers, was.Spec.Containers)
	copyImages(spec.InitContainers, was.Spec.InitContainers)
	spec.ActiveDeadlineSeconds = was.Spec.ActiveDeadlineSeconds
	if len(spec.SchedulingGates) < len(was.Spec.SchedulingGates) {
		spec.SchedulingGates = was.Spec.SchedulingGates
	}
	if len(was.Spec.SchedulingGates) > 0 { // placement can be narrowed
		spec.NodeSelector, spec.Affinity = was.Spec.NodeSelector, was.Spec.Affinity
	}
	if added := len(spec.Tolerations) - len(was.Spec.Tolerations); added >= 0 && contains(spec.Tolerations, was.Spec.Tolerations) {
		spec.Tolerations = was.Spec.Tolerations
	}
	if old := was.Spec.TerminationGracePeriodSeconds; old != nil && *old < 0 && *spec.TerminationGracePeriodSeconds == 1 {
		spec.TerminationGracePeriodSeconds = old
	}
	if equality.Semantic.DeepEqual(spec, &was.Spec) {
		return nil
	}
	return field.ErrorList{field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than "+
		"`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"+
		"`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)")}
}

func copyImages(to, from []v1.Container) {
	for i := range min(len(to), len(from)) {
		to[i].Image = from[i].Image
	}
}

func contains(all, some []v1.Toleration) bool {
	for _, want := range some {
		found := false
		for _, t := range all {
			found = found || t.Key == want.Key && t.Operator == want.Operator && t.Value == want.Value && t.Effect == want.Effect
		}
		if !found {
			return false
		}
	}
	return true
}
