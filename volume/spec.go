package volume

import (
	"reflect"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
)

// A Spec is one volume of a pod, with what its claim has led to.
type Spec struct {
	// Volume is the pod's own entry; its Name is what volumeMounts say.
	Volume *v1.Volume `json:"volume,omitempty"`

	// Claim and PV are what a persistentVolumeClaim, or an ephemeral volume,
	// is bound to. Nil for volumes that the pod's entry describes in full.
	Claim *v1.PersistentVolumeClaim `json:"claim,omitempty"`
	PV    *v1.PersistentVolume      `json:"pv,omitempty"`

	// ReadOnly: nobody in the pod writes to it, by the claim's entry.
	ReadOnly bool `json:"readOnly,omitempty"`

	// Block: containers have it as a device (volumeDevices), not as files.
	Block bool `json:"block,omitempty"`
}

// Name is what containers of the pod call the volume.
func (s *Spec) Name() string {
	if s.Volume != nil {
		return s.Volume.Name
	}
	if s.PV != nil {
		return s.PV.Name
	}
	return ""
}

// DirName is what its directory is called: persistent volumes go by their own
// name, so that pods of any manifest have the same.
func (s *Spec) DirName() string {
	if s.PV != nil {
		return s.PV.Name
	}
	return s.Name()
}

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

// MountOptions are those that the persistent volume asks for.
func (s *Spec) MountOptions() []string {
	if s.PV == nil {
		return nil
	}
	return slices.Clone(s.PV.Spec.MountOptions)
}

// hasAccessMode reports whether the persistent volume can be used that way.
func (s *Spec) hasAccessMode(mode v1.PersistentVolumeAccessMode) bool {
	return s.PV != nil && slices.Contains(s.PV.Spec.AccessModes, mode)
}
