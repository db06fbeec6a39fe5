package volumes

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// A Support rejects pods with a volume that no plugin of the node can mount. Without it such a
// pod would wait until it is deleted. Claims are not checked: their volume is known later.
type Support struct {
	Plugins   []volume.Plugin
	Translate func(spec *volume.Spec, namespace string) (*volume.Spec, error) // nil: nothing is migrated
}

// Admit implements pipeline.Admitter.
func (s Support) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if v.PersistentVolumeClaim == nil && v.Ephemeral == nil && !s.supports(v, pod.Namespace) {
			return RejectFeature("Volume %s: no plugin of the node supports it", fmt.Sprintf("%q (%s)", v.Name, kindOfVolume(v)))
		}
	}
	return nil
}

// supports reports whether a plugin supports the volume, or whether it is invalid, which is reported
// when it is mounted.
func (s Support) supports(v *v1.Volume, namespace string) bool {
	spec := &volume.Spec{Volume: v}
	if s.Translate != nil {
		var err error
		if spec, err = s.Translate(spec, namespace); err != nil {
			return true
		}
	}
	for _, p := range s.Plugins {
		if p.CanSupport(spec) {
			return true
		}
	}
	return false
}

// kindOfVolume returns the field of the volume's source, such as "iscsi".
func kindOfVolume(v *v1.Volume) string {
	var fields map[string]json.RawMessage
	text, err := json.Marshal(v.VolumeSource)
	if err != nil || json.Unmarshal(text, &fields) != nil {
		return "unknown"
	}
	for name := range fields { // a volume has one source
		return name
	}
	return "no source"
}

func RejectFeature(format string, arg any) *runtime.Rejection {
	return &runtime.Rejection{Reason: "PodFeatureUnsupported", Message: fmt.Sprintf(format, arg)}
}
