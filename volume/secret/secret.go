package secret

import (
	"errors"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/fileplugin"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/secret"

// A Config configures a [Plugin].
type Config struct {
	// Objects returns the Secrets. If nil, every SetUp fails.
	Objects payload.Objects

	// Tmpfs keeps the files in memory ; see emptydir.Plugin.Tmpfs. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin, a volume.Refresher and a volume.ObjectReferrer. Safe for concurrent
// use as volume.Plugin requires.
type Plugin struct{ fileplugin.Plugin }

// New returns the plugin for cfg, or an error if Config.Tmpfs or its Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("secret: Config.Tmpfs or its Mounter is nil")
	}
	return &Plugin{fileplugin.New(fileplugin.Config{
		Name: Name, Package: "secret", Is: func(v *v1.VolumeSource) bool { return v.Secret != nil }, Tmpfs: cfg.Tmpfs, Mounter: cfg.Tmpfs.Mounter,
		Fetcher: payload.Fetcher{Objects: cfg.Objects},
		Empty: func(name string) v1.VolumeSource {
			return v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: name}}
		},
	})}, nil
}
