package payload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubeparts/kubeparts/volume/atomic"
	"github.com/kubeparts/kubeparts/volume/token"
)

// A Fetcher fetches what the sources of volumes refer to. A source whose field is nil is an error.
type Fetcher struct {
	// Objects returns ConfigMaps and Secrets. Required for those.
	Objects Objects

	// Tokens returns service account tokens.
	Tokens *token.Cache

	// TrustBundles returns ClusterTrustBundles.
	TrustBundles TrustBundles

	// Certificate returns the private key and the certificate chain of the source with an index, and
	// the time at which they must be replaced.
	Certificate func(ctx context.Context, of Volume, index int, from *v1.PodCertificateProjection) (key, chain []byte, refreshAt time.Time, err error)

	// Allocatable are the resources of the node for pods, which are the limits of containers
	// without limits.
	Allocatable v1.ResourceList
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

// A Volume is a volume of a pod that consists of files.
type Volume struct {
	Pod    *v1.Pod
	Name   string
	Source *v1.ProjectedVolumeSource // as SourceOf returns
	Owners Owners

	// Warn records a warning event of the pod. It may be nil.
	Warn func(reason, message string)
}

// Content is the content of a volume.
type Content struct {
	Files atomic.Payload

	// RefreshAt is the time at which the first token or certificate must be replaced, Expiration that
	// at which the first token expires. Zero if there is none.
	RefreshAt, Expiration time.Time
}

// SourceOf returns the sources of a volume: a configMap, secret or downwardAPI volume is a projected volume
// with a single source. It returns nil for volumes of other kinds.
func SourceOf(v *v1.VolumeSource) *v1.ProjectedVolumeSource {
	switch {
	case v.Projected != nil:
		return v.Projected
	case v.ConfigMap != nil:
		s := v.ConfigMap
		return single(s.DefaultMode, s.DefaultUser, v1.VolumeProjection{
			ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: s.LocalObjectReference, Items: s.Items, Optional: s.Optional},
		})
	case v.Secret != nil:
		s := v.Secret
		return single(s.DefaultMode, s.DefaultUser, v1.VolumeProjection{
			Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: s.SecretName}, Items: s.Items, Optional: s.Optional},
		})
	case v.DownwardAPI != nil:
		s := v.DownwardAPI
		return single(s.DefaultMode, s.DefaultUser, v1.VolumeProjection{DownwardAPI: &v1.DownwardAPIProjection{Items: s.Items}})
	}
	return nil
}

func single(mode *int32, user *int64, source v1.VolumeProjection) *v1.ProjectedVolumeSource {
	return &v1.ProjectedVolumeSource{DefaultMode: mode, DefaultUser: user, Sources: []v1.VolumeProjection{source}}
}

// References returns the objects that the sources of a volume of pod refer to. A reference without a name
// stands for all objects of its kind.
func References(pod *v1.Pod, source *v1.ProjectedVolumeSource) []v1.ObjectReference {
	var refs []v1.ObjectReference
	for _, from := range source.Sources {
		switch {
		case from.ConfigMap != nil:
			refs = append(refs, v1.ObjectReference{Kind: KindConfigMap, Namespace: pod.Namespace, Name: from.ConfigMap.Name})
		case from.Secret != nil:
			refs = append(refs, v1.ObjectReference{Kind: KindSecret, Namespace: pod.Namespace, Name: from.Secret.Name})
		case from.ClusterTrustBundle != nil && from.ClusterTrustBundle.Name != nil:
			refs = append(refs, v1.ObjectReference{Kind: KindClusterTrustBundle, Name: *from.ClusterTrustBundle.Name})
		case from.PodCertificate != nil:
			refs = append(refs, v1.ObjectReference{Kind: KindPodCertificateRequest, Namespace: pod.Namespace, Name: pod.Name})
		case from.ClusterTrustBundle != nil: // any that its labels select
			refs = append(refs, v1.ObjectReference{Kind: KindClusterTrustBundle})
		}
	}
	return refs
}

// Content fetches the objects of a volume and returns its content. An object that does not exist is an
// error unless it is optional.
func (f Fetcher) Content(ctx context.Context, v Volume) (Content, error) {
	from := &sources{Fetcher: f, ctx: ctx, of: v}
	var err error
	from.content.Files, err = Projected(v.Pod, v.Source, f.Allocatable, from, v.Owners)
	return from.content, err
}

// sources implements Sources for one volume. It sets the times of content.
type sources struct {
	Fetcher
	ctx     context.Context
	of      Volume
	content Content
}

func (s *sources) ConfigMap(name string) (*v1.ConfigMap, error) {
	if err := checkName("configMap", name); err != nil {
		return nil, err
	}
	return s.Objects.ConfigMap(s.ctx, s.of.Pod.Namespace, name)
}

func (s *sources) Secret(name string) (*v1.Secret, error) {
	if err := checkName("secret", name); err != nil {
		return nil, err
	}
	return s.Objects.Secret(s.ctx, s.of.Pod.Namespace, name)
}

// Token returns a token of the pod's service account that is bound to the pod.
func (s *sources) Token(from *v1.ServiceAccountTokenProjection) (string, error) {
	if s.Tokens == nil {
		return "", errors.New("failed to fetch token: this node has no access to service account tokens")
	}
	t, err := s.Tokens.Token(s.ctx, s.of.Pod.Namespace, cmp.Or(s.of.Pod.Spec.ServiceAccountName, "default"), tokenRequest(s.of.Pod, from))
	if err == nil {
		earliest(&s.content.RefreshAt, t.RefreshAt)
		earliest(&s.content.Expiration, t.Expiration)
	}
	return t.Value, err
}

func (s *sources) Certificate(index int, from *v1.PodCertificateProjection) (key, chain []byte, err error) {
	if s.Fetcher.Certificate == nil {
		return nil, nil, errors.New("this node has no access to pod certificates")
	}
	key, chain, at, err := s.Fetcher.Certificate(s.ctx, s.of, index, from)
	if err == nil {
		earliest(&s.content.RefreshAt, at)
	}
	return key, chain, err
}

// TrustBundles returns the bundles that a source names or selects. A nil selector selects no
// bundle of a signer, an empty one all of them (rule vol-57).
func (s *sources) TrustBundles(from *v1.ClusterTrustBundleProjection) ([]string, error) {
	if s.Fetcher.TrustBundles == nil {
		return nil, errors.New("this node has no access to ClusterTrustBundles")
	}
	if from.Name != nil {
		pem, err := s.Fetcher.TrustBundles.ClusterTrustBundle(s.ctx, *from.Name)
		return []string{pem}, err
	}
	selector := labels.Nothing()
	if from.LabelSelector != nil {
		var err error
		if selector, err = metav1.LabelSelectorAsSelector(from.LabelSelector); err != nil {
			return nil, err
		}
	}
	return s.Fetcher.TrustBundles.ClusterTrustBundles(s.ctx, *from.SignerName, selector)
}

// earliest sets t to at if that is earlier, or t is zero.
func earliest(t *time.Time, at time.Time) {
	if t.IsZero() || at.Before(*t) {
		*t = at
	}
}

// tokenRequest returns the request for a token that is bound to the pod.
func tokenRequest(pod *v1.Pod, from *v1.ServiceAccountTokenProjection) *authenticationv1.TokenRequest {
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
	return request
}

// checkName returns an error for an invalid name, before the object is requested.
func checkName(kind, name string) error {
	if name == "" {
		return fmt.Errorf("%s has no name", kind)
	}
	if name != filepath.Base(name) || len(name) > 253 || name == "." || name == ".." {
		return fmt.Errorf("%s %q: is no name of an object", kind, name)
	}
	return nil
}
