package projected

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/written"
	"github.com/kubeparts/kubeparts/volume/payload"
	"github.com/kubeparts/kubeparts/volume/token"
)

// Name of the plugin.
const Name = "kubernetes.io/projected"

// A Config says what the plugin works with. What is nil is an error of each volume
// that needs it.
type Config struct {
	// Objects has ConfigMaps and Secrets.
	Objects volume.Objects

	// Tokens are those of service accounts. They are shared with others who
	// ask for tokens in the name of pods.
	Tokens *token.Cache

	// TrustBundles has the ClusterTrustBundles.
	TrustBundles volume.TrustBundles

	// Allocatable is what the node has for pods: the limits of containers that
	// have none (vol-53).
	Allocatable func() v1.ResourceList

	// Tmpfs keeps the files in memory (vol-52): emptydir.Plugin.Tmpfs. Required.
	Tmpfs *emptydir.Tmpfs
}

// A Plugin is a volume.Plugin.
type Plugin struct{ cfg Config }

// New returns the plugin for cfg.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("projected: Config.Tmpfs is nil, or has no Mounter")
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
	return spec.PV == nil && spec.Volume != nil && spec.Volume.Projected != nil
}

// Refreshes implements volume.Refresher (vol-11).
func (*Plugin) Refreshes(*volume.Spec) bool { return true }

// Refs implements volume.Refs.
func (*Plugin) Refs(pod *v1.Pod, spec *volume.Spec) []volume.ObjectRef {
	var refs []volume.ObjectRef
	for _, from := range spec.Volume.Projected.Sources {
		switch {
		case from.ConfigMap != nil:
			refs = append(refs, volume.ObjectRef{Kind: volume.KindConfigMap, Namespace: pod.Namespace, Name: from.ConfigMap.Name})
		case from.Secret != nil:
			refs = append(refs, volume.ObjectRef{Kind: volume.KindSecret, Namespace: pod.Namespace, Name: from.Secret.Name})
		case from.ClusterTrustBundle != nil && from.ClusterTrustBundle.Name != nil:
			refs = append(refs, volume.ObjectRef{Kind: volume.KindClusterTrustBundle, Name: *from.ClusterTrustBundle.Name})
		case from.ClusterTrustBundle != nil: // whichever its labels select
			refs = append(refs, volume.ObjectRef{Kind: volume.KindClusterTrustBundle})
		}
	}
	return refs
}

// SetUp implements volume.Plugin. It asks to be called again when a token is due to
// be replaced (vol-56).
func (p *Plugin) SetUp(ctx context.Context, req volume.Request) (volume.Mounted, error) {
	var refreshAt time.Time
	get := payload.Getters{Token: func(from *v1.ServiceAccountTokenProjection) (string, error) {
		t, err := p.token(ctx, req.Pod, from)
		if err == nil && (refreshAt.IsZero() || t.RefreshAt.Before(refreshAt)) {
			refreshAt = t.RefreshAt
		}
		return t.Value, err
	}}
	if objects := p.cfg.Objects; objects != nil {
		get.ConfigMap = func(name string) (*v1.ConfigMap, error) {
			if err := written.CheckName("configMap", name); err != nil {
				return nil, err
			}
			return objects.ConfigMap(ctx, req.Pod.Namespace, name)
		}
		get.Secret = func(name string) (*v1.Secret, error) {
			if err := written.CheckName("secret", name); err != nil {
				return nil, err
			}
			return objects.Secret(ctx, req.Pod.Namespace, name)
		}
	}
	if p.cfg.TrustBundles != nil {
		get.TrustBundles = func(from *v1.ClusterTrustBundleProjection) ([]string, error) { return p.trustBundles(ctx, from) }
	}
	owners := payload.Owners{FSUser: req.FSUser, FSGroup: req.FSGroup}
	files, err := payload.Projected(req.Pod, req.Spec.Volume.Projected, p.cfg.Allocatable(), get, owners)
	if err != nil {
		return volume.Mounted{}, written.Failed(req, err)
	}
	mounted, err := written.SetUp(ctx, req, p.cfg.Tmpfs, files)
	mounted.RefreshAt = refreshAt
	return mounted, err
}

// token gets a token of the pod's service account, bound to the pod, so that it ends
// with it (vol-55, vol-56).
func (p *Plugin) token(ctx context.Context, pod *v1.Pod, from *v1.ServiceAccountTokenProjection) (token.Token, error) {
	if p.cfg.Tokens == nil {
		return token.Token{}, errors.New("failed to fetch token: nothing here gives tokens of service accounts")
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: from.ExpirationSeconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		},
	}}
	if from.Audience != "" {
		request.Spec.Audiences = []string{from.Audience}
	}
	if from.ExpirationSeconds == nil {
		seconds := token.DefaultExpiration
		request.Spec.ExpirationSeconds = &seconds
	}
	account := pod.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	return p.cfg.Tokens.Token(ctx, pod.Namespace, account, request)
}

// trustBundles gets the bundles that a source names or selects. Without a selector a
// signer has none, with an empty one all (vol-57).
func (p *Plugin) trustBundles(ctx context.Context, from *v1.ClusterTrustBundleProjection) ([]string, error) {
	if from.Name != nil {
		pem, err := p.cfg.TrustBundles.ClusterTrustBundle(ctx, *from.Name)
		return []string{pem}, err
	}
	selector := labels.Nothing()
	if from.LabelSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(from.LabelSelector); err != nil {
			return nil, err
		}
	}
	return p.cfg.TrustBundles.ClusterTrustBundles(ctx, *from.SignerName, selector)
}

// TearDown implements volume.Plugin.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := written.TearDown(ctx, p.cfg.Tmpfs.Mounter, at); err != nil {
		return fmt.Errorf("projected: %w", err)
	}
	if p.cfg.Tokens != nil {
		p.cfg.Tokens.Forget(at.PodUID)
	}
	return nil
}

// Construct implements volume.Plugin.
func (*Plugin) Construct(at volume.Place) (*volume.Spec, error) {
	return written.Construct(at, v1.VolumeSource{Projected: new(v1.ProjectedVolumeSource)})
}

// Stats implements volume.Plugin.
func (*Plugin) Stats(ctx context.Context, at volume.Place, _ runtime.Volume) (volume.Stats, error) {
	return written.Stats(ctx, at)
}
