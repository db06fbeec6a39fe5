package configmap

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/internal/fileplugin"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/configmap"

// A Config configures a [Plugin].
type Config struct {
	// Objects returns the ConfigMaps. If nil, every SetUp fails.
	Objects payload.Objects

	// Mounter reports mount points, so that nothing is removed through a mount.
	// Required.
	Mounter volume.Mounter
}

// A Plugin is a volume.Plugin, a volume.Refresher and a volume.ObjectReferrer. Safe for concurrent
// use as volume.Plugin requires.
type Plugin struct{ fileplugin.Plugin }

// New returns the plugin for cfg, or an error if Config.Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Mounter == nil {
		return nil, errors.New("configmap: Config.Mounter is nil")
	}
	return &Plugin{fileplugin.New(fileplugin.Config{
		Name: Name, Package: "configmap", Is: func(v *v1.VolumeSource) bool { return v.ConfigMap != nil }, Mounter: cfg.Mounter,
		Fetcher: payload.Fetcher{Objects: cfg.Objects},
		Empty: func(name string) v1.VolumeSource {
			return v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: name}}}
		},
	})}, nil
}
