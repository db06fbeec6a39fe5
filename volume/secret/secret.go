package secret

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/written"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// Name of the plugin.
const Name = "kubernetes.io/secret"

// A Config says what the plugin works with.
type Config struct {
	// Objects has the Secrets. Nil: each volume is an error.
	Objects volume.Objects

	// Tmpfs keeps the files in memory (vol-52): emptydir.Plugin.Tmpfs. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("secret: Config.Tmpfs is nil, or has no Mounter")
	}
	return &Plugin{cfg}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && spec.Volume.Secret != nil
}

// Refreshes implements volume.Refresher (vol-11).
func (*Plugin) Refreshes(*volume.Spec) bool { return true }

// Refs implements volume.Refs.
func (*Plugin) Refs(pod *v1.Pod, spec *volume.Spec) []volume.ObjectRef {
	return []volume.ObjectRef{{Kind: volume.KindSecret, Namespace: pod.Namespace, Name: spec.Volume.Secret.SecretName}}
}

// SetUp implements volume.Plugin. A Secret that doesn't exist is an error, unless
// optional; its text is that of who was asked (vol-43).
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.Mounted, error) {
	source := req.Spec.Volume.Secret
	optional := source.Optional != nil && *source.Optional
	if err := written.CheckName("secret", source.SecretName); err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	if p.cfg.Objects == nil {
		return volume.Mounted{}, written.Failed(req, written.NoObjects("secret", req.Pod.Namespace, source.SecretName))
	}
	object, err := p.cfg.Objects.Secret(ctx, req.Pod.Namespace, source.SecretName)
	if err != nil && !(optional && volume.NotFound(err)) {
		return volume.Mounted{}, written.Failed(req, err)
	}
	if err != nil {
		object = nil
	}
	files, err := payload.Secret(object, source.Items, payload.Defaults{Mode: source.DefaultMode, User: source.DefaultUser}, optional)
	if err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	return written.SetUp(ctx, req, p.cfg.Tmpfs, files)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := written.TearDown(ctx, p.cfg.Tmpfs.Mounter, at); err != nil {
		return fmt.Errorf("secret: %w", err)
	}
	return nil
}

// Construct implements volume.Plugin.
func (*Plugin) Construct(at volume.Place) (*volume.Spec, error) {
	return written.Construct(at, v1.VolumeSource{Secret: &v1.SecretVolumeSource{SecretName: at.Name}})
}

// Stats implements volume.Plugin.
func (*Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (volume.Stats, error) {
	return written.Stats(ctx, at)
}
