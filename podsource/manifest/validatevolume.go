package manifest

import (
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateVolumes also returns the volumes by name.
func validateVolumes(volumes []v1.Volume, at *field.Path) (byName map[string]*v1.Volume, errs field.ErrorList) {
	byName = make(map[string]*v1.Volume, len(volumes))
	names := make(map[string]bool)
	for i := range volumes {
		v := &volumes[i]
		errs = append(errs, uniqueLabel(at.Index(i).Child("name"), v.Name, names)...)
		if byName[v.Name] == nil {
			byName[v.Name] = v
		}
		switch kinds := setFields(v.VolumeSource); len(kinds) {
		case 0:
			errs = append(errs, field.Required(at.Index(i), "must specify a volume type"))
		case 1:
			errs = append(errs, validateSource(v, at.Index(i))...)
		default:
			errs = append(errs, field.Forbidden(at.Index(i), fmt.Sprintf("may not specify more than 1 volume type: %s", strings.Join(kinds, ", "))))
		}
	}
	return byName, errs
}

// setFields returns the JSON names of the pointers in a union that are set.
// The unions of core/v1 are structs of pointers, at most one of which may be set; reflection also
// covers fields of later versions.
func setFields(union any) (names []string) {
	v := reflect.ValueOf(union)
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && !f.IsNil() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	return names
}

func validateSource(v *v1.Volume, at *field.Path) (errs field.ErrorList) {
	switch {
	case v.HostPath != nil:
		at := at.Child("hostPath")
		if v.HostPath.Path == "" {
			errs = append(errs, field.Required(at.Child("path"), ""))
		} else {
			errs = append(errs, noBacksteps(at.Child("path"), v.HostPath.Path)...)
		}
		if t := v.HostPath.Type; t != nil && *t != v1.HostPathUnset {
			errs = append(errs, oneOf(at.Child("type"), *t, v1.HostPathDirectoryOrCreate, v1.HostPathDirectory, v1.HostPathFileOrCreate,
				v1.HostPathFile, v1.HostPathSocket, v1.HostPathCharDev, v1.HostPathBlockDev)...)
		}
	case v.EmptyDir != nil:
		at := at.Child("emptyDir")
		if l := v.EmptyDir.SizeLimit; l != nil && l.Sign() < 0 {
			errs = append(errs, field.Invalid(at.Child("sizeLimit"), l.String(), "must be greater than or equal to 0"))
		}
		m := v.EmptyDir.Medium
		if m != v1.StorageMediumDefault && !strings.HasPrefix(string(m), string(v1.StorageMediumHugePagesPrefix)) {
			errs = append(errs, oneOf(at.Child("medium"), m, v1.StorageMediumMemory, v1.StorageMediumHugePages)...)
		}
	case v.Secret != nil:
		errs = append(errs, required(at.Child("secret", "secretName"), v.Secret.SecretName)...)
		errs = append(errs, validateMode(v.Secret.DefaultMode, at.Child("secret", "defaultMode"))...)
		errs = append(errs, validateItems(v.Secret.Items, at.Child("secret", "items"))...)
	case v.ConfigMap != nil:
		errs = append(errs, required(at.Child("configMap", "name"), v.ConfigMap.Name)...)
		errs = append(errs, validateMode(v.ConfigMap.DefaultMode, at.Child("configMap", "defaultMode"))...)
		errs = append(errs, validateItems(v.ConfigMap.Items, at.Child("configMap", "items"))...)
	case v.DownwardAPI != nil:
		errs = append(errs, validateMode(v.DownwardAPI.DefaultMode, at.Child("downwardAPI", "defaultMode"))...)
		errs = append(errs, validateDownward(v.DownwardAPI.Items, at.Child("downwardAPI", "items"))...)
	case v.Projected != nil:
		errs = append(errs, validateProjected(v.Projected, at.Child("projected"))...)
	case v.PersistentVolumeClaim != nil:
		errs = append(errs, required(at.Child("persistentVolumeClaim", "claimName"), v.PersistentVolumeClaim.ClaimName)...)
	case v.CSI != nil:
		errs = append(errs, required(at.Child("csi", "driver"), v.CSI.Driver)...)
	case v.NFS != nil:
		errs = append(errs, required(at.Child("nfs", "server"), v.NFS.Server)...)
		if !strings.HasPrefix(v.NFS.Path, "/") {
			errs = append(errs, field.Invalid(at.Child("nfs", "path"), v.NFS.Path, "must be an absolute path"))
		}
	case v.Ephemeral != nil:
		if v.Ephemeral.VolumeClaimTemplate == nil {
			errs = append(errs, field.Required(at.Child("ephemeral", "volumeClaimTemplate"), ""))
		}
	case v.Image != nil:
		errs = append(errs, required(at.Child("image", "reference"), v.Image.Reference)...)
		errs = append(errs, oneOf(at.Child("image", "pullPolicy"), v.Image.PullPolicy, v1.PullAlways, v1.PullIfNotPresent, v1.PullNever)...)
	}
	return errs
}

func validateProjected(p *v1.ProjectedVolumeSource, at *field.Path) field.ErrorList {
	errs := validateMode(p.DefaultMode, at.Child("defaultMode"))
	for i, s := range p.Sources {
		at := at.Child("sources").Index(i)
		if kinds := setFields(s); len(kinds) != 1 {
			errs = append(errs, field.Forbidden(at, fmt.Sprintf("has %d projections; must have one", len(kinds))))
			continue
		}
		switch {
		case s.Secret != nil:
			errs = append(errs, required(at.Child("secret", "name"), s.Secret.Name)...)
			errs = append(errs, validateItems(s.Secret.Items, at.Child("secret", "items"))...)
		case s.ConfigMap != nil:
			errs = append(errs, required(at.Child("configMap", "name"), s.ConfigMap.Name)...)
			errs = append(errs, validateItems(s.ConfigMap.Items, at.Child("configMap", "items"))...)
		case s.DownwardAPI != nil:
			errs = append(errs, validateDownward(s.DownwardAPI.Items, at.Child("downwardAPI", "items"))...)
		case s.ServiceAccountToken != nil:
			t, at := s.ServiceAccountToken, at.Child("serviceAccountToken")
			errs = append(errs, localPath(at.Child("path"), t.Path)...)
			const shortest, longest = 600, 1 << 32
			if e := t.ExpirationSeconds; e == nil {
				errs = append(errs, field.Required(at.Child("expirationSeconds"), ""))
			} else if *e < shortest || *e > longest {
				errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *e, "must be at least 10 minutes and at most 2^32 seconds"))
			}
		}
	}
	return errs
}

func validateItems(items []v1.KeyToPath, at *field.Path) (errs field.ErrorList) {
	for i, item := range items {
		at := at.Index(i)
		errs = append(errs, required(at.Child("key"), item.Key)...)
		errs = append(errs, localPath(at.Child("path"), item.Path)...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
	}
	return errs
}

func validateDownward(items []v1.DownwardAPIVolumeFile, at *field.Path) (errs field.ErrorList) {
	for i, item := range items {
		at := at.Index(i)
		errs = append(errs, localPath(at.Child("path"), item.Path)...)
		errs = append(errs, validateMode(item.Mode, at.Child("mode"))...)
		switch {
		case item.FieldRef != nil && item.ResourceFieldRef != nil:
			errs = append(errs, field.Forbidden(at, "fieldRef and resourceFieldRef can not be specified simultaneously"))
		case item.FieldRef != nil:
			errs = append(errs, validateFieldRef(item.FieldRef, fileFields, at.Child("fieldRef"))...)
		case item.ResourceFieldRef != nil:
			errs = append(errs, validateResourceRef(item.ResourceFieldRef, true, at.Child("resourceFieldRef"))...)
		default:
			errs = append(errs, field.Required(at, "one of fieldRef and resourceFieldRef is required"))
		}
	}
	return errs
}

// validateMounts checks the mounts and block devices of a container.
func validateMounts(c *v1.Container, facts podFacts, at *field.Path) (errs field.ErrorList) {
	targets := make(map[string]bool)
	for i, m := range c.VolumeMounts {
		at := at.Child("volumeMounts").Index(i)
		switch {
		case m.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case facts.volumes[m.Name] == nil:
			errs = append(errs, field.NotFound(at.Child("name"), m.Name))
		}
		switch {
		case m.MountPath == "":
			errs = append(errs, field.Required(at.Child("mountPath"), ""))
		case targets[m.MountPath]:
			errs = append(errs, field.Invalid(at.Child("mountPath"), m.MountPath, "must be unique"))
		}
		targets[m.MountPath] = true
		if m.SubPath != "" && m.SubPathExpr != "" {
			errs = append(errs, field.Invalid(at.Child("subPathExpr"), m.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		if m.SubPath != "" {
			errs = append(errs, localPath(at.Child("subPath"), m.SubPath)...)
		}
		if m.SubPathExpr != "" {
			errs = append(errs, localPath(at.Child("subPathExpr"), m.SubPathExpr)...)
		}
		errs = append(errs, validatePropagation(m, c, at)...)
	}
	for i, d := range c.VolumeDevices {
		at := at.Child("volumeDevices").Index(i)
		switch v := facts.volumes[d.Name]; {
		case d.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
		case v == nil:
			errs = append(errs, field.NotFound(at.Child("name"), d.Name))
		case v.PersistentVolumeClaim == nil && v.Ephemeral == nil:
			errs = append(errs, field.Invalid(at.Child("name"), d.Name, "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"))
		}
		switch {
		case d.DevicePath == "":
			errs = append(errs, field.Required(at.Child("devicePath"), ""))
		case targets[d.DevicePath]:
			errs = append(errs, field.Invalid(at.Child("devicePath"), d.DevicePath, "must be unique"))
		default:
			errs = append(errs, noBacksteps(at.Child("devicePath"), d.DevicePath)...)
		}
		targets[d.DevicePath] = true
	}
	return errs
}

func validatePropagation(m v1.VolumeMount, c *v1.Container, at *field.Path) (errs field.ErrorList) {
	propagation := v1.MountPropagationNone
	if m.MountPropagation != nil {
		propagation = *m.MountPropagation
		errs = append(errs, oneOf(at.Child("mountPropagation"), propagation,
			v1.MountPropagationNone, v1.MountPropagationHostToContainer, v1.MountPropagationBidirectional)...)
		if propagation == v1.MountPropagationBidirectional && (c.SecurityContext == nil || !on(c.SecurityContext.Privileged)) {
			errs = append(errs, field.Forbidden(at.Child("mountPropagation"), "Bidirectional mount propagation is available only to privileged containers"))
		}
	}
	if r := m.RecursiveReadOnly; r != nil {
		at := at.Child("recursiveReadOnly")
		errs = append(errs, oneOf(at, *r, v1.RecursiveReadOnlyDisabled, v1.RecursiveReadOnlyIfPossible, v1.RecursiveReadOnlyEnabled)...)
		if *r != v1.RecursiveReadOnlyDisabled && (!m.ReadOnly || propagation != v1.MountPropagationNone) {
			errs = append(errs, field.Forbidden(at, "may only be used with `readOnly` and without mount propagation"))
		}
	}
	return errs
}

func validateMode(mode *int32, at *field.Path) field.ErrorList {
	if mode != nil && (*mode < 0 || *mode > 0o777) {
		return field.ErrorList{field.Invalid(at, *mode, validation.InclusiveRangeError(0, 0o777)+" (octal 0777)")}
	}
	return nil
}

func required(at *field.Path, value string) field.ErrorList {
	if value == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	return nil
}

// localPath checks a path that stays below where it begins, whatever the
// machine that validates it takes for a separator.
func localPath(at *field.Path, value string) field.ErrorList {
	switch {
	case value == "":
		return field.ErrorList{field.Required(at, "")}
	case path.IsAbs(value):
		return field.ErrorList{field.Invalid(at, value, "must be a relative path")}
	}
	return noBacksteps(at, value)
}

func noBacksteps(at *field.Path, value string) field.ErrorList {
	if slices.Contains(strings.FieldsFunc(value, func(r rune) bool { return r == '/' || r == '\\' }), "..") {
		return field.ErrorList{field.Invalid(at, value, "must not contain '..'")}
	}
	return nil
}
