package projected_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/emptydir"
	"github.com/kubeparts/kubeparts/volume/projected"
	"github.com/kubeparts/kubeparts/volume/token"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

func ptr[T any](v T) *T { return &v }

func spec(sources ...v1.VolumeProjection) *volume.Spec {
	return &volume.Spec{Volume: &v1.Volume{Name: "all", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: sources}}}}
}

// An apiServer signs numbered tokens, and records the last request.
type apiServer struct {
	given int
	last  *authenticationv1.TokenRequest
	who   string
}

func (s *apiServer) Token(_ context.Context, namespace, account string, r *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	s.given++
	s.last, s.who = r.DeepCopy(), namespace+"/"+account
	r.Status.Token = fmt.Sprint("token ", s.given)
	r.Status.ExpirationTimestamp = metav1.NewTime(time.Now().Add(time.Duration(*r.Spec.ExpirationSeconds) * time.Second))
	return r, nil
}

type bundles struct{}

func (bundles) ClusterTrustBundle(_ context.Context, name string) (string, error) {
	return "", fmt.Errorf("clustertrustbundle %q: %w", name, os.ErrNotExist)
}

func (bundles) ClusterTrustBundles(_ context.Context, signer string, selector labels.Selector) ([]string, error) {
	if !selector.Matches(labels.Set{"live": "yes"}) {
		return nil, nil
	}
	return []string{"-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n"}, nil
}

func withTokens(t *testing.T, s *apiServer) *projected.Plugin {
	t.Helper()
	tokens, err := token.New(token.Config{Get: s.Token})
	require.NoError(t, err)
	p, err := projected.New(projected.Config{Tokens: tokens, TrustBundles: bundles{}, Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
	require.NoError(t, err)
	return p
}

// vol-55, vol-56: a token is valid for an hour, is replaced in time, and is removed
// with its pod.
func TestATokenIsReplacedInTheVolume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(apiServer)
		p := withTokens(t, s)
		req := volumetest.Request(t, p, spec(v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "token", Audience: "vault"}}))
		for n := 1; n <= 5; n++ {
			mounted, err := p.SetUp(t.Context(), req)
			require.NoError(t, err)
			data, err := os.ReadFile(filepath.Join(mounted.Path, "token"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint("token ", n), string(data))
			left := time.Until(mounted.RefreshAt)
			require.InDelta(t, 48*60, left.Seconds(), 10, "a fifth of the hour is left")
			time.Sleep(left)
			req.Refresh = true
		}
		assert.Equal(t, "default/builder", s.who)
		assert.Equal(t, []string{"vault"}, s.last.Spec.Audiences)
		assert.EqualValues(t, 3600, *s.last.Spec.ExpirationSeconds)
		assert.Equal(t, &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "web", UID: "u1"}, s.last.Spec.BoundObjectRef)
		require.NoError(t, p.TearDown(t.Context(), req.Place))
	})
}

// vol-55
func TestNoAudienceIsTheServersOwn(t *testing.T) {
	s := new(apiServer)
	p := withTokens(t, s)
	req := volumetest.Request(t, p, spec(v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "t", ExpirationSeconds: ptr[int64](600)}}))
	req.Pod.Spec.ServiceAccountName = ""
	_, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	assert.Empty(t, s.last.Spec.Audiences)
	assert.EqualValues(t, 600, *s.last.Spec.ExpirationSeconds)
	assert.Equal(t, "default/default", s.who)
}

func TestRefsAreAllThatTheVolumeIsMadeFrom(t *testing.T) {
	p := withTokens(t, new(apiServer))
	s := spec(
		v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}},
		v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}},
		v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: ptr("b")}},
		v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{SignerName: ptr("x")}},
		v1.VolumeProjection{DownwardAPI: new(v1.DownwardAPIProjection)},
		v1.VolumeProjection{PodCertificate: new(v1.PodCertificateProjection)},
	)
	req := volumetest.Request(t, p, s)
	assert.Equal(t, []v1.ObjectReference{
		{Kind: "ConfigMap", Namespace: "default", Name: "c"}, {Kind: "Secret", Namespace: "default", Name: "s"},
		{Kind: "ClusterTrustBundle", Name: "b"}, {Kind: "ClusterTrustBundle"},
		{Kind: "PodCertificateRequest", Namespace: "default", Name: "web"},
	}, p.ObjectRefs(req.Pod, s))
}

// vol-57: no selector selects nothing, an empty one everything.
func TestTrustBundlesOfASigner(t *testing.T) {
	p := withTokens(t, new(apiServer))
	for _, c := range []struct {
		selector *metav1.LabelSelector
		err      string
	}{
		{new(metav1.LabelSelector), ""},
		{&metav1.LabelSelector{MatchLabels: map[string]string{"live": "yes"}}, ""},
		{nil, "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
		{&metav1.LabelSelector{MatchLabels: map[string]string{"live": "no"}}, "combination of signerName and labelSelector matched zero ClusterTrustBundles"},
	} {
		req := volumetest.Request(t, p, spec(v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Path: "ca", SignerName: ptr("x"), LabelSelector: c.selector}}))
		mounted, err := p.SetUp(t.Context(), req)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		assert.FileExists(t, filepath.Join(mounted.Path, "ca"))
	}
	_, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec(v1.VolumeProjection{ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Path: "ca", Name: ptr("x")}})))
	require.ErrorContains(t, err, `while getting ClusterTrustBundle: clustertrustbundle "x"`)
}

// vol-54
func TestAnErrorOfOneSourceLeavesTheVolumeAsItWas(t *testing.T) {
	objects := volumetest.NewObjects(volumetest.ConfigMap("default", "c", map[string]string{"k": "1"}), volumetest.Secret("default", "s", map[string]string{"k": "2"}))
	mounter := new(volumetest.Mounter)
	p := plugin(t, objects, mounter)
	cm := v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}}}
	sec := v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "s"}}}
	req := volumetest.Request(t, p, spec(cm, sec))
	mounted, err := p.SetUp(t.Context(), req)
	require.NoError(t, err)
	read := func() string {
		data, err := os.ReadFile(filepath.Join(mounted.Path, "k"))
		require.NoError(t, err)
		return string(data)
	}
	assert.Equal(t, "2", read(), "the later source has the path")
	req.Refresh = true
	req.Spec = spec(cm, v1.VolumeProjection{Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "gone"}}},
		v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}, Items: []v1.KeyToPath{{Key: "x"}}}})
	_, err = p.SetUp(t.Context(), req)
	require.EqualError(t, err, `[secret "gone" not found, configmap references non-existent config key: x]`)
	assert.Equal(t, "2", read())
}

func TestPathsThatCollideAcrossSources(t *testing.T) {
	objects := volumetest.NewObjects(volumetest.ConfigMap("default", "c", map[string]string{"k": "1"}))
	p := plugin(t, objects, new(volumetest.Mounter))
	at := func(path string) v1.VolumeProjection {
		return v1.VolumeProjection{ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "c"}, Items: []v1.KeyToPath{{Key: "k", Path: path}}}}
	}
	for want, sources := range map[string][]v1.VolumeProjection{
		`invalid path: "a" is a file and cannot contain "a/b"`:                 {at("a"), at("a/b")},
		"invalid path: must not contain '..': ../x":                            {at("a"), at("../x")},
		"invalid path: filenames must be less than or equal to 255 characters": {at(strings.Repeat("a", 300))},
	} {
		req := volumetest.Request(t, p, spec(sources...))
		_, err := p.SetUp(t.Context(), req)
		require.EqualError(t, err, want)
		assert.NoDirExists(t, req.PodDir())
	}
	_, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec(v1.VolumeProjection{ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "t"}})))
	require.EqualError(t, err, "failed to fetch token: this node has no access to service account tokens")
	require.False(t, errors.Is(err, os.ErrNotExist))
}

func TestSourcesWithoutAClientAreErrors(t *testing.T) {
	p, err := projected.New(projected.Config{Tmpfs: &emptydir.Tmpfs{Mounter: new(volumetest.Mounter)}})
	require.NoError(t, err)
	for want, source := range map[string]v1.VolumeProjection{
		"couldn't get configMap default/a, no kubeClient defined":                  {ConfigMap: &v1.ConfigMapProjection{LocalObjectReference: v1.LocalObjectReference{Name: "a"}, Optional: new(true)}},
		"couldn't get secret default/a, no kubeClient defined":                     {Secret: &v1.SecretProjection{LocalObjectReference: v1.LocalObjectReference{Name: "a"}, Optional: new(true)}},
		"failed to fetch token: this node has no access to service account tokens": {ServiceAccountToken: &v1.ServiceAccountTokenProjection{Path: "a"}},
		"this node has no access to pod certificates":                              {PodCertificate: &v1.PodCertificateProjection{KeyPath: "a"}},
		"this node has no access to ClusterTrustBundles":                           {ClusterTrustBundle: &v1.ClusterTrustBundleProjection{Name: new("a"), Optional: new(true), Path: "a"}},
	} {
		spec := &volume.Spec{Volume: &v1.Volume{Name: "files", VolumeSource: v1.VolumeSource{Projected: &v1.ProjectedVolumeSource{Sources: []v1.VolumeProjection{source}}}}}
		_, err := p.SetUp(t.Context(), volumetest.Request(t, p, spec))
		require.ErrorContains(t, err, want)
	}
}
