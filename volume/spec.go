package volume

import (
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Spec specifies one volume of a pod, with its claim and persistent volume.
type Spec struct {
	// Volume is the entry of pod.spec.volumes; volumeMounts refer to its Name.
	Volume *v1.Volume `json:"volume,omitempty"`

	// Claim and PV are the claim of a persistentVolumeClaim or ephemeral volume and the
	// persistent volume that it is bound to. Both are nil for other volumes, except that a
	// migrated inline volume has a PV.
	Claim *v1.PersistentVolumeClaim `json:"claim,omitempty"`
	PV    *v1.PersistentVolume      `json:"pv,omitempty"`

	// ReadOnly means that the pod's entry for the claim is read-only.
	ReadOnly bool `json:"readOnly,omitempty"`

	// Migrated means that PV is the translation of a volume of a plugin that a CSI driver
	// replaces; see PersistentVolumeConfig.Translate.
	Migrated bool `json:"migrated,omitempty"`

	// Block means that containers use it as a device (volumeDevices), not as a file system.
	Block bool `json:"block,omitempty"`
}

// Name returns the name of the volume in the pod.
func (s *Spec) Name() string {
	if s.Volume != nil {
		return s.Volume.Name
	}
	if s.PV != nil {
		return s.PV.Name
	}
	return ""
}

// DirName returns the name of the volume's directory: that of the persistent volume, else Name. A
// slash, which occurs in names of migrated inline volumes only, is replaced by "~".
func (s *Spec) DirName() string {
	if s.PV != nil {
		return escape(s.PV.Name)
	}
	return s.Name()
}

// migrated reports s.Migrated; false if s is nil.
func (s *Spec) migrated() bool { return s != nil && s.Migrated }

// kind returns the name of the field that describes the volume in the API, such as "nfs";
// "" if there is none.
func (s *Spec) kind() string {
	switch {
	case s.PV != nil:
		return setField(reflect.ValueOf(s.PV.Spec.PersistentVolumeSource))
	case s.Volume != nil:
		return setField(reflect.ValueOf(s.Volume.VolumeSource))
	}
	return ""
}

// setField returns the JSON name of the first field of a struct of pointers that is set.
func setField(of reflect.Value) string {
	for i := range of.NumField() {
		if of.Field(i).Kind() == reflect.Pointer && !of.Field(i).IsNil() {
			name, _, _ := strings.Cut(of.Type().Field(i).Tag.Get("json"), ",")
			return name
		}
	}
	return ""
}

// MountOptions returns the mount options of the persistent volume. The caller owns the result.
func (s *Spec) MountOptions() []string {
	if s.PV == nil {
		return nil
	}
	return slices.Clone(s.PV.Spec.MountOptions)
}

// hasAccessMode reports whether the persistent volume has the access mode.
func (s *Spec) hasAccessMode(mode v1.PersistentVolumeAccessMode) bool {
	return s.PV != nil && slices.Contains(s.PV.Spec.AccessModes, mode)
}
