package downward

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
const Name = "kubernetes.io/downward-api"

// A Config says what the plugin works with.
type Config struct {
	// Allocatable is what the node has for pods: the limits of containers that
	// have none (vol-53). Nil: nobody knows, and they are 0.
	Allocatable func() v1.ResourceList

	// Tmpfs keeps the files in memory (vol-52): emptydir.Plugin.Tmpfs. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("downward: Config.Tmpfs is nil, or has no Mounter")
	}
	if cfg.Allocatable == nil {
		cfg.Allocatable = func() v1.ResourceList { return nil }
	}
	return &Plugin{cfg}, nil
}

// Name implements volume.Plugin.
func (*Plugin) Name() string { return Name }

// CanSupport implements volume.Plugin.
func (*Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && spec.Volume.DownwardAPI != nil
}

// Refreshes implements volume.Refresher: labels and annotations change (vol-11).
func (*Plugin) Refreshes(*volume.Spec) bool { return true }

// SetUp implements volume.Plugin.
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.Mounted, error) {
	source := req.Spec.Volume.DownwardAPI
	files, err := payload.DownwardAPI(req.Pod, source.Items, payload.Defaults{Mode: source.DefaultMode, User: source.DefaultUser}, p.cfg.Allocatable())
	if err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	return written.SetUp(ctx, req, p.cfg.Tmpfs, files)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := written.TearDown(ctx, p.cfg.Tmpfs.Mounter, at); err != nil {
		return fmt.Errorf("downward: %w", err)
	}
	return nil
}

// Construct implements volume.Plugin.
func (*Plugin) Construct(at volume.Place) (*volume.Spec, error) {
	return written.Construct(at, v1.VolumeSource{DownwardAPI: new(v1.DownwardAPIVolumeSource)})
}

// Stats implements volume.Plugin.
func (*Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (volume.Stats, error) {
	return written.Stats(ctx, at)
}
