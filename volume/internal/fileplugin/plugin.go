package fileplugin

import (
	"cmp"
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

	// The objects that sources refer to. If nil, a source that refers to one is an error.
	Objects volume.Objects

	// Credentials of projected volumes. The other kinds have none.
	Credentials Credentials
}

// Credentials are the sources of a projected volume that are not objects.
type Credentials interface {
	Token(ctx context.Context, pod *v1.Pod, from *v1.ServiceAccountTokenProjection) (token string, refreshAt time.Time, err error)
	TrustBundles(ctx context.Context, from *v1.ClusterTrustBundleProjection) ([]string, error)
	Certificate(ctx context.Context, req volume.Request, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error)
}

// A Plugin implements volume.Plugin, volume.Refresher and volume.ObjectReferrer.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) Plugin {
	cfg.Objects = cmp.Or[volume.Objects](cfg.Objects, noObjects{})
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
	from := &sources{Credentials: p.cfg.Credentials, objects: p.cfg.Objects, ctx: ctx, req: req}
	owners := payload.Owners{FSUser: req.FSUser, FSGroup: req.FSGroup}
	var allocatable v1.ResourceList
	if p.cfg.Tmpfs != nil {
		allocatable = p.cfg.Tmpfs.Allocatable
	}
	files, err := payload.Projected(req.Pod, p.cfg.Source(&req.Spec.Volume.VolumeSource), allocatable, from, owners)
	if err != nil {
		return volume.SetUpResult{}, failed(req, err)
	}
	mounted, err := p.write(ctx, req, files)
	mounted.RefreshAt = from.refreshAt
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
