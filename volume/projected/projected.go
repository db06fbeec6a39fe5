package projected

import (
	"context"
	"errors"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/certificate"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/internal/fileplugin"
	"github.com/kubeparts/kubeparts/volume/token"
)

// Name is the name of the plugin.
const Name = "kubernetes.io/projected"

// A Config configures a [Plugin]. Volumes that need a nil field fail in SetUp.
type Config struct {
	// Objects returns ConfigMaps and Secrets.
	Objects volume.Objects

	// Tokens returns service account tokens. The cache may be shared with other packages
	// that request tokens on behalf of pods.
	Tokens *token.Cache

	// TrustBundles returns ClusterTrustBundles.
	TrustBundles TrustBundles

	// Certificates returns the certificates of podCertificate sources.
	Certificates *certificate.Cache

	// Tmpfs keeps the files in memory; see emptydir.Plugin.Tmpfs. Its Allocatable are the
	// limits of containers without limits. Required.
	Tmpfs *emptydir.Tmpfs
}

// TrustBundles returns the certificates of ClusterTrustBundles, as PEM, from the version of the API
// that the server has.
type TrustBundles interface {
	// ClusterTrustBundle returns the bundle with the name.
	ClusterTrustBundle(ctx context.Context, name string) (pem string, err error)

	// ClusterTrustBundles returns the bundles of a signer that match the selector. It is not
	// an error if there are none.
	ClusterTrustBundles(ctx context.Context, signer string, selector labels.Selector) (pems []string, err error)
}

// A Plugin is a volume.Plugin, a volume.Refresher and a volume.ObjectReferrer. Safe for concurrent
// use as volume.Plugin requires.
type Plugin struct {
	fileplugin.Plugin
	cfg Config
}

// New returns the plugin for cfg, or an error if Config.Tmpfs or its Mounter is nil.
func New(cfg Config) (*Plugin, error) {
	if cfg.Tmpfs == nil || cfg.Tmpfs.Mounter == nil {
		return nil, errors.New("projected: Config.Tmpfs or its Mounter is nil")
	}
	return &Plugin{cfg: cfg, Plugin: fileplugin.New(fileplugin.Config{
		Name: Name, Package: "projected", Tmpfs: cfg.Tmpfs, Mounter: cfg.Tmpfs.Mounter, Objects: cfg.Objects, Credentials: credentials{cfg},
		Source: func(v *v1.VolumeSource) *v1.ProjectedVolumeSource { return v.Projected },
		Empty:  func(string) v1.VolumeSource { return v1.VolumeSource{Projected: new(v1.ProjectedVolumeSource)} },
	})}, nil
}

// TearDown implements volume.Plugin. It also discards the tokens of the pod and the certificates of the volume.
func (p *Plugin) TearDown(ctx context.Context, at volume.Place) error {
	if err := p.Plugin.TearDown(ctx, at); err != nil {
		return err
	}
	if p.cfg.Tokens != nil {
		p.cfg.Tokens.Forget(at.PodUID)
	}
	if p.cfg.Certificates != nil {
		p.cfg.Certificates.Forget(at.PodUID, at.Name)
	}
	return nil
}

// credentials implements fileplugin.Credentials.
type credentials struct{ cfg Config }

// Token returns a token of the pod's service account that is bound to the pod.
func (c credentials) Token(ctx context.Context, pod *v1.Pod, from *v1.ServiceAccountTokenProjection) (string, time.Time, error) {
	if c.cfg.Tokens == nil {
		return "", time.Time{}, errors.New("failed to fetch token: this node has no access to service account tokens")
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
	t, err := c.cfg.Tokens.Token(ctx, pod.Namespace, account, request)
	return t.Value, t.RefreshAt, err
}

// Certificate returns the certificate of the source with an index.
func (c credentials) Certificate(ctx context.Context, req volume.Request, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error) {
	if c.cfg.Certificates == nil {
		return nil, nil, time.Time{}, errors.New("this node has no access to pod certificates")
	}
	bundle, err := c.cfg.Certificates.Bundle(ctx, certificate.Source{
		Pod: req.Pod, Volume: req.Name, Index: index, Projection: from, Warn: req.Warn,
	})
	return bundle.Key, bundle.Chain, bundle.RefreshAt, err
}

// TrustBundles returns the bundles that a source names or selects. A nil selector selects no
// bundle of a signer, an empty one all of them (rule vol-57).
func (c credentials) TrustBundles(ctx context.Context, from *v1.ClusterTrustBundleProjection) ([]string, error) {
	if c.cfg.TrustBundles == nil {
		return nil, errors.New("this node has no access to ClusterTrustBundles")
	}
	if from.Name != nil {
		pem, err := c.cfg.TrustBundles.ClusterTrustBundle(ctx, *from.Name)
		return []string{pem}, err
	}
	selector := labels.Nothing()
	if from.LabelSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(from.LabelSelector); err != nil {
			return nil, err
		}
	}
	return c.cfg.TrustBundles.ClusterTrustBundles(ctx, *from.SignerName, selector)
}
