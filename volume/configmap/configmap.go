package configmap

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/internal/written"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// Name of the plugin.
const Name = "kubernetes.io/configmap"

// A Config says what the plugin works with.
type Config struct {
	// Objects has the ConfigMaps. Nil: each volume is an error.
	Objects volume.Objects

	// Mounter knows what is mounted, so that nothing is removed through a mount.
	// Required.
	Mounter volume.Mounter
}

// A Plugin is a volume.Plugin.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) (*Plugin, error) {
	if cfg.Mounter == nil {
		return nil, errors.New("configmap: Config.Mounter is nil")
	}
	return &Plugin{cfg}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && spec.Volume.ConfigMap != nil
}

// Refreshes implements volume.Refresher (vol-11).
func (*Plugin) Refreshes(*volume.Spec) bool { return true }

// Refs implements volume.Refs.
func (*Plugin) Refs(pod *v1.Pod, spec *volume.Spec) []volume.ObjectRef {
	return []volume.ObjectRef{{Kind: volume.KindConfigMap, Namespace: pod.Namespace, Name: spec.Volume.ConfigMap.Name}}
}

// SetUp implements volume.Plugin. A ConfigMap that doesn't exist is an error, unless
// optional; its text is that of who was asked (vol-43).
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.Mounted, error) {
	source := req.Spec.Volume.ConfigMap
	optional := source.Optional != nil && *source.Optional
	if err := written.CheckName("configMap", source.Name); err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	if p.cfg.Objects == nil {
		return volume.Mounted{}, written.Failed(req, written.NoObjects("configMap", req.Pod.Namespace, source.Name))
	}
	cm, err := p.cfg.Objects.ConfigMap(ctx, req.Pod.Namespace, source.Name)
	if err != nil && !(optional && volume.NotFound(err)) {
		return volume.Mounted{}, written.Failed(req, err)
	}
	if err != nil {
		cm = nil
	}
	files, err := payload.ConfigMap(cm, source.Items, payload.Defaults{Mode: source.DefaultMode, User: source.DefaultUser}, optional)
	if err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	return written.SetUp(ctx, req, nil, files)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := written.TearDown(ctx, p.cfg.Mounter, at); err != nil {
		return fmt.Errorf("configmap: %w", err)
	}
	return nil
}

// Construct implements volume.Plugin.
func (*Plugin) Construct(at volume.Place) (*volume.Spec, error) {
	return written.Construct(at, v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: at.Name}}})
}

// Stats implements volume.Plugin.
func (*Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (volume.Stats, error) {
	return written.Stats(ctx, at)
}
