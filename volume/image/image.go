package image

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/image"

// A Plugin is a volume.Plugin. The zero value is ready for use.
type Plugin struct{}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && spec.Volume.Image != nil
}

// SetUp implements volume.Plugin: the runtime mounts the volume.
func (*Plugin) SetUp(context.Context, volume.Request) (volume.SetUpResult, error) {
	return volume.SetUpResult{}, nil
}

// TearDown implements volume.Plugin.
func (*Plugin) TearDown(_ context.Context, at volume.Place) error {
	if err := os.Remove(at.Dir()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("image: %w", err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin.
func (*Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	return &volume.Spec{Volume: &v1.Volume{Name: at.Name, VolumeSource: v1.VolumeSource{Image: new(v1.ImageVolumeSource)}}}, nil
}

// Stats implements volume.Plugin: an image does not count as usage of the pod.
func (*Plugin) Stats(context.Context, volume.Place, runtime.Volume) (statsapi.FsStats, error) {
	return statsapi.FsStats{}, fmt.Errorf("image: %w", errors.ErrUnsupported)
}
