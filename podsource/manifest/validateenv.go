package manifest

import (
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

// What environment variables may show of the pod, and what only files may.
var (
	envFields = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	fileFields = []string{
		"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid",
	}
	fieldResources = []string{
		"limits.cpu", "limits.memory", "limits.ephemeral-storage",
		"requests.cpu", "requests.memory", "requests.ephemeral-storage",
	}
)

func validateEnv(c *v1.Container, facts podFacts, path *field.Path) (errs field.ErrorList) {
	for i, e := range c.Env {
		at := path.Child("env").Index(i)
		if e.Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, invalid(at.Child("name"), e.Name, validation.IsRelaxedEnvVarName(e.Name))...)
		}
		if e.ValueFrom == nil {
			continue
		}
		if e.Value != "" {
			errs = append(errs, field.Invalid(at.Child("valueFrom"), e.Name, "may not be specified when `value` is not empty"))
		}
		errs = append(errs, validateEnvSource(e.ValueFrom, facts, at.Child("valueFrom"))...)
	}
	for i, from := range c.EnvFrom {
		at := path.Child("envFrom").Index(i)
		if from.Prefix != "" {
			errs = append(errs, invalid(at.Child("prefix"), from.Prefix, validation.IsRelaxedEnvVarName(from.Prefix))...)
		}
		switch {
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Forbidden(at, "may not have more than one source"))
		case from.ConfigMapRef != nil:
			errs = append(errs, objectReference(at.Child("configMapRef"), from.ConfigMapRef.Name)...)
		case from.SecretRef != nil:
			errs = append(errs, objectReference(at.Child("secretRef"), from.SecretRef.Name)...)
		default:
			errs = append(errs, field.Required(at, "must specify one of: `configMapRef` or `secretRef`"))
		}
	}
	return errs
}

func validateEnvSource(s *v1.EnvVarSource, facts podFacts, path *field.Path) (errs field.ErrorList) {
	sources := 0
	if ref := s.FieldRef; ref != nil {
		sources++
		errs = append(errs, validateFieldRef(ref, envFields, path.Child("fieldRef"))...)
	}
	if ref := s.ResourceFieldRef; ref != nil {
		sources++
		errs = append(errs, validateResourceRef(ref, false, path.Child("resourceFieldRef"))...)
	}
	if ref := s.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, keyReference(path.Child("configMapKeyRef"), ref.Name, ref.Key)...)
	}
	if ref := s.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, keyReference(path.Child("secretKeyRef"), ref.Name, ref.Key)...)
	}
	if ref := s.FileKeyRef; ref != nil {
		sources++
		at := path.Child("fileKeyRef")
		switch v := facts.volumes[ref.VolumeName]; {
		case ref.VolumeName == "":
			errs = append(errs, field.Required(at.Child("volumeName"), ""))
		case v == nil:
			errs = append(errs, field.NotFound(at.Child("volumeName"), ref.VolumeName))
		case v.EmptyDir == nil:
			errs = append(errs, field.Invalid(at.Child("volumeName"), ref.VolumeName, "must be an emptyDir volume"))
		}
		errs = append(errs, localPath(at.Child("path"), ref.Path)...)
		if ref.Key == "" {
			errs = append(errs, field.Required(at.Child("key"), ""))
		} else {
			errs = append(errs, invalid(at.Child("key"), ref.Key, validation.IsRelaxedEnvVarName(ref.Key))...)
		}
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Required(path, "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"))
	case sources > 1:
		errs = append(errs, field.Forbidden(path, "may not have more than one field specified at a time"))
	}
	return errs
}

// validateFieldRef checks a reference to one of the pod's own fields; labels
// and annotations may also be picked one by one.
func validateFieldRef(ref *v1.ObjectFieldSelector, allowed []string, path *field.Path) (errs field.ErrorList) {
	errs = append(errs, oneOf(path.Child("apiVersion"), ref.APIVersion, "v1")...)
	at := path.Child("fieldPath")
	if base, rest, ok := strings.Cut(ref.FieldPath, "['"); ok {
		key, closed := strings.CutSuffix(rest, "']")
		if !closed || base != "metadata.labels" && base != "metadata.annotations" {
			return append(errs, field.NotSupported(at, ref.FieldPath, allowed))
		}
		if base == "metadata.annotations" {
			key = strings.ToLower(key) // these may have capitals
		}
		return append(errs, invalid(at, ref.FieldPath, content.IsLabelKey(key))...)
	}
	return append(errs, oneOf(at, ref.FieldPath, allowed...)...)
}

// validateResourceRef checks a reference to a container's resources; files
// belong to no container and have to name it.
func validateResourceRef(ref *v1.ResourceFieldSelector, file bool, path *field.Path) (errs field.ErrorList) {
	if file && ref.ContainerName == "" {
		errs = append(errs, field.Required(path.Child("containerName"), ""))
	}
	at := path.Child("resource")
	kind, name, _ := strings.Cut(ref.Resource, ".")
	hugePages := (kind == "limits" || kind == "requests") && podspec.IsHugePages(v1.ResourceName(name))
	if !hugePages {
		if bad := oneOf(at, ref.Resource, fieldResources...); bad != nil {
			return append(errs, bad...)
		}
	}
	allowed := []string{"1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"}
	if name == string(v1.ResourceCPU) {
		allowed = []string{"1m", "1"}
	}
	if d := ref.Divisor; !d.IsZero() && !slices.Contains(allowed, d.String()) {
		errs = append(errs, field.NotSupported(path.Child("divisor"), d.String(), allowed))
	}
	return errs
}

func objectReference(path *field.Path, name string) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path.Child("name"), "")}
	}
	return invalid(path.Child("name"), name, validation.IsDNS1123Subdomain(name))
}

func keyReference(path *field.Path, name, key string) field.ErrorList {
	errs := objectReference(path, name)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, invalid(path.Child("key"), key, validation.IsConfigMapKey(key))...)
}
