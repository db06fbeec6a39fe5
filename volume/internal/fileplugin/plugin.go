package fileplugin

import (
	"cmp"
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/payload"
)

// A Config is what distinguishes the plugins whose volumes consist of files. Each
// volume is a projected volume: a volume of one kind has a single source.
type Config struct {
	Name    string // of the plugin
	Package string // begins the errors of TearDown

	// Is reports whether a volume is of the plugin's kind.
	Is func(v *v1.VolumeSource) bool

	// Empty returns the source of a volume of which only the name is known.
	Empty func(name string) v1.VolumeSource

	// Tmpfs keeps the files in memory. If nil they are on disk. Mounter is required.
	Tmpfs   *emptydir.Tmpfs
	Mounter volume.Mounter

	// Fetcher fetches the objects that sources refer to. If its Objects are nil, a source that
	// refers to one is an error. It has the Allocatable of Tmpfs.
	Fetcher payload.Fetcher
}

// A Plugin implements volume.Plugin, volume.Refresher and volume.ObjectReferrer.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) Plugin {
	cfg.Fetcher.Objects = cmp.Or[payload.Objects](cfg.Fetcher.Objects, noObjects{})
	if cfg.Tmpfs != nil {
		cfg.Fetcher.Allocatable = cfg.Tmpfs.Allocatable
	}
	return Plugin{cfg}
}

// Name implements volume.Plugin.
func (p Plugin) Name() string { return p.cfg.Name }

// CanSupport implements volume.Plugin.
func (p Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && p.cfg.Is(&spec.Volume.VolumeSource)
}

// Refreshes implements volume.Refresher: objects, labels and annotations change.
func (Plugin) Refreshes(*volume.Spec) bool { return true }

// ObjectRefs implements volume.ObjectReferrer.
func (p Plugin) ObjectRefs(pod *v1.Pod, spec *volume.Spec) []v1.ObjectReference {
	return payload.References(pod, payload.SourceOf(&spec.Volume.VolumeSource))
}

// SetUp implements volume.Plugin. An object that does not exist is an error unless it is
// optional. RefreshAt is the time at which the first token or
// certificate must be replaced.
func (p Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	content, err := p.cfg.Fetcher.Content(ctx, payload.Volume{
		Pod: req.Pod, Name: req.Name, Source: payload.SourceOf(&req.Spec.Volume.VolumeSource),
		Owners: payload.Owners{FSUser: req.FSUser, FSGroup: req.FSGroup}, Warn: req.Warn,
	})
	if err != nil {
		return volume.SetUpResult{}, failed(req, err)
	}
	mounted, err := p.write(ctx, req, content.Files)
	mounted.RefreshAt = content.RefreshAt
	return mounted, err
}

// TearDown implements volume.Plugin.
func (p Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := remove(ctx, p.cfg.Mounter, at); err != nil {
		return fmt.Errorf("%s: %w", p.cfg.Package, err)
	}
	return nil
}

// ConstructSpec implements volume.Plugin.
func (p Plugin) ConstructSpec(at volume.Place) (*volume.Spec, error) {
	return construct(at, p.cfg.Empty(at.Name))
}

// Stats implements volume.Plugin.
func (Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (statsapi.FsStats, error) {
	usage, err := volume.DiskUsage(ctx, at.Dir())
	return usage, err
}
