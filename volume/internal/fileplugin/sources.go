package fileplugin

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/volume"
)

// sources implements payload.Sources for one SetUp.
type sources struct {
	Credentials
	objects volume.Objects
	ctx     context.Context
	req     volume.Request

	refreshAt time.Time // the earliest time at which a credential must be replaced
}

func (s *sources) refresh(at time.Time) {
	if s.refreshAt.IsZero() || at.Before(s.refreshAt) {
		s.refreshAt = at
	}
}

func (s *sources) ConfigMap(name string) (*v1.ConfigMap, error) {
	if err := checkName("configMap", name); err != nil {
		return nil, err
	}
	return s.objects.ConfigMap(s.ctx, s.req.Pod.Namespace, name)
}

func (s *sources) Secret(name string) (*v1.Secret, error) {
	if err := checkName("secret", name); err != nil {
		return nil, err
	}
	return s.objects.Secret(s.ctx, s.req.Pod.Namespace, name)
}

func (s *sources) Token(from *v1.ServiceAccountTokenProjection) (string, error) {
	token, at, err := s.Credentials.Token(s.ctx, s.req.Pod, from)
	if err == nil {
		s.refresh(at)
	}
	return token, err
}

func (s *sources) TrustBundles(from *v1.ClusterTrustBundleProjection) ([]string, error) {
	return s.Credentials.TrustBundles(s.ctx, from)
}

func (s *sources) Certificate(index int, from *v1.PodCertificateProjection) (key, chain []byte, err error) {
	key, chain, at, err := s.Credentials.Certificate(s.ctx, s.req, index, from)
	if err == nil {
		s.refresh(at)
	}
	return key, chain, err
}
