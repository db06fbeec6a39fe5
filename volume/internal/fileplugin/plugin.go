package fileplugin

import (
	"context"
	"fmt"
	"time"

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

	// Source returns the sources of a volume; nil if the volume is of another kind.
	Source func(v *v1.VolumeSource) *v1.ProjectedVolumeSource

	// Empty returns the source of a volume of which only the name is known.
	Empty func(name string) v1.VolumeSource

	// Tmpfs keeps the files in memory. If nil they are on disk. Mounter is required.
	Tmpfs   *emptydir.Tmpfs
	Mounter volume.Mounter

	// The objects that sources refer to. A source whose field is nil is an error; if
	// Allocatable is nil, the node's resources are unknown.
	Objects      volume.Objects
	Allocatable  func() v1.ResourceList
	Token        func(ctx context.Context, pod *v1.Pod, from *v1.ServiceAccountTokenProjection) (token string, refreshAt time.Time, err error)
	TrustBundles func(ctx context.Context, from *v1.ClusterTrustBundleProjection) ([]string, error)
	Certificate  func(ctx context.Context, req volume.Request, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error)
}

// A Plugin implements volume.Plugin, volume.Refresher and volume.ObjectReferrer.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) Plugin {
	if cfg.Allocatable == nil {
		cfg.Allocatable = func() v1.ResourceList { return nil }
	}
	return Plugin{cfg}
}

// Name implements volume.Plugin.
func (p Plugin) Name() string { return p.cfg.Name }

// CanSupport implements volume.Plugin.
func (p Plugin) CanSupport(spec *volume.Spec) bool {
	return spec.PV == nil && spec.Volume != nil && p.cfg.Source(&spec.Volume.VolumeSource) != nil
}

// Refreshes implements volume.Refresher: objects, labels and annotations change.
func (Plugin) Refreshes(*volume.Spec) bool { return true }

// ObjectRefs implements volume.ObjectReferrer.
func (p Plugin) ObjectRefs(pod *v1.Pod, spec *volume.Spec) []v1.ObjectReference {
	var refs []v1.ObjectReference
	for _, from := range p.cfg.Source(&spec.Volume.VolumeSource).Sources {
		switch {
		case from.ConfigMap != nil:
			refs = append(refs, v1.ObjectReference{Kind: volume.KindConfigMap, Namespace: pod.Namespace, Name: from.ConfigMap.Name})
		case from.Secret != nil:
			refs = append(refs, v1.ObjectReference{Kind: volume.KindSecret, Namespace: pod.Namespace, Name: from.Secret.Name})
		case from.ClusterTrustBundle != nil && from.ClusterTrustBundle.Name != nil:
			refs = append(refs, v1.ObjectReference{Kind: volume.KindClusterTrustBundle, Name: *from.ClusterTrustBundle.Name})
		case from.PodCertificate != nil:
			refs = append(refs, v1.ObjectReference{Kind: volume.KindPodCertificateRequest, Namespace: pod.Namespace, Name: pod.Name})
		case from.ClusterTrustBundle != nil: // any that its labels select
			refs = append(refs, v1.ObjectReference{Kind: volume.KindClusterTrustBundle})
		}
	}
	return refs
}

// SetUp implements volume.Plugin. An object that does not exist is an error unless it is
// optional. RefreshAt is the time at which the first token or
// certificate must be replaced.
func (p Plugin) SetUp(ctx context.Context, req volume.Request) (volume.SetUpResult, error) {
	var refreshAt time.Time
	owners := payload.Owners{FSUser: req.FSUser, FSGroup: req.FSGroup}
	source := p.cfg.Source(&req.Spec.Volume.VolumeSource)
	files, err := payload.Projected(req.Pod, source, p.cfg.Allocatable(), p.getters(ctx, req, &refreshAt), owners)
	if err != nil {
		return volume.SetUpResult{}, failed(req, err)
	}
	mounted, err := p.write(ctx, req, files)
	mounted.RefreshAt = refreshAt
	return mounted, err
}

// getters returns the functions that fetch objects for a volume. They set refreshAt to the earliest
// time at which a credential must be replaced.
func (p Plugin) getters(ctx context.Context, req volume.Request, refreshAt *time.Time) (get payload.Getters) {
	pod := req.Pod
	refresh := func(at time.Time) {
		if refreshAt.IsZero() || at.Before(*refreshAt) {
			*refreshAt = at
		}
	}
	if objects := p.cfg.Objects; objects != nil {
		get.ConfigMap = func(name string) (*v1.ConfigMap, error) {
			if err := checkName("configMap", name); err != nil {
				return nil, err
			}
			return objects.ConfigMap(ctx, pod.Namespace, name)
		}
		get.Secret = func(name string) (*v1.Secret, error) {
			if err := checkName("secret", name); err != nil {
				return nil, err
			}
			return objects.Secret(ctx, pod.Namespace, name)
		}
	}
	if p.cfg.Token != nil {
		get.Token = func(from *v1.ServiceAccountTokenProjection) (string, error) {
			token, at, err := p.cfg.Token(ctx, pod, from)
			if err == nil {
				refresh(at)
			}
			return token, err
		}
	}
	if p.cfg.Certificate != nil {
		get.Certificate = func(index int, from *v1.PodCertificateProjection) (key, chain []byte, err error) {
			key, chain, at, err := p.cfg.Certificate(ctx, req, index, from)
			if err == nil {
				refresh(at)
			}
			return key, chain, err
		}
	}
	if p.cfg.TrustBundles != nil {
		get.TrustBundles = func(from *v1.ClusterTrustBundleProjection) ([]string, error) { return p.cfg.TrustBundles(ctx, from) }
	}
	return get
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
