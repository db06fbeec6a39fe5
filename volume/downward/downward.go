package downward

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/fileplugin"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/downward-api"

// A Config configures a [Plugin].
type Config struct {
	// Tmpfs keeps the files in memory; see emptydir.Plugin.Tmpfs. Its Allocatable are the
	// limits of containers without limits. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin and a volume.Refresher. Safe for concurrent use as
// volume.Plugin requires.
type Plugin struct{ fileplugin.Plugin }

// New returns the plugin for cfg, or an error if Config.Tmpfs or its Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("downward: Config.Tmpfs or its Mounter is nil")
	}
	return &Plugin{fileplugin.New(fileplugin.Config{
		Name: Name, Package: "downward", Is: func(v *v1.VolumeSource) bool { return v.DownwardAPI != nil }, Tmpfs: cfg.Tmpfs, Mounter: cfg.Tmpfs.Mounter,
		Empty: func(string) v1.VolumeSource {
			return v1.VolumeSource{DownwardAPI: new(v1.DownwardAPIVolumeSource)}
		},
	})}, nil
}
